"""A conversation that outlives the process: run it twice. python resume.py [MODEL] [FILE]."""

import sys

from interlingua_sessions import Session

model = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
store = sys.argv[2] if len(sys.argv) > 2 else "chats.db"
with Session.open(store, "moons", model=model, system="Answer in one sentence.") as session:
    question = "And the next?" if session.messages else "Which moon of Jupiter is the largest?"
    with session.stream(question, max_tokens=200) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
    print(f"\n{len(session.messages)} messages are kept in {store}")

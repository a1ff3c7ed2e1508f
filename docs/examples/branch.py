"""Go on from an earlier message, and send less of a long conversation: python branch.py [MODEL] [FILE]."""

import sys

from interlingua_sessions import Session

model = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
store = sys.argv[2] if len(sys.argv) > 2 else "chats.db"
with Session.open(store, "moons", model=model) as session:
    first = session.send("Which moon of Jupiter is the largest?", max_tokens=200)
    session.send("Tell its history.", max_tokens=1_000)

with Session.open(store, "moons", model=model) as session:  # another process may do this
    other = session.branch(at=first)
    print(other.send("And the smallest?", max_tokens=200).text)
    print(f"{len(session.messages)} messages there, {len(other.messages)} in the branch")
    print("summarised:", session.compact(limit=100))
    print(session.send("Now in one line.", max_tokens=200).text)

"""Talk to a model, line by line: python chat.py [MODEL]. An empty line ends it."""

import sys

from interlingua import Client, system, user
from interlingua.errors import StreamInterruptedError

client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
history = [system("Answer in one sentence.")]
while question := input("> "):
    history.append(user(question))
    try:
        with client.stream(history, max_tokens=200) as stream:
            for text in stream.text_stream:
                print(text, end="", flush=True)
        history.append(stream.message)
    except StreamInterruptedError as error:
        print("\n(interrupted; the received part is kept)")
        history.append(error.partial)
    print()

"""Stop an answer in the middle, keep what arrived, and continue: python cancel.py [MODEL]."""

import sys

from interlingua import Client, user

client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
history = [user("Tell a long story about a lighthouse.")]
with client.stream(history, max_tokens=400) as stream:
    for number, text in enumerate(stream.text_stream):
        print(text, end="", flush=True)
        if number == 10:
            stream.cancel()  # from this thread or another; Ctrl-C and leaving the block do the same
print(f"\n{stream.partial.status}: {len(stream.partial.text)} characters are kept")

history += [stream.partial, user("End the story in one sentence.")]
print(client.send(history, max_tokens=60).text)

"""Change the provider in the middle of a conversation: python swap.py [MODEL] [OTHER_MODEL]."""

import sys

from interlingua import Client, user

first = sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5"
second = sys.argv[2] if len(sys.argv) > 2 else "openai:gpt-5-mini"
client = Client(first)
history = [user("Which moon of Jupiter is the largest?")]
history += [client.send(history, max_tokens=400), user("How wide is it?")]

for loss in client.build_request(history, model=second).losses:
    print("the other model will not get:", loss.path, loss.reason)
history.append(client.send(history, model=second, max_tokens=400))
for message in history:
    print(f"{message.model or 'you'}: {message.text}")

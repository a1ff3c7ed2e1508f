"""Ask another model if the first one's service fails: python fallback.py [MODEL] [OTHER_MODEL]."""

import sys

from interlingua import Client

client = Client(sys.argv[1:] or ["anthropic:claude-haiku-4-5", "openai:gpt-5-mini"])
for question in ("Which moon of Jupiter is the largest?", "And of Saturn?"):
    answer = client.send(question, max_tokens=200)
    print(f"{answer.model}: {answer.text}")
    if answer.metadata.routing:
        print("not asked first:", answer.metadata.routing.reason)

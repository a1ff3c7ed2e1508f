"""Ask a team's gateway: INTERLINGUA_KEY=… python ask.py MODEL QUESTION."""

import os
import sys

from interlingua import Client

GATEWAY = os.environ.get("INTERLINGUA_GATEWAY_URL", "http://127.0.0.1:8790/v1")

model, question = sys.argv[1:]
client = Client(f"openai:{model}", api_key=os.environ["INTERLINGUA_KEY"], base_url=GATEWAY)
with client.stream(question, max_tokens=500) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
print()

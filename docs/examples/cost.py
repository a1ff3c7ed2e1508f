"""Print the cost of answers: python cost.py [MODEL]."""

import sys
from decimal import Decimal

from interlingua import Client, Message, user

client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
history: list[Message] = []
spent = Decimal(0)
for question in ("Which moon of Jupiter is the largest?", "How wide is it?"):
    history.append(user(question))
    answer = client.send(history, max_tokens=200)
    history.append(answer)
    usage = answer.usage
    price = "unknown: " + str(usage.cost_note) if usage.cost_usd is None else f"{usage.cost_usd} USD"
    print(f"{usage.input_tokens} tokens in, {usage.output_tokens} out, {usage.latency_ms} ms, {price}")
    spent += usage.cost_usd or 0
print("together", spent, "USD")

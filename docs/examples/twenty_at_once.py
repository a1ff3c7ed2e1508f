"""Twenty questions at once: python twenty_at_once.py [MODEL]."""

import sys

from interlingua import Client, InterlinguaError

QUESTIONS = [f"Name one fact about the number {number}, in one line." for number in range(1, 21)]

with Client(sys.argv[1] if len(sys.argv) > 1 else "openai:gpt-5-mini") as client:
    answers = client.map(QUESTIONS, concurrency=20, max_tokens=60)
for question, answer in zip(QUESTIONS, answers, strict=True):
    print(question, "->", f"failed: {answer}" if isinstance(answer, InterlinguaError) else answer.text)

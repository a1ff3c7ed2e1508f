"""Twenty questions at once: python twenty_at_once.py [MODEL]."""

import asyncio
import sys

from interlingua import AsyncClient, InterlinguaError

QUESTIONS = [f"Name one fact about the number {number}, in one line." for number in range(1, 21)]


async def main(model: str) -> None:
    """Ask all questions at once, and print each answer or its error, in order."""
    async with AsyncClient(model) as client:
        asked = [client.send(question, max_tokens=60) for question in QUESTIONS]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        if isinstance(answer, InterlinguaError):
            print(question, "->", f"failed: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            print(question, "->", answer.text)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "openai:gpt-5-mini"))

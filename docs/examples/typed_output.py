"""Get an answer as a value of a class, with a second request if it does not fit: python typed_output.py [MODEL]."""

import sys
from dataclasses import dataclass
from typing import Literal

from interlingua import Client
from interlingua.output import InvalidOutputError


@dataclass
class Moon:
    """A moon of the solar system."""

    name: str
    planet: Literal["Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]
    diameter_km: int


client = Client(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-haiku-4-5")
try:
    answer = client.send("The largest moon of Jupiter?", output=Moon, output_retries=2, max_tokens=200)
except InvalidOutputError as error:
    sys.exit(f"no answer fits: {error}")
for attempt in answer.attempts:
    for problem in attempt.errors:
        print("asked again:", problem)
print(answer.value)

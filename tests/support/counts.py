"""How often the long laws are repeated: in full with INTERLINGUA_FULL=1, which `.ci/run` sets, and a part otherwise."""

from __future__ import annotations

import os

VARIABLE = "INTERLINGUA_FULL"
FULL = os.environ.get(VARIABLE, "") not in {"", "0"}
SKIP_REASON = f"made in full only with {VARIABLE}=1 (.ci/run)"
PART, LEAST = 4, 10


def examples(full: int) -> int:
    """Return how many examples to try: all of them, or a fourth and at least ten."""
    return full if FULL else min(full, max(full // PART, LEAST))

"""How much of the long laws runs: all with INTERLINGUA_FULL=1, which `.ci/run` sets, and a fixed part otherwise."""

from __future__ import annotations

import hashlib
import os

VARIABLE = "INTERLINGUA_FULL"
FULL = os.environ.get(VARIABLE, "") not in {"", "0"}
SKIP_REASON = f"made in full only with {VARIABLE}=1 (.ci/run)"
PART, LEAST = 4, 5


def examples(full: int, part: int | None = None) -> int:
    """Return how many examples to try: all of them, or `part`, by default a fourth and at least five."""
    return full if FULL else min(full, part or max(full // PART, LEAST))


def chosen(name: str, of: int) -> bool:
    """Tell whether a case runs: every case in full, and otherwise a fixed one in `of`, by the hash of its name."""
    return FULL or int(hashlib.sha256(name.encode()).hexdigest(), 16) % of == 0

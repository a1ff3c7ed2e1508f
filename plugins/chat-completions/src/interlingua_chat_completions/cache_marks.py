"""How many cache markers a request may hold, for how long each asks, and which hints get none.

Never writes a message; the bytes without markers are what a turn shares with the next (DESIGN 8).
The request, message and tool writers come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_MARKERS = 4  # sheet MAPPING, cache marker
TOO_MANY = "more cache hints than the wire takes"
SHORTENED = "a 1h cache marker may not follow a 5m one; sent as 5m"


class Hint(NamedTuple):
    """A block that carries a cache hint, and for how long; None is the service's default."""

    block: int
    ttl: str | None


class Markers:
    """The markers of one request in its order: tools, then messages; `spent` holds their lifetimes."""

    def __init__(self, spent: Sequence[str | None] = ()) -> None:
        self.spent = list(spent)

    @property
    def left(self) -> int:
        """How many more there may be."""
        return MAX_MARKERS - len(self.spent)

    def spend(self, ttl: str | None) -> str | None:
        """Use one; returns what the hint lost by it, None for nothing (sheet anthropic §7, REGRESSIONS case 33)."""
        if not self.left:
            return TOO_MANY
        late = ttl == "1h" and any(before != "1h" for before in self.spent)
        self.spent.append("5m" if late else ttl)
        return SHORTENED if late else None


def cache_control(ttl: str | None) -> dict[str, str]:
    """Return a cache marker with its lifetime (sheet openrouter §2)."""
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}

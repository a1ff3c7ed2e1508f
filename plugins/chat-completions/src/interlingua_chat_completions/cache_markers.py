"""Cache markers: their number and lifetimes in a request, and the hints without one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

MAX_MARKERS = 4  # WIRE.md, Prompt caching
TOO_MANY = "more cache hints than the wire takes"
SHORTENED = "a 1h cache marker may not follow a 5m one; sent as 5m"
NO_LIFETIME = "a cache marker says no lifetime on this wire; the service's own, half an hour, applies"


class Hint(NamedTuple):
    """A block with a cache hint, and its lifetime; None is the service's default."""

    block: int
    ttl: str | None


class Markers:
    """The cache markers of one request in order: tools, then messages; `spent` holds their lifetimes.

    Args:
        spent: lifetimes of the markers that precede.
        lifetimes: a marker can state a lifetime.
    """

    def __init__(self, spent: Sequence[str | None] = (), *, lifetimes: bool = True) -> None:
        self.spent = list(spent)
        self._lifetimes = lifetimes

    @property
    def left(self) -> int:
        """Number of further markers that the request may have."""
        return MAX_MARKERS - len(self.spent)

    def spend(self, ttl: str | None) -> str | None:
        """Use one marker; return the hint's loss, if any (WIRE.md, Prompt caching)."""
        if not self.left:
            return TOO_MANY
        if not self._lifetimes:
            self.spent.append(None)
            return NO_LIFETIME if ttl == "1h" else None
        late = ttl == "1h" and any(before != "1h" for before in self.spent)
        self.spent.append("5m" if late else ttl)
        return SHORTENED if late else None


def cache_control(ttl: str | None) -> dict[str, str]:
    """Return a cache marker with its lifetime."""
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}


def cache_key(session_id: str) -> str:
    """Name a session for the service's router, so that requests of one prefix meet one cache (WIRE.md, Prompt caching).

    It is a digest, so the id stays private; 32 of the 64 allowed characters.
    """
    return hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

"""What a message became on this wire: its bytes, and what must be known of them beside (DESIGN 7, 8).

Never makes one; also the cache marker that hints turn into.
`elements`, `results` and `input` come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.plugins import BlockLoss
from interlingua.types import CacheHint


class Elements(NamedTuple):
    """What a message became.

    Attributes:
        joined: its items, ready, comma between them.
        rows: losses.
        hints: blocks that carry a cache hint which this wire can mark.
        custom: call ids of calls of custom tools, whose results have their own item type.
    """

    joined: bytes
    rows: tuple[BlockLoss, ...] = ()
    hints: tuple[int, ...] = ()
    custom: tuple[str, ...] = ()


def marked_part(part: Mapping[str, Any], block: Any) -> dict[str, Any]:
    """Return the part with the marker of its block's cache hint."""
    return {**part, "prompt_cache_breakpoint": breakpoint_of(block.cache)}


def breakpoint_of(hint: CacheHint | None) -> dict[str, str]:
    """Return the marker: this wire keeps for 30 minutes or 12 hours, so an hour becomes 12 (sheet §2)."""
    return {"mode": "explicit", "ttl": "12h"} if hint is not None and hint.ttl == "1h" else {"mode": "explicit"}

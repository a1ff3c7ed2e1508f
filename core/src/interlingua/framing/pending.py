"""What the framers share: the size limit of one event and the quick `WireChunk` maker.

No framing's syntax ever lives here.
The framers of this package may come in, nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from interlingua.errors import MalformedResponse
from interlingua.wire import WireChunk

EVENT_LIMIT = 64 * 1024 * 1024
"""Bytes one event may hold by default, line ends around it not counted."""

make_chunk: Callable[[tuple[str, bytes]], WireChunk] = partial(tuple.__new__, WireChunk)
"""`WireChunk` from a pair without a Python frame: this is called once per event."""


def too_large(event: bytes | bytearray, limit: int) -> bool:
    """Say whether an event holds more than `limit` bytes; line ends around it do not count."""
    return len(event) > limit and len(event.strip(b"\r\n")) > limit


def check_size(event: bytes | bytearray, limit: int) -> None:
    """Refuse an event, complete or still growing, that is larger than the limit.

    Args:
        event: The event's bytes so far; line ends around it do not count.
        limit: Bytes.

    Raises:
        MalformedResponse: It is larger.
    """
    if too_large(event, limit):
        raise MalformedResponse(f"one event of the response stream is larger than {limit} bytes")

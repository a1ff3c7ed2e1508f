"""Framing: incremental readers that cut a response body, at any chunk boundary, into `WireChunk` values.

No input or output, no JSON decoding and no knowledge of any provider's events ever live here.
The transport and the client may come in, and tests and the contract suite that replay bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlingua.errors import PluginError
from interlingua.framing.ndjson import NdjsonFramer
from interlingua.framing.sse import SseFramer
from interlingua.wire import WireChunk

__all__ = ["Framer", "NdjsonFramer", "SseFramer", "framer"]


class Framer(Protocol):
    """An incremental reader of one response body; it holds that body's unfinished end and is used once."""

    def feed(self, data: bytes) -> list[WireChunk]:
        """Take the next bytes of the body.

        Args:
            data: Any number of bytes, cut anywhere, also inside a line end or a UTF-8 character.

        Returns:
            The chunks these bytes completed, in order.

        Raises:
            MalformedResponse: One event is larger than the framer's limit.
        """
        ...

    def close(self) -> list[WireChunk]:
        """Say that the body ended in good order; a body that broke off is dropped instead of closed.

        Returns:
            What the body's last bytes hold when its final line end or blank line is missing.

        Raises:
            MalformedResponse: One event is larger than the framer's limit.
        """
        ...


_FRAMERS: dict[str, Callable[[], Framer]] = {"sse": SseFramer, "ndjson": NdjsonFramer}


def framer(name: str | Callable[[], Framer]) -> Framer:
    """Make a framer for one response body.

    Args:
        name: "sse", "ndjson", or a factory for any other framing, as a connection names it (DESIGN §5).

    Returns:
        A fresh framer.

    Raises:
        PluginError: The name is none of these.
    """
    if callable(name):
        return name()
    factory = _FRAMERS.get(name)
    if factory is None:
        known = ", ".join(repr(key) for key in _FRAMERS)
        raise PluginError(f"unknown framing {name!r}: a connection names one of {known}, or a framer factory")
    return factory()

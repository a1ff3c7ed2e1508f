"""Drive one installed provider by hand, with fixed ids and a fixed clock, so that two roads can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count

from interlingua._plugins.provider import Provider
from interlingua._plugins.registry import Registry
from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import framer
from interlingua.plugins import ConnectionSettings, RequestContext, WireResponse
from interlingua.types.messages import Message, Origin

_REGISTRY = Registry()
_THEN = datetime(2026, 11, 21, tzinfo=UTC)
MESSAGE_ID = "01KAKDPZ0000000000000000AA"
SESSION_ID = "01KAKDPZ0000000000000000SS"


def provider(key: str) -> Provider:
    """Return an installed provider."""
    return _REGISTRY.provider(key)


def context(key: str, api: str, model: str, echo: Mapping[str, object] | None = None) -> RequestContext:
    """Return a context whose every value is the same each time it is made."""
    numbers = count(1)
    return RequestContext(
        origin=Origin(key, api, model),
        message_id=MESSAGE_ID,
        session_id=SESSION_ID,
        mint_tool_use_id=lambda: f"tu_01KAKDPZ000000000000{next(numbers):06d}",
        clock=lambda: _THEN,
        echo=echo or {},
    )


def pieces(body: bytes, size: int | None) -> Iterable[bytes]:
    """Cut a body into pieces of `size` bytes; None leaves it whole."""
    if size is None:
        return (body,)
    return (body[at : at + size] for at in range(0, len(body), size))


def opened(chosen: Provider, made: RequestContext) -> StreamDecoder:
    """Return a decoder for one stream of this provider."""
    connection = chosen.connection(ConnectionSettings(api=made.origin.api))
    return StreamDecoder(chosen, framer(connection.framing), made)


def streamed(chosen: Provider, body: bytes, made: RequestContext, size: int | None = None) -> Message:
    """Return the message of a streamed body, fed in pieces of `size` bytes; raises what the decoder raises."""
    decoder = opened(chosen, made)
    for piece in pieces(body, size):
        decoder.feed(piece)
    decoder.end()
    return decoder.message()


def whole(chosen: Provider, body: bytes, made: RequestContext, headers: Mapping[str, str] | None = None) -> Message:
    """Return the message of a whole body."""
    return chosen.from_wire_response(WireResponse(status=200, headers=headers or {}, body=body), made)

"""Recorded answers read through the façade: events, message or error, whole or in pieces of any size.

Never judges what comes out. The rules come in.
A stream is driven as the clients drive it, by core's decoder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua.plugins.wire import ConnectionSettings, WireResponse
from interlingua.response.decode import StreamDecoder
from interlingua.response.framing import framer
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message
from interlingua_cli.cassettes import Exchange
from interlingua_contract.subject import Subject


@attrs.frozen(kw_only=True)
class Read:
    """What came of one answer.

    Attributes:
        events: of a stream; empty for a whole body.
        message: the message, the partial one where it failed, or None where nothing was made.
        error: the typed error, or None.
        escaped: an exception that is no typed error, or None; always a mistake.
    """

    events: tuple[StreamEvent, ...] = ()
    message: Message | None = None
    error: InterlinguaError | None = None
    escaped: Exception | None = None

    @property
    def text(self) -> str:
        """All text of the message, thinking included."""
        if self.message is None:
            return ""
        return "".join(block.text for block in self.message.content if block.type in ("text", "thinking"))


def pieces(body: bytes, size: int | None) -> Iterable[bytes]:
    """Cut a body into pieces of `size` bytes; None leaves it whole."""
    return (body,) if size is None else (body[at : at + size] for at in range(0, len(body), size))


def framing_of(subject: Subject, exchange: Exchange) -> Any:
    """Return the framing of an exchange's stream."""
    return subject.provider.connection(ConnectionSettings(api=subject.api_of(exchange))).framing


def read_stream(
    subject: Subject, exchange: Exchange, body: bytes | None = None, *, size: int | None = None, broken: bool = False
) -> Read:
    """Read a stream.

    Args:
        subject: whose.
        exchange: the recorded one.
        body: in place of the recorded body.
        size: bytes per piece; None feeds it whole.
        broken: the connection is lost at the end.
    """
    framing = framing_of(subject, exchange)
    events: list[StreamEvent] = []
    decoder: StreamDecoder | None = None
    try:
        decoder = StreamDecoder(subject.provider, framer(framing), subject.context(exchange))
        for piece in pieces(exchange.body if body is None else body, size):
            events += decoder.feed(piece)
        events += decoder.end(broken=broken)
        return Read(events=tuple(events), message=decoder.message(broken=OSError("cut") if broken else None))
    except InterlinguaError as error:
        partial = error.partial
        if not isinstance(partial, Message) and decoder is not None:
            partial = decoder.partial()
        return Read(events=tuple(events), message=partial, error=error)
    except Exception as error:  # what no hook may let out
        return Read(events=tuple(events), escaped=error)


def read_whole(subject: Subject, exchange: Exchange, body: bytes | None = None, *, status: int | None = None) -> Read:
    """Read a whole body."""
    response = WireResponse(
        status=exchange.status if status is None else status,
        headers=exchange.headers,
        body=exchange.body if body is None else body,
    )
    try:
        return Read(message=subject.provider.from_wire_response(response, subject.context(exchange)))
    except InterlinguaError as error:
        return Read(message=error.partial if isinstance(error.partial, Message) else None, error=error)
    except Exception as error:  # what no hook may let out
        return Read(escaped=error)


def read(subject: Subject, exchange: Exchange, body: bytes | None = None) -> Read:
    """Read an answer by the road it came on."""
    road = read_stream if exchange.streamed else read_whole
    return road(subject, exchange, body)

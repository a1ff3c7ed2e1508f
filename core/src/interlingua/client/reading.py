"""One streamed answer being read, without input or output: bytes in, events out, the message or its failure at the end.

Never waits; it also takes the servers that answer a request for a stream with one JSON body.
The two message streams and their outcome come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interlingua.client.decoder import StreamDecoder
from interlingua.client.exchange import Exchange
from interlingua.client.replayed import events_of
from interlingua.errors import InterlinguaError, ResponseTimeout
from interlingua.events import ErrorEvent, StreamEvent
from interlingua.framing import framer
from interlingua.jsontext import loads
from interlingua.messages import Message, MessageStatus

_BLANK = b"\xef\xbb\xbf \t\r\n"


class Reading:
    """The bytes of one attempt's answer, on their way to a message.

    Attributes:
        feed: takes bytes, returns the events they complete.
        error: what ended the answer, once something did.
    """

    feed: Callable[[bytes], list[StreamEvent]]

    def __init__(self, exchange: Exchange, status: int, headers: Mapping[str, str]) -> None:
        self._exchange = exchange
        self._status = status
        self._headers = headers
        framing = exchange.connection.framing
        self._decoder = StreamDecoder(exchange.provider, framer(framing), exchange.context)
        self._held = bytearray()
        self._whole: Message | None = None
        self._ended = False
        self.error: InterlinguaError | None = None
        # only a server-sent event cannot begin like JSON; the content type says nothing (recorded: events as JSON)
        self.feed = self._first if framing == "sse" else self._decoder.feed

    def _first(self, data: bytes) -> list[StreamEvent]:
        """Look at the first bytes that are not blank: an object or a list is a whole body."""
        self._held += data
        start = self._held.lstrip(_BLANK)
        if not start:
            return []
        if start.startswith((b"{", b"[")):
            self.feed = self._hold
            return []
        self.feed = self._decoder.feed
        return self._decoder.feed(bytes(self._held))

    def _hold(self, data: bytes) -> list[StreamEvent]:
        self._held += data
        return []

    def end(self, broken: InterlinguaError | None = None) -> list[StreamEvent]:
        """The body is over; return the last events, with a terminal error event if it ended badly. Once.

        Args:
            broken: why it ended, where it did not end in good order.
        """
        events: list[StreamEvent] = []
        if self._ended:
            return events
        self._ended = True
        if self.feed == self._hold:
            whole = self._read_whole() if broken is None else None
            if whole is not None:
                return whole
            events = self._decoder.feed(bytes(self._held))
        events += self._decoder.end(broken=broken is not None)
        try:
            self._decoder.message(broken=broken)
        except InterlinguaError as error:
            if isinstance(broken, ResponseTimeout) and self._decoder.failed is None:
                broken.partial = error.partial
                error = broken
            self._fail(error)
            if not events or type(events[-1]) is not ErrorEvent:
                events.append(ErrorEvent(error=error))
        return events

    def _read_whole(self) -> list[StreamEvent] | None:
        body = bytes(self._held)
        try:
            loads(body.lstrip(_BLANK))
        except ValueError:
            return None
        try:
            self._whole = self._exchange.read(self._status, self._headers, body)
        except InterlinguaError as error:
            self._fail(error)
            return [ErrorEvent(error=error)]
        return events_of(self._whole)

    def _fail(self, error: InterlinguaError) -> None:
        self.error = self._exchange.credited(error, self._headers)
        error.provider = error.provider or self._exchange.provider.key
        error.model = error.model or self._exchange.options.model
        if error.partial is not None:
            error.partial = self._exchange.finished(error.partial)

    def message(self) -> Message:
        """Return the message, after `end`.

        Raises:
            InterlinguaError: what ended the answer, with `.partial`.
        """
        if self.error is not None:
            raise self.error
        return self._whole or self._exchange.finished(self._decoder.message())

    def partial(self, status: MessageStatus) -> Message:
        """Return what was received so far."""
        return self._whole or self._exchange.finished(self._decoder.partial(status))

    @property
    def complete(self) -> bool:
        """True once the terminal event of a good end has been read."""
        return self._whole is not None or self._decoder.complete

    def close(self) -> None:
        """Drop the adapter's generator."""
        self._decoder.close()

"""Read the bytes of a streamed answer; a service may answer with a whole body instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from interlingua._json import loads
from interlingua._plugins.errors import describe_html
from interlingua._plugins.wire import EVENT_LIMIT, WireResponse
from interlingua._response.decode import StreamDecoder
from interlingua._response.finalize import AnswerFinalizer, complete_error
from interlingua._response.framing import Framer, check_size, framer
from interlingua.errors import APITimeoutError, InterlinguaError, MalformedResponseError, StreamInterruptedError
from interlingua.types.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.events import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    MessageComplete,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua.types.messages import Message, MessageStatus, StopReason


def message_to_events(message: Message) -> list[StreamEvent]:
    """Return the events of a message, including the terminal one."""
    events: list[StreamEvent] = []
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            events.append(TextDelta(index=index, text=block.text))
        elif isinstance(block, ThinkingBlock):
            events.append(ThinkingDelta(index=index, text=block.text))
        elif isinstance(block, ToolUseBlock):
            keep_raw = block.raw_input is not None
            start = ToolUseStart(
                index=index, id=block.id, name=block.name, provider_id=block.provider_id, keep_raw=keep_raw
            )
            arguments = ToolUseInputDelta(index=index, partial_json=block.input_json)
            events += (start, arguments, ToolUseEnd(index=index, block=block))
            continue
        else:
            events.append(BlockStart(index=index, block=block))
        events.append(BlockEnd(index=index, block=block))
    metadata = message.metadata
    if metadata.usage is not None:
        events.append(UsageUpdate(usage=metadata.usage))
    reason = metadata.stop_reason or StopReason.OTHER
    events.append(MessageComplete(stop_reason=reason, stop_reason_raw=metadata.stop_reason_raw))
    return events


_KEPT = 4096  # bytes of an event stream to keep for its error
_BLANK = b"\xef\xbb\xbf \t\r\n"


def _is_unreadable(events: list[StreamEvent]) -> bool:
    """Return True if the first event reports that the body is not framed as declared."""
    first = events[0] if events else None
    return isinstance(first, ErrorEvent) and isinstance(first.error, (MalformedResponseError, StreamInterruptedError))


class StreamReader:
    """Reads the answer of one attempt: bytes in, events out, and a message at the end."""

    feed: Callable[[bytes], list[StreamEvent]]  # takes bytes and returns the events that they complete

    def __init__(
        self,
        response: AnswerFinalizer,
        framing: str | Callable[[], Framer],
        status: int,
        headers: Mapping[str, str],
        limit: int = EVENT_LIMIT,
    ) -> None:
        self._response = response
        self._status = status
        self._headers = headers
        self._limit = limit
        context = attrs.evolve(response.request.context, response_headers=headers)
        self._framing = framing
        self._decoder = StreamDecoder(response.request.provider, framer(framing, limit), context)
        self.take_follow_up = self._decoder.take_follow_up
        self._held = bytearray()
        self._begin = b""  # the first byte that is not whitespace
        self._whole: Message | None = None
        self._failure: list[StreamEvent] | None = None
        self._ended = False
        self._binary = callable(framing)
        self.error: InterlinguaError | None = None
        # Server-sent events cannot begin like JSON. Content types do not help: services send events as JSON.
        self.feed = self._first if framing == "sse" else self._try

    def _first(self, data: bytes) -> list[StreamEvent]:
        """Decide by the first byte that is not whitespace: an object, an array or an HTML page is a whole body."""
        self._hold(data)
        if not self._begin:
            return []
        if self._begin in b"{[<":
            self.feed = self._hold
            return []
        self.feed, held = self._decoder.feed, bytes(self._held)
        del self._held[_KEPT:]
        return self._decoder.feed(held)

    def _hold(self, data: bytes) -> list[StreamEvent]:
        self._held += data
        self._begin = self._begin or data.lstrip(_BLANK)[:1]
        check_size(self._held, self._limit)
        return []

    def _try(self, data: bytes) -> list[StreamEvent]:
        """Feed the decoder until its first event: a body like JSON that it cannot read may be a whole answer."""
        self._hold(data)
        if self._begin == b"<":
            self.feed = self._hold
            return []
        events = self._decoder.feed(data)
        if self._begin and self._begin not in b"{[":
            self.feed = self._decoder.feed
        elif _is_unreadable(events):
            self._failure, self.feed = events, self._hold
            return []
        elif events:
            self.feed = self._decoder.feed
        return events

    def end(self, broken: InterlinguaError | None = None) -> list[StreamEvent]:
        """Return the last events after the end of the body; `broken` is the error that ended it, if any."""
        events: list[StreamEvent] = []
        if self._ended:
            return events
        self._ended = True
        if self.feed == self._try:  # no event yet
            events = self._decoder.end(broken=broken is not None)
            if _is_unreadable(events) or (self._binary and not events):
                self._failure, self.feed = events, self._hold
        if self.feed == self._hold:
            whole = self._read_whole() if broken is None else None
            if whole is not None:
                return whole
            events = self._decoder.feed(bytes(self._held)) if self._failure is None else self._failure
        events += self._decoder.end(broken=broken is not None)
        try:
            self._decoder.message(broken=broken)
        except InterlinguaError as error:
            if isinstance(broken, APITimeoutError) and self._decoder.failed is None:
                broken.partial = error.partial
                error = broken
            if error.body is None and not error.partial.content:
                error.body = bytes(self._held)  # the body that was not a stream of events
            self._fail(error)
            if self._decoder.failed is None:  # otherwise its event is among these, or was returned before
                events.append(ErrorEvent(error=error))
        return events

    def begin_body(self) -> None:
        """Read the body of a follow-up, which continues the stream."""
        self._decoder.begin_body(framer(self._framing, self._limit))

    def _read_whole(self) -> list[StreamEvent] | None:
        body = bytes(self._held)
        response = WireResponse(status=self._status, headers=self._headers, body=body)
        if page := describe_html(response):
            error = MalformedResponseError(page, status=self._status, body=body)
            self._fail(error)
            return [ErrorEvent(error=error)]
        try:
            loads(body.lstrip(_BLANK))
        except ValueError:
            return None
        try:
            self._whole = self._response.read(response)
        except InterlinguaError as error:
            self._fail(error)
            return [ErrorEvent(error=error)]
        return message_to_events(self._whole)

    def _fail(self, error: InterlinguaError) -> None:
        self.error = complete_error(error, self._headers, self._response.request_id_headers, self._response.sent)
        error.provider = error.provider or self._response.request.provider.key
        error.model = error.model or self._response.request.options.model
        if error.partial is not None:
            error.partial = self._response.finalize(error.partial)

    def message(self) -> Message:
        """Return the message, after `end`, or raise the error that ended the answer, with `.partial`."""
        if self.error is not None:
            raise self.error
        return self._whole or self._response.finalize(self._decoder.message())

    def partial(self, status: MessageStatus) -> Message:
        """Return the message received so far."""
        return self._whole or self._response.finalize(self._decoder.partial(status))

    @property
    def complete(self) -> bool:
        """True after the terminal event of a complete answer."""
        return self._whole is not None or self._decoder.complete

    def close(self) -> None:
        """Close the generator of the plugin."""
        self._decoder.close()

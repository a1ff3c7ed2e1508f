"""Decode one streamed answer: bytes in, events out, and a message at the end.

This module does no I/O and never waits: it advances the async generator of the plugin itself, so that both clients
share the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import coroutine
from typing import Any

import attrs

from interlingua._json import repair_surrogates
from interlingua._plugins.provider import UNREADABLE, Provider
from interlingua._plugins.wire import FollowUp, RequestContext, WireChunk
from interlingua._response.framing import Framer, NdjsonFramer, SseFramer
from interlingua.errors import InterlinguaError, MalformedResponseError, PluginError, StreamInterruptedError
from interlingua.types.blocks import ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock, read_tool_input
from interlingua.types.events import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    UsageUpdate,
)
from interlingua.types.messages import ErrorInfo, Loss, Message, MessageStatus, StopReason, Usage

UNFINISHED = "the call was cut off before its arguments were whole"


@attrs.define
class _Slot:
    """One block being built."""

    kind: type
    pieces: list[str] = attrs.field(factory=list)
    start: ToolUseStart | None = None
    block: ContentBlock | None = None
    ended: bool = False


class MessageAssembler:
    """Builds a message from the events of a stream; blocks are sorted by index."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._slots: dict[int, _Slot] = {}
        self._usage: Usage | None = None
        self._replay: dict[str, Any] = {}
        self._trace: dict[str, Any] = {}
        self._losses: tuple[Loss, ...] = ()
        self.complete: MessageComplete | None = None
        self.error: InterlinguaError | None = None
        self.follow_up: Any = None  # announced last, and not yet taken
        # the block that receives text at the moment: most events only append to it
        self._hot: type | None = None
        self._hot_index = -1
        self._append: Callable[[str], None]

    def feed(self, events: Iterable[StreamEvent]) -> None:
        """Take events in order.

        Raises:
            PluginError: an event refers to a block that was never started, or contradicts it.
        """
        for event in events:
            kind: Any = type(event)
            if kind is self._hot and event.index == self._hot_index:  # type: ignore[union-attr]
                self._append(event.partial_json if kind is ToolUseInputDelta else event.text)  # type: ignore[union-attr]
            else:
                _HANDLERS[kind](self, event)

    def _slot(self, event: Any, kind: type, *, started: bool = False) -> _Slot:
        """Return the block of this kind that an event refers to; create it unless it must have been started."""
        slot = self._slots.get(event.index)
        if slot is None and not started:
            slot = self._slots[event.index] = _Slot(kind)
        elif slot is None or slot.kind is not kind:
            place = "but no call was started" if slot is None or started else f"which is a {slot.kind.__name__}"
            name = kind if isinstance(event, (BlockStart, BlockEnd)) else type(event)
            raise PluginError(f"{name.__name__} for block {event.index}, {place}")
        return slot

    def _piece(self, event: TextDelta | ThinkingDelta | ToolUseInputDelta) -> None:
        kind: Any = type(event)
        pieces = self._slot(event, _BUILDS[kind], started=kind is ToolUseInputDelta).pieces
        self._hot, self._hot_index, self._append = kind, event.index, pieces.append
        pieces.append(getattr(event, _PIECES[kind]))

    def _call_start(self, event: ToolUseStart) -> None:
        if event.index in self._slots:
            raise PluginError(f"duplicate ToolUseStart for block {event.index}")
        self._slots[event.index] = _Slot(ToolUseBlock, start=event)

    def _call_end(self, event: ToolUseEnd) -> None:
        slot = self._slot(event, ToolUseBlock, started=True)
        slot.ended = True
        slot.block = event.block or slot.block

    def _block(self, event: BlockStart | BlockEnd) -> None:
        slot = self._slot(event, type(event.block))
        slot.block = event.block
        slot.ended = type(event) is BlockEnd

    def _usage_update(self, event: UsageUpdate) -> None:
        self._usage = event.usage if self._usage is None else self._usage.updated(event.usage)

    def _raw_update(self, event: RawUpdate) -> None:
        self._replay.update(event.replay or ())
        self._trace.update(event.trace or ())
        self.follow_up = event.follow_up or self.follow_up
        if event.losses is not None:
            self._losses = event.losses

    def _terminal(self, event: MessageComplete | ErrorEvent) -> None:
        if isinstance(event, ErrorEvent):
            self.error = event.error
        else:
            self.complete = event

    def message(self, status: MessageStatus = MessageStatus.PARTIAL, error: BaseException | None = None) -> Message:
        """Return the message so far; incomplete calls have a `parse_error`. `error` ended the stream."""
        unfinished = status is not MessageStatus.COMPLETE
        content = [_build(slot, unfinished=unfinished) for _, slot in sorted(self._slots.items())]
        reason, raw = (self.complete.stop_reason, self.complete.stop_reason_raw) if self.complete else (None, None)
        if error is not None:
            reason = reason or StopReason.ERROR
        return self._context.message(
            content,
            stop_reason=reason,
            stop_reason_raw=raw,
            usage=self._usage,
            replay=self._replay or None,
            trace=self._trace or None,
            losses=self._losses,
            status=status,
            error=None if error is None else ErrorInfo(type=type(error).__name__, message=str(error)),
        )


def _build(slot: _Slot, *, unfinished: bool) -> ContentBlock:
    text = "".join(slot.pieces)
    if slot.start is None or slot.block is not None:
        if slot.block is None:
            return slot.kind(text=text)  # type: ignore[no-any-return]
        if slot.pieces and isinstance(slot.block, (TextBlock, ThinkingBlock)):
            return attrs.evolve(slot.block, text=text)
        return slot.block
    value, error = read_tool_input(text)
    if unfinished and not slot.ended:
        error = error or UNFINISHED
    return ToolUseBlock(
        id=slot.start.id,
        name=slot.start.name,
        input=value,
        provider_id=slot.start.provider_id,
        raw_input=text if slot.start.keep_raw or error else None,
        parse_error=error,
    )


_PIECES: dict[Any, str] = {TextDelta: "text", ThinkingDelta: "text", ToolUseInputDelta: "partial_json"}
_BUILDS: dict[Any, type] = {TextDelta: TextBlock, ThinkingDelta: ThinkingBlock, ToolUseInputDelta: ToolUseBlock}
_HANDLERS: dict[type, Callable[[MessageAssembler, Any], None]] = {
    **dict.fromkeys(_PIECES, MessageAssembler._piece),
    ToolUseStart: MessageAssembler._call_start,
    ToolUseEnd: MessageAssembler._call_end,
    BlockStart: MessageAssembler._block,
    BlockEnd: MessageAssembler._block,
    UsageUpdate: MessageAssembler._usage_update,
    RawUpdate: MessageAssembler._raw_update,
    MessageComplete: MessageAssembler._terminal,
    ErrorEvent: MessageAssembler._terminal,
}


class _HalfJoiner:
    """Joins surrogate halves that a service sent in two deltas: the first half is held until the second arrives.

    A half that remains alone becomes U+FFFD, as in whole answers.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Any, str]] = {}

    def join(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        for event in events:
            kind: Any = type(event)
            if kind not in _PIECES:
                if kind is MessageComplete or kind is ErrorEvent:
                    out += self.rest()
                elif isinstance(event, (BlockStart, BlockEnd, ToolUseEnd)):
                    out += self.rest(event.index)
                out.append(event)
                continue
            index, given = event.index, getattr(event, _PIECES[kind])  # type: ignore[union-attr]
            if self._waiting.get(index, (kind,))[0] is not kind:
                out += self.rest(index)
            text = self._waiting.pop(index, (kind, ""))[1] + given
            if "\ud800" <= text[-1:] <= "\udbff":
                self._waiting[index] = kind, text[-1]
                text = text[:-1]
            text = repair_surrogates(text)
            if text == given:
                out.append(event)
            elif text:
                out.append(kind(index=index, **{_PIECES[kind]: text}))
        return out

    def rest(self, index: int | None = None) -> list[StreamEvent]:
        """Return the remaining halves as U+FFFD, of one block or of all blocks."""
        alone = list(self._waiting) if index is None else [index] if index in self._waiting else []
        kinds = [(at, self._waiting.pop(at)[0]) for at in alone]
        return [kind(index=at, **{_PIECES[kind]: "\ufffd"}) for at, kind in kinds]


_MORE = object()


@coroutine
def _pause() -> Generator[object, None, None]:
    """Yield once to the code that advances the plugin."""
    yield _MORE


_ESCAPE = re.compile(rb"\\(?:u|\Z)")  # a third of the time of `in`


class StreamDecoder:
    """Turns the bytes of one streamed answer into events and, at the end, into its message."""

    def __init__(self, provider: Provider, framer: Framer, context: RequestContext) -> None:
        self._provider = provider
        self._framer = framer
        self._frame = framer.feed
        self._context = context
        self._assembler = MessageAssembler(context)
        self._batch: list[WireChunk] | None = None
        self._out: list[StreamEvent] = []
        self._assemble = self._assembler.feed
        self._pump: Any = self._run()
        self._resume = self._pump.send
        self._done = self._closed = False
        self._halves = _HalfJoiner()
        # in SSE and NDJSON only escapes contain halves of characters; other framings are opaque here
        self._escaped = not isinstance(framer, (SseFramer, NdjsonFramer))
        self._in_last = False  # reading an event that lacks its end because the body ended
        self._complete_before_end = False
        # this class closes the generator itself, so an event loop must not: Python reads the hooks at the first step
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            self._drive(None)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    async def _source(self) -> AsyncIterator[WireChunk]:
        while True:
            await _pause()
            if self._batch is None:
                return
            for chunk in self._batch:
                yield chunk

    async def _run(self) -> None:
        async for event in self._provider.stream_response(self._source(), self._context):
            self._out.append(event)

    def _drive(self, batch: list[WireChunk] | None) -> None:
        """Run the plugin until it needs more chunks; its exception becomes a terminal error event."""
        self._batch = batch
        try:
            wanted = self._resume(None)
            self._batch = None  # free the chunks that were read
        except StopIteration:
            self._done = True
        except (InterlinguaError, *UNREADABLE) as error:
            self._fail(error, "is not valid in this API")
        else:
            if wanted is not _MORE:
                self._pump.close()
                self._fail(PluginError("stream_response awaited something other than its stream"))

    def _fail(self, error: Exception, fault: str = "") -> None:
        """End with an error event; an exception that is not an InterlinguaError becomes MalformedResponseError."""
        self._done = True
        if not isinstance(error, InterlinguaError):
            malformed = MalformedResponseError(f"the stream {fault}: {type(error).__name__}: {error}")
            malformed.__cause__ = error
            error = malformed
        if self._in_last and isinstance(error, MalformedResponseError):
            cut = StreamInterruptedError("the stream ended in the middle of an event")
            cut.__cause__ = error
            error = cut
        self._out.append(ErrorEvent(error=error))

    def _read(self, frame: Callable[..., Iterable[WireChunk]], *data: bytes) -> None:
        """Pass the chunks of a framer to the plugin, also those that precede a failure of the framer."""
        batch: list[WireChunk] = []
        failure: Exception | None = None
        try:
            batch.extend(frame(*data))
        except Exception as error:
            failure = error
        if batch and not self._done:
            self._drive(batch)
        if failure is not None and not self._done:
            self._fail(failure, "cannot be framed")

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take bytes as they arrive; return the events they complete."""
        if not self._escaped and _ESCAPE.search(data):
            self._escaped = True
        self._read(self._frame, data)
        events = self._out
        if events:
            self._out = []
            if self._escaped:
                events = self._halves.join(events)
            self._assemble(events)
            if self._assembler.error is not None:
                self._end_at_error(events)
        return events

    def end(self, *, broken: bool = False) -> list[StreamEvent]:
        """Return the last events after the end of the body (`broken`: the connection was lost)."""
        if self._closed:
            return []
        # the framer may have rejected an event without raising yet: that is not an event that was cut off
        events = [] if self._done or broken else [*self.feed(b"")]
        self._closed = True
        self._complete_before_end = self.complete
        if not self._done and not broken:
            self._in_last = True
            self._read(self._framer.close)
            self._in_last = False
        if not self._done:
            self._drive(None)
        if not self._done:
            self._pump.close()
            self._fail(PluginError("stream_response kept waiting after its stream had ended"))
        last, self._out = [*self._halves.join(self._out), *self._halves.rest()], []
        self._assemble(last)
        if self._assembler.error is not None:
            self._end_at_error(last)
        return events + last

    def _end_at_error(self, events: list[StreamEvent]) -> None:
        """Make the error event the last one; events that the plugin yields after it are ignored."""
        self._done = True
        self._pump.close()
        for at, event in enumerate(events):
            if type(event) is ErrorEvent:
                del events[at + 1 :]
                if event.error.provider is None:
                    event.error.provider, event.error.model = self._context.origin.provider, self._context.origin.model

    @property
    def complete(self) -> bool:
        """True after the terminal event of a complete answer."""
        return self._assembler.complete is not None and self._assembler.error is None

    @property
    def failed(self) -> InterlinguaError | None:
        """The error that the stream reported, or None."""
        return self._assembler.error

    def take_follow_up(self) -> FollowUp | None:
        """Return what the plugin announced to follow, once."""
        found: FollowUp | None = self._assembler.follow_up
        self._assembler.follow_up = None
        return found

    def begin_body(self, framer: Framer) -> None:
        """Read another body, whose events continue the stream; an event that was cut off is dropped."""
        self._framer, self._frame = framer, framer.feed

    def partial(self, status: MessageStatus = MessageStatus.PARTIAL, error: BaseException | None = None) -> Message:
        """Return the message received so far."""
        return self._assembler.message(status, error)

    def message(self, *, broken: BaseException | None = None) -> Message:
        """Return the whole message, after `end`, or raise the error of the stream with `.partial`.

        It is a StreamInterruptedError if the stream ended before its terminal event, or the connection broke.
        """
        error = self._assembler.error
        # A broken connection after the terminal event is harmless; it is fatal if only `end()` produced that event.
        if error is None and (
            self._assembler.complete is None or (broken is not None and not self._complete_before_end)
        ):
            why = str(broken) if broken else "the stream ended before its terminal event"
            origin = self._context.origin
            error = StreamInterruptedError(why, provider=origin.provider, model=origin.model)
            error.__cause__ = broken
        if error is not None:
            error.partial = self.partial(MessageStatus.ERROR, error)
            raise error
        return self._assembler.message(MessageStatus.COMPLETE)

    def close(self) -> None:
        """Close the generator of the plugin; safe at any time."""
        self._done = True
        if not self._pump.cr_running:  # in a thread that was abandoned
            self._pump.close()

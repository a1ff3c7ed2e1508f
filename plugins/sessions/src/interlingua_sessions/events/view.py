"""The view: canonical stream events in, seed 000's `AssistantMessageEvent`s out.

Never reads a stream by itself (`streams` does) and never assembles a message unless an event's partial is read.
`streams` comes in, and whoever has events of a stream without the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from interlingua import InterlinguaError
from interlingua.types.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.types.events import BlockEnd, BlockStart, StreamEvent, ToolUseEnd, ToolUseInputDelta, ToolUseStart
from interlingua.types.events import TextDelta as CanonicalText
from interlingua.types.events import ThinkingDelta as CanonicalThinking
from interlingua.types.messages import Message, MessageStatus, StopReason
from interlingua_sessions.events.assistant import (
    AssistantMessageEvent,
    Done,
    Error,
    SeedStopReason,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua_sessions.events.growth import Growth

_Makers: TypeAlias = dict[type, Callable[..., AssistantMessageEvent]]
_STARTS: _Makers = {TextBlock: TextStart, ThinkingBlock: ThinkingStart, ToolUseBlock: ToolCallStart}
_DELTAS: _Makers = {TextBlock: TextDelta, ThinkingBlock: ThinkingDelta, ToolUseBlock: ToolCallDelta}
_ENDS: _Makers = {TextBlock: TextEnd, ThinkingBlock: ThinkingEnd, ToolUseBlock: ToolCallEnd}
_REASONS: dict[StopReason, SeedStopReason] = {
    StopReason.TOOL_USE: "toolUse",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTEXT_WINDOW: "length",
    StopReason.REFUSAL: "error",
    StopReason.ERROR: "error",
}


def seed_stop_reason(message: Message) -> SeedStopReason:
    """Return why a message ended in seed 000's words; what it has no word for is `stop`."""
    metadata = message.metadata
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    return _REASONS.get(metadata.stop_reason, "stop") if metadata.stop_reason else "stop"


class AssistantView:
    """Turns the stream events of one answer into the seed's, one by one.

    Text, thinking and calls are shown; other blocks (media, opaque, redacted thinking) have no event in the seed. A
    block ends when its adapter says so, else with the answer: a wire may come back to a text after a call.

    Args:
        basis: gives the answer as a message at any moment, for the facts a partial needs; asked when one is read.
    """

    def __init__(self, basis: Callable[[], Message]) -> None:
        self._growth = Growth(basis)
        self._open: dict[int, type] = {}
        self._spoken: set[int] = set()

    def start(self) -> Start:
        """Return the first event."""
        return Start(growing=self._growth, seen=0)

    def feed(self, event: StreamEvent) -> Iterator[AssistantMessageEvent]:
        """Take one stream event and yield what it is to a user interface."""
        kind = type(event)
        if kind is CanonicalText or kind is CanonicalThinking:
            if event.index not in self._growth.places:  # type: ignore[union-attr]
                block = TextBlock if kind is CanonicalText else ThinkingBlock
                yield from self._begin(event.index, block)  # type: ignore[union-attr]
            yield self._delta(event, event.index, event.text)  # type: ignore[union-attr]
        elif isinstance(event, ToolUseInputDelta):
            yield self._delta(event, event.index, event.partial_json)
        elif isinstance(event, ToolUseStart):
            self._growth.events.append(event)
            yield from self._started(event.index, ToolUseBlock)
        elif isinstance(event, ToolUseEnd):
            yield from self._whole(event, event.index, event.block.input_json if event.block else "")
        elif isinstance(event, BlockStart | BlockEnd) and isinstance(event.block, TextBlock | ThinkingBlock):
            yield from self._begin(event.index, type(event.block))
            if isinstance(event, BlockEnd):
                yield from self._whole(event, event.index, event.block.text)
        else:
            self._growth.events.append(event)

    def finish(self, message: Message) -> Iterator[AssistantMessageEvent]:
        """Take the message and yield the last events: open blocks end, then `done`, or `error` if it is not whole."""
        for index in sorted(self._open, key=self._growth.places.__getitem__):
            yield from self._end(index)
        reason = seed_stop_reason(message)
        if reason == "aborted":
            yield Error(reason="aborted", error=message)
        elif reason == "error":
            yield Error(reason="error", error=message)
        else:
            yield Done(reason=reason, message=message)

    def fail(self, error: InterlinguaError) -> Error:
        """Return the last event of an answer that failed."""
        partial = error.partial if isinstance(error.partial, Message) else self._growth.at(len(self._growth.events))
        return Error(reason="error", error=partial, cause=error)

    def _begin(self, index: int, block: type[TextBlock | ThinkingBlock]) -> Iterator[AssistantMessageEvent]:
        """Begin a block before its first words, so that nobody counts them twice."""
        if index not in self._growth.places:
            self._growth.events.append(BlockStart(index=index, block=block(text="")))
            yield from self._started(index, block)

    def _started(self, index: int, block: type) -> Iterator[AssistantMessageEvent]:
        growth = self._growth
        place = growth.places.setdefault(index, len(growth.places))
        self._open[index] = block
        yield _STARTS[block](growing=growth, seen=len(growth.events), content_index=place)

    def _delta(self, event: StreamEvent, index: int, delta: str) -> AssistantMessageEvent:
        growth = self._growth
        growth.events.append(event)
        self._spoken.add(index)
        made = _DELTAS[self._open[index]]
        return made(growing=growth, seen=len(growth.events), content_index=growth.places[index], delta=delta)

    def _whole(self, event: StreamEvent, index: int, content: str) -> Iterator[AssistantMessageEvent]:
        """End a block; what came in one piece is one delta."""
        if content and index not in self._spoken:
            yield self._delta(event, index, content)
        else:
            self._growth.events.append(event)
        yield from self._end(index)

    def _end(self, index: int) -> Iterator[AssistantMessageEvent]:
        growth = self._growth
        block = self._open.pop(index, None)
        if block is not None:
            yield _ENDS[block](growing=growth, seen=len(growth.events), content_index=growth.places[index])

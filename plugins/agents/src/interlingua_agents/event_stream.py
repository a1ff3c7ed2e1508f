"""Turns a stream of canonical events into assistant events: how one answer grows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.plugins import MessageAssembler, RequestContext
from interlingua.types import (
    BlockEnd,
    BlockStart,
    Message,
    MessageStatus,
    Origin,
    RedactedThinkingBlock,
    StopReason,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua.types import TextDelta as CanonicalText
from interlingua.types import ThinkingDelta as CanonicalThinking
from interlingua_agents.events import (
    AssistantMessageEvent,
    AssistantStopReason,
    Done,
    Error,
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
from interlingua_agents.protocols import AsyncCanonicalStream, CanonicalStream


class BlockAccumulator:
    """The events of one answer, and the places of the blocks that are shown.

    Args:
        basis: gives the answer as a message at any moment; its id, origin and time are taken from there.
        turn: which answer of its run it is.
    """

    def __init__(self, basis: Callable[[], Message], turn: int = 1) -> None:
        self.turn = turn
        self.events: list[StreamEvent] = []
        self.places: dict[int, int] = {}
        self._basis = basis
        self._context: RequestContext | None = None

    def at(self, seen: int) -> Message:
        """Return the answer after its first `seen` events: the shown blocks in the order they began."""
        assembler = MessageAssembler(self._known_context())
        assembler.feed(self._shown(seen))
        return assembler.message()

    def _shown(self, seen: int) -> Iterator[StreamEvent]:
        for event in self.events[:seen]:
            index = getattr(event, "index", None)
            if index is None:
                yield event
            elif (place := self.places.get(index)) is not None:
                yield attrs.evolve(event, index=place)  # type: ignore[arg-type]  # it has one: `index` says so

    def _known_context(self) -> RequestContext:
        if self._context is None:
            basis = self._basis()
            known = basis.metadata
            self._context = RequestContext(
                origin=known.origin or Origin("", "", ""),
                message_id=basis.id,
                session_id=basis.session_id,
                clock=lambda: basis.created_at,
                routing=known.routing,
                user_id=known.user_id,
                team_id=known.team_id,
            )
        return self._context


_Makers: TypeAlias = dict[type, Callable[..., AssistantMessageEvent]]
_STARTS: _Makers = {
    TextBlock: TextStart,
    ThinkingBlock: ThinkingStart,
    RedactedThinkingBlock: ThinkingStart,
    ToolUseBlock: ToolCallStart,
}
_DELTAS: _Makers = {TextBlock: TextDelta, ThinkingBlock: ThinkingDelta, ToolUseBlock: ToolCallDelta}
_ENDS: _Makers = {
    TextBlock: TextEnd,
    ThinkingBlock: ThinkingEnd,
    RedactedThinkingBlock: ThinkingEnd,
    ToolUseBlock: ToolCallEnd,
}

ShownBlock: TypeAlias = TextBlock | ThinkingBlock | RedactedThinkingBlock
_EMPTY: dict[type, ShownBlock] = {
    TextBlock: TextBlock(text=""),
    ThinkingBlock: ThinkingBlock(text=""),
    RedactedThinkingBlock: RedactedThinkingBlock(data=""),
}

_REASONS: dict[StopReason, AssistantStopReason] = {
    StopReason.TOOL_USE: "toolUse",
    StopReason.MAX_TOKENS: "length",
    StopReason.CONTEXT_WINDOW: "length",
    StopReason.REFUSAL: "error",
    StopReason.ERROR: "error",
}


def assistant_stop_reason(message: Message) -> AssistantStopReason:
    """Return why a message ended, in the events' words; what they have no word for is `stop`."""
    metadata = message.metadata
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    return _REASONS.get(metadata.stop_reason, "stop") if metadata.stop_reason else "stop"


class AssistantView:
    """Turns the stream events of one answer into assistant events, one by one.

    Text, thinking (redacted too, without words) and calls are shown; other blocks (media, opaque) have no event. A
    block ends when its adapter says so, else with the answer: a wire may come back to a text after a call.

    Args:
        basis: gives the answer as a message at any moment, for the facts a partial needs; asked when one is read.
        turn: which answer of its run it is.
    """

    def __init__(self, basis: Callable[[], Message], turn: int = 1) -> None:
        self._growth = BlockAccumulator(basis, turn)
        self._open: dict[int, type] = {}
        self._spoken: set[int] = set()

    def start(self) -> Start:
        """Return the first event."""
        return Start(growing=self._growth, seen=0)

    def feed(self, event: StreamEvent) -> list[AssistantMessageEvent]:
        """Take one stream event and return the assistant events it is."""
        kind = type(event)
        if kind is CanonicalText or kind is CanonicalThinking:
            index, text = event.index, event.text  # type: ignore[union-attr]
            if index in self._spoken:
                return [self._delta(event, index, text)]
            begun = self._begin(index, TextBlock if kind is CanonicalText else ThinkingBlock)
            return [*begun, self._delta(event, index, text)]
        if isinstance(event, ToolUseInputDelta):
            return [self._delta(event, event.index, event.partial_json)]
        if isinstance(event, ToolUseStart):
            self._growth.events.append(event)
            return [self._started(event.index, ToolUseBlock)]
        if isinstance(event, ToolUseEnd):
            return self._whole(event, event.index, event.block.input_json if event.block else "")
        if isinstance(event, BlockStart | BlockEnd) and isinstance(event.block, ShownBlock):
            begun = self._begin(event.index, type(event.block))
            if isinstance(event, BlockEnd):
                words = "" if isinstance(event.block, RedactedThinkingBlock) else event.block.text
                begun += self._whole(event, event.index, words)
            return begun
        self._growth.events.append(event)
        return []

    def finish(self, message: Message) -> Iterator[AssistantMessageEvent]:
        """Take the message and yield the last events: open blocks end, then `done`, or `error` if it is not whole."""
        for index in sorted(self._open, key=self._growth.places.__getitem__):
            yield from self._end(index)
        reason = assistant_stop_reason(message)
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

    def _begin(self, index: int, block: type[ShownBlock]) -> list[AssistantMessageEvent]:
        """Begin a block before its first words, so that nobody counts them twice."""
        if index in self._growth.places:
            return []
        self._growth.events.append(BlockStart(index=index, block=_EMPTY[block]))
        return [self._started(index, block)]

    def _started(self, index: int, block: type) -> AssistantMessageEvent:
        growth = self._growth
        place = growth.places.setdefault(index, len(growth.places))
        self._open[index] = block
        return _STARTS[block](growing=growth, seen=len(growth.events), content_index=place)

    def _delta(self, event: StreamEvent, index: int, delta: str) -> AssistantMessageEvent:
        growth, events = self._growth, self._growth.events
        events.append(event)
        self._spoken.add(index)
        make = _DELTAS[self._open[index]]
        return make(growing=growth, seen=len(events), content_index=growth.places[index], delta=delta)

    def _whole(self, event: StreamEvent, index: int, content: str) -> list[AssistantMessageEvent]:
        """End a block; what came in one piece is one delta."""
        if content and index not in self._spoken:
            return [self._delta(event, index, content), *self._end(index)]
        self._growth.events.append(event)
        return self._end(index)

    def _end(self, index: int) -> list[AssistantMessageEvent]:
        growth = self._growth
        block = self._open.pop(index, None)
        if block is None:
            return []
        return [_ENDS[block](growing=growth, seen=len(growth.events), content_index=growth.places[index])]


def assistant_events(stream: CanonicalStream, turn: int = 1) -> Iterator[AssistantMessageEvent]:
    """Yield an open stream's events as assistant events; a failure is the last event and is not raised.

    Args:
        stream: of a client or a session.
        turn: which answer of its run it is.
    """
    view = AssistantView(lambda: stream.partial, turn)
    yield view.start()
    try:
        for event in stream:
            yield from view.feed(event)
        yield from view.finish(stream.message)
    except InterlinguaError as error:
        yield view.fail(error)


async def assistant_events_async(
    stream: AsyncCanonicalStream, turn: int = 1
) -> AsyncGenerator[AssistantMessageEvent, None]:
    """As `assistant_events`, for asynchronous code."""
    view = AssistantView(lambda: stream.partial, turn)
    yield view.start()
    try:
        async for event in stream:
            for shown in view.feed(event):
                yield shown
        for shown in view.finish(await stream.message):
            yield shown
    except InterlinguaError as error:
        yield view.fail(error)

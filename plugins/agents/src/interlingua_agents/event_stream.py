"""Converts a stream of canonical events into assistant events, which describe how one answer grows."""

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
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua_agents.events import (
    AgentTextDelta,
    AgentTextEnd,
    AgentTextStart,
    AgentThinkingDelta,
    AgentThinkingEnd,
    AgentThinkingStart,
    AnswerDone,
    AnswerError,
    AnswerStart,
    AssistantMessageEvent,
    AssistantStopReason,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua_agents.protocols import AsyncCanonicalStream, CanonicalStream


class EventBlocks:
    """The events of one answer, and the positions of its visible blocks.

    Args:
        basis: returns the answer as a message at any time; its id, origin and time are taken from there.
        turn: number of the answer in its run.
    """

    def __init__(self, basis: Callable[[], Message], turn: int = 1) -> None:
        self.turn = turn
        self.events: list[StreamEvent] = []
        self.places: dict[int, int] = {}
        self._basis = basis
        self._context: RequestContext | None = None

    def at(self, seen: int) -> Message:
        """Return the answer after its first `seen` events: the visible blocks in the order they began."""
        assembler = MessageAssembler(self._known_context())
        assembler.feed(self._shown(seen))
        return assembler.message()

    def _shown(self, seen: int) -> Iterator[StreamEvent]:
        for event in self.events[:seen]:
            index = getattr(event, "index", None)
            if index is None:
                yield event
            elif (place := self.places.get(index)) is not None:
                yield attrs.evolve(event, index=place)  # type: ignore[arg-type]  # events with an index have the field

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
    TextBlock: AgentTextStart,
    ThinkingBlock: AgentThinkingStart,
    RedactedThinkingBlock: AgentThinkingStart,
    ToolUseBlock: ToolCallStart,
}
_DELTAS: _Makers = {TextBlock: AgentTextDelta, ThinkingBlock: AgentThinkingDelta, ToolUseBlock: ToolCallDelta}
_ENDS: _Makers = {
    TextBlock: AgentTextEnd,
    ThinkingBlock: AgentThinkingEnd,
    RedactedThinkingBlock: AgentThinkingEnd,
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
    """Return the reason why a message ended, in the events' words; `stop` if they have no word for it."""
    metadata = message.metadata
    if metadata.status is MessageStatus.ERROR:
        return "error"
    if metadata.status is not MessageStatus.COMPLETE:
        return "aborted"
    return _REASONS.get(metadata.stop_reason, "stop") if metadata.stop_reason else "stop"


class AssistantView:
    """Converts the stream events of one answer into assistant events, one by one.

    Text, thinking (redacted too, without words) and calls have events; other blocks (media, opaque) have none. A block
    ends when its plugin reports the end, else with the answer, because a service may continue text after a call.

    Args:
        basis: returns the answer as a message at any time; called when a partial is read, which needs its facts.
        turn: number of the answer in its run.
    """

    def __init__(self, basis: Callable[[], Message], turn: int = 1) -> None:
        self._growth = EventBlocks(basis, turn)
        self._open: dict[int, type] = {}
        self._spoken: set[int] = set()

    def start(self) -> AnswerStart:
        """Return the first event."""
        return AnswerStart(growing=self._growth, seen=0)

    def feed(self, event: StreamEvent) -> list[AssistantMessageEvent]:
        """Convert one stream event into assistant events."""
        kind = type(event)
        if kind is TextDelta or kind is ThinkingDelta:
            index, text = event.index, event.text  # type: ignore[union-attr]
            if index in self._spoken:
                return [self._delta(event, index, text)]
            begun = self._begin(index, TextBlock if kind is TextDelta else ThinkingBlock)
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
        """Yield the last events: open blocks end, then `done`, or `error` if the message is incomplete."""
        for index in sorted(self._open, key=self._growth.places.__getitem__):
            yield from self._end(index)
        reason = assistant_stop_reason(message)
        if reason == "aborted":
            yield AnswerError(reason="aborted", error=message)
        elif reason == "error":
            yield AnswerError(reason="error", error=message)
        else:
            yield AnswerDone(reason=reason, message=message)

    def fail(self, error: InterlinguaError) -> AnswerError:
        """Return the last event of an answer that failed."""
        partial = error.partial if isinstance(error.partial, Message) else self._growth.at(len(self._growth.events))
        return AnswerError(reason="error", error=partial, cause=error)

    def _begin(self, index: int, block: type[ShownBlock]) -> list[AssistantMessageEvent]:
        """Begin a block before its first words, so that they are not counted twice."""
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
        """End a block; content that arrived in one piece becomes one delta."""
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
        stream: an open stream of a client or a session.
        turn: number of the answer in its run.
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
    """`assistant_events` for asynchronous code."""
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

"""Converts the stream events of an answer into the events of a run that describe how it grows."""

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
    Origin,
    RedactedThinkingBlock,
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
    MessageEnd,
    MessageStart,
    RunEvent,
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


_Makers: TypeAlias = dict[type, Callable[..., RunEvent]]
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


class AnswerView:
    """Converts the stream events of one answer into events of a run, one by one.

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

    def start(self) -> MessageStart:
        """Return the first event, with an empty message."""
        return MessageStart(turn=self._growth.turn, message=self._growth.at(0))

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Convert one stream event into events of a run."""
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

    def end_blocks(self) -> list[RunEvent]:
        """Return the ends of the blocks that are still open, after the last stream event."""
        places = self._growth.places
        return [end for index in sorted(self._open, key=places.__getitem__) for end in self._end(index)]

    def end(self, message: Message) -> MessageEnd:
        """Return the last event of an answer."""
        return MessageEnd(turn=self._growth.turn, message=message)

    def fail(self, error: InterlinguaError) -> MessageEnd:
        """Return the last event of an answer that failed."""
        partial = error.partial if isinstance(error.partial, Message) else self._growth.at(len(self._growth.events))
        return MessageEnd(turn=self._growth.turn, message=partial, error=error)

    def _begin(self, index: int, block: type[ShownBlock]) -> list[RunEvent]:
        """Begin a block before its first words, so that they are not counted twice."""
        if index in self._growth.places:
            return []
        self._growth.events.append(BlockStart(index=index, block=_EMPTY[block]))
        return [self._started(index, block)]

    def _started(self, index: int, block: type) -> RunEvent:
        growth = self._growth
        place = growth.places.setdefault(index, len(growth.places))
        self._open[index] = block
        return _STARTS[block](growing=growth, seen=len(growth.events), content_index=place)

    def _delta(self, event: StreamEvent, index: int, delta: str) -> RunEvent:
        growth, events = self._growth, self._growth.events
        events.append(event)
        self._spoken.add(index)
        make = _DELTAS[self._open[index]]
        return make(growing=growth, seen=len(events), content_index=growth.places[index], delta=delta)

    def _whole(self, event: StreamEvent, index: int, content: str) -> list[RunEvent]:
        """End a block; content that arrived in one piece becomes one delta."""
        if content and index not in self._spoken:
            return [self._delta(event, index, content), *self._end(index)]
        self._growth.events.append(event)
        return self._end(index)

    def _end(self, index: int) -> list[RunEvent]:
        growth = self._growth
        block = self._open.pop(index, None)
        if block is None:
            return []
        return [_ENDS[block](growing=growth, seen=len(growth.events), content_index=growth.places[index])]


def whole_answer_events(message: Message, turn: int) -> list[RunEvent]:
    """Return the events of an answer that arrived in one piece, without its end: each block is one delta."""
    view = AnswerView(lambda: message, turn)
    events: list[RunEvent] = [MessageStart(turn=turn, message=message)]
    for index, block in enumerate(message.content):
        if isinstance(block, ToolUseBlock):
            events += view.feed(ToolUseStart(index=index, id=block.id, name=block.name, provider_id=block.provider_id))
            events += view.feed(ToolUseEnd(index=index, block=block))
        elif isinstance(block, ShownBlock):
            events += view.feed(BlockEnd(index=index, block=block))
    return events


def answer_events(stream: CanonicalStream) -> Iterator[RunEvent]:
    """Yield the growth of one answer as the events of a run; a failure is in the last event and is not raised.

    Args:
        stream: an open stream of a client or a session.
    """
    view = AnswerView(lambda: stream.partial)
    yield view.start()
    try:
        for event in stream:
            yield from view.feed(event)
        message = stream.message
    except InterlinguaError as error:
        yield view.fail(error)
        return
    yield from view.end_blocks()
    yield view.end(message)


async def answer_events_async(stream: AsyncCanonicalStream) -> AsyncGenerator[RunEvent, None]:
    """`answer_events` for asynchronous code."""
    view = AnswerView(lambda: stream.partial)
    yield view.start()
    try:
        async for event in stream:
            for shown in view.feed(event):
                yield shown
        message = await stream.message
    except InterlinguaError as error:
        yield view.fail(error)
        return
    for shown in view.end_blocks():
        yield shown
    yield view.end(message)

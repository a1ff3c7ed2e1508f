"""The events of one run: passed to a listener at once, and collected for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import attrs

from interlingua.types import Message, StreamEvent, TextBlock, ThinkingBlock
from interlingua_agents import events as ev
from interlingua_agents.event_stream import AssistantView
from interlingua_agents.results import OutputPartial, RunEvent
from interlingua_agents.typed_output import OutputSteps

Listener: TypeAlias = Callable[[ev.AgentEvent], None]


class RunEvents:
    """Emits the events of one run.

    Args:
        listener: called with every agent event; None for no listener.
        collected: whether `take` is called.
        output: reads the growth of a typed answer; None for text.

    Attributes:
        is_collected: whether `take` is called.
        is_wanted: True if the growth of answers is wanted.
        muted: True to stop emitting the growth of answers, after the run was cancelled.
    """

    def __init__(self, listener: Listener | None, output: OutputSteps | None, *, collected: bool) -> None:
        self.is_wanted = collected or listener is not None
        self.muted = False
        self._listener = listener
        self.is_collected = collected
        self._output = output
        self._events: list[RunEvent] = []
        self._view: AssistantView
        self._turn = 0

    def take(self) -> list[RunEvent]:
        """Return the events collected since the last call."""
        events, self._events = self._events, []
        return events

    def collect(self, event: RunEvent) -> None:
        """Add an event for the stream."""
        if self.is_collected:
            self._events.append(event)

    def emit(self, event: ev.AgentEvent, streamed: RunEvent | None = None) -> None:
        """Pass an event to the listener; add `streamed`, its counterpart in a stream, if it has one."""
        if self._listener is not None:
            self._listener(event)
        if self.is_collected and streamed is not None:
            self._events.append(streamed)

    def start_answer(self, partial: Callable[[], Message], turn: int) -> None:
        """Emit the start of a streamed answer; `partial` returns the part received so far."""
        self._view = AssistantView(partial, turn)
        self._turn = turn
        self._emit_growth(self._view.start())

    def grow_answer(self, events: Sequence[StreamEvent]) -> None:
        """Emit the stream events of one read."""
        for event in events:
            if self.muted:
                return
            if self.is_collected and self._output is not None and (part := self._output.feed(event)) is not None:
                self._events.append(OutputPartial(turn=self._turn, value=part.value, closed=part.closed))
            for shown in self._view.feed(event):
                self._emit_growth(shown)

    def end_answer(self, answer: Message) -> None:
        """Emit the ends of a streamed answer's blocks. Its `MessageEnd` follows when it is counted."""
        for shown in self._view.finish(answer):
            self._emit_growth(shown)

    def emit_whole_answer(self, answer: Message, turn: int) -> None:
        """Emit an answer that was not streamed."""
        if not self.is_wanted:
            return
        self.emit(ev.MessageStart(message=answer))
        for at, block in enumerate(answer.content):
            if isinstance(block, TextBlock | ThinkingBlock) and block.text:
                make = ev.AgentTextDelta if isinstance(block, TextBlock) else ev.AgentThinkingDelta
                growing = _WholeAnswer(answer, turn)
                self.collect(make(growing=growing, seen=0, content_index=at, delta=block.text))

    def visible(self, events: Sequence[RunEvent]) -> Iterator[RunEvent]:
        """Yield collected events, without the growth of answers once the run was cancelled."""
        for event in events:
            if not (self.muted and isinstance(event, _GROWTH)):
                yield event

    def _emit_growth(self, event: ev.AssistantMessageEvent) -> None:
        if self._listener is not None:
            if event.type == "start":
                self._listener(ev.MessageStart(message=event.partial))
            elif event.type not in ("done", "error"):
                self._listener(ev.MessageUpdate(assistant_message_event=event))
        if self.is_collected and (type(event) is ev.AgentTextDelta or type(event) is ev.AgentThinkingDelta):
            self._events.append(event)


_GROWTH = (ev.AgentTextDelta, ev.AgentThinkingDelta, OutputPartial)


@attrs.frozen
class _WholeAnswer:
    """An answer that arrived in one piece, for events that refer to a growing answer."""

    message: Message
    turn: int

    def at(self, _seen: int) -> Message:
        return self.message

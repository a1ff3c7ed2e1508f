"""Passes the events of one run to a listener at once, and collects them for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from interlingua.types import Message, StreamEvent
from interlingua_agents.event_stream import AnswerView, whole_answer_events
from interlingua_agents.events import AgentTextDelta, AgentThinkingDelta, OutputPartial, RunEvent, ToolCallDelta
from interlingua_agents.typed_output import OutputSteps

Listener: TypeAlias = Callable[[RunEvent], None]
_GROWTH = (AgentTextDelta, AgentThinkingDelta, ToolCallDelta, OutputPartial)


class RunEvents:
    """Emits the events of one run.

    Args:
        listener: called with every event; None for no listener.
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
        self._view: AnswerView
        self._turn = 0

    def take(self) -> list[RunEvent]:
        """Return the events collected since the last call."""
        events, self._events = self._events, []
        return events

    def emit(self, event: RunEvent) -> None:
        """Pass an event to the listener, and add it for the stream."""
        if self._listener is not None:
            self._listener(event)
        if self.is_collected:
            self._events.append(event)

    def start_answer(self, partial: Callable[[], Message], turn: int) -> None:
        """Emit the start of a streamed answer; `partial` returns the part received so far."""
        self._view = AnswerView(partial, turn)
        self._turn = turn
        self.emit(self._view.start())

    def grow_answer(self, events: Sequence[StreamEvent]) -> None:
        """Emit the stream events of one read."""
        for event in events:
            if self.muted:
                return
            if self._output is not None and (part := self._output.feed(event)) is not None:
                self.emit(OutputPartial(turn=self._turn, value=part.value, closed=part.closed))
            for shown in self._view.feed(event):
                self.emit(shown)

    def end_answer(self) -> None:
        """Emit the ends of a streamed answer's blocks. Its `MessageEnd` follows when it is counted."""
        for shown in self._view.end_blocks():
            self.emit(shown)

    def emit_whole_answer(self, answer: Message, turn: int) -> None:
        """Emit an answer that was not streamed, without its `MessageEnd`."""
        if self.is_wanted:
            for event in whole_answer_events(answer, turn):
                self.emit(event)

    def visible(self, events: Sequence[RunEvent]) -> Iterator[RunEvent]:
        """Yield collected events, without the growth of answers once the run was cancelled."""
        for event in events:
            if not (self.muted and isinstance(event, _GROWTH)):
                yield event

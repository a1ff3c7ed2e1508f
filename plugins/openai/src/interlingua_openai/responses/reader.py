"""Everything of a stream but its hot path: items begin and end, the terminal event (sheet openai_responses §6).

Never sends a block by itself (`growth` does).
`stream` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from interlingua.errors import StreamInterruptedError
from interlingua.types import ErrorEvent, MessageComplete, RawUpdate, StreamEvent, TextBlock, UsageUpdate
from interlingua_openai.errors import from_wire_error_body
from interlingua_openai.responses.growth import Growth
from interlingua_openai.responses.items import CALLS, from_wire_item
from interlingua_openai.responses.outcome import failure_of, from_wire_stop, from_wire_usage, trace_of
from interlingua_openai.responses.plain import plain_item, plain_items
from interlingua_openai.responses.replay import shell, skeleton
from interlingua_openai.responses.slots import Slot

# the last two are older servers' words
_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
    "response.done": "completed",
}


class Reader(Growth):
    """Reads events in order; once it is `over`, nothing that comes after counts.

    After a terminal event only another answer counts: a body may hold several, one after the other (seen in
    recordings), and the last one's terminal event is the message's.
    """

    over = False
    _ended = False
    _earlier = False
    _answer: Any = None

    @property
    def offset(self) -> int:
        """Place of the present answer's first item."""
        return self._slots.offset

    def read(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Translate one event."""
        kind = event.get("type")
        if self._ended and kind != "response.created":
            return
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            yield from handler(self, event)
        elif kind in _ENDS:
            yield from self._end(event.get("response") or {}, _ENDS[str(kind)])
        elif (failure := failure_of(event)) is not None:
            yield from self.flush()
            yield ErrorEvent(error=from_wire_error_body(failure))
            self.over = True

    # -- items --------------------------------------------------------------------------------------------------

    def _created(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        answer = (event.get("response") or {}).get("id")
        if self._ended or (answer and self._answer and answer != self._answer):
            yield from self.flush()
            self._slots.begin_answer()
            self._earlier = self._earlier or self._ended
            self._ended = False
        self._answer = answer
        if trace := trace_of(event.get("response") or {}):
            yield RawUpdate(trace=trace)

    def _added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        if event.get("item") is None:
            return
        item = plain_item(event["item"])
        slot = self._slots.open(item, event.get("output_index"))
        if slot.kind in CALLS and item.get("name"):
            yield from self._begin_call(slot, item)

    def _item_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = plain_item(event["item"])
        yield from self._settle(self._slots.ending(item, event.get("output_index")), item)
        yield RawUpdate(replay=self._replay())

    def _settle(self, slot: Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        """Take an item as whole: send what was not sent, end its blocks."""
        slot.done = item
        slot.kept = skeleton(item)
        kind = item.get("type")
        if kind == "message":
            parts = item.get("content") or ()
            for at, part in zip(self._places(slot, len(parts)), parts, strict=False):
                yield from self._end_part(slot, at, part)
        elif kind == "reasoning":
            yield from self._end_reasoning(slot, item)
        elif kind in CALLS:
            yield from self._end_call(slot, item)
        else:
            yield from self._end_block(slot, 0, from_wire_item(item, self._context)[0])

    # -- the end ------------------------------------------------------------------------------------------------

    def _replay(self) -> dict[str, Any]:
        return {"items": [slot.kept for slot in self._slots if slot.kept is not None]}

    def _end(self, response: dict[str, Any], named: str) -> Iterator[StreamEvent]:
        """Read a terminal event: its output is the last word on every item, where it has any."""
        output = plain_items(response.get("output"))
        for place, item in enumerate(output):
            slot = self._slots.final(item, place)
            if slot.done != item:
                yield from self._settle(slot, item)
            elif slot.kept is not None:
                slot.kept = {"item": shell(item), "sum": slot.kept["sum"]}  # its keys may stand in another order
        yield from self.flush()
        items = output or [slot.done for slot in self._slots.present() if slot.done is not None]
        if items:
            yield RawUpdate(replay=self._replay())
        yield RawUpdate(trace=trace_of(response))
        if (usage := from_wire_usage(response)) is not None:
            yield UsageUpdate(usage=usage)
        self._ended = True
        if (failure := failure_of({"status": named, **response})) is not None:
            self.over = True
            yield ErrorEvent(error=from_wire_error_body(failure))
            return
        said = items or [slot.item for slot in self._slots.present()]
        reason, raw = from_wire_stop({"status": named, **response}, said)
        yield MessageComplete(stop_reason=reason, stop_reason_raw=raw)

    def close(self) -> Iterator[StreamEvent]:
        """The stream is over; an answer that was cut is not made whole by an earlier one's terminal event."""
        yield from self.flush()
        if self._earlier and not self._ended:
            yield ErrorEvent(
                error=StreamInterruptedError("the last of several answers ended before its terminal event")
            )

    def flush(self) -> Iterator[StreamEvent]:
        """End what is open, so that an interrupted message keeps its citations and opaque items."""
        for slot in self._slots:
            if slot.done is not None:
                continue
            if slot.kind in ("message", "reasoning", *CALLS):
                for at, citations in slot.citations.items():
                    if not self._taken(slot.base + at, self.texts):
                        yield from self._end_block(slot, at, TextBlock(text="", citations=citations))
            elif not slot.ended:
                yield from self._end_block(slot, 0, from_wire_item(slot.item, self._context)[0])


_HANDLERS: dict[str, Callable[[Reader, dict[str, Any]], Iterator[StreamEvent]]] = {
    "response.created": Reader._created,
    "response.output_item.added": Reader._added,
    "response.output_item.done": Reader._item_done,
    "response.content_part.added": Reader._part_added,
    "response.content_part.done": Reader._part_added,
    "response.output_text.delta": Reader._text_delta,
    "response.output_text.done": Reader._text_done,
    "response.output_text.annotation.added": Reader._annotation,
    "response.refusal.delta": Reader._text_delta,
    "response.refusal.done": Reader._text_done,
    "response.reasoning_summary_text.delta": Reader._summary_delta,
    "response.reasoning_summary_text.done": Reader._summary_done,
    "response.reasoning_text.delta": Reader._reasoning_delta,
    "response.reasoning_text.done": Reader._reasoning_done,
    "response.function_call_arguments.delta": Reader._input_delta,
    "response.function_call_arguments.done": Reader._input_done,
    "response.custom_tool_call_input.delta": Reader._input_delta,
    "response.custom_tool_call_input.done": Reader._input_done,
}

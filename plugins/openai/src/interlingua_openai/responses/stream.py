"""Read a stream of the Responses API as canonical events."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from interlingua.errors import StreamInterruptedError
from interlingua.plugins import FollowUp, RequestContext, WireChunk, loads, loads_lossy
from interlingua.types import (
    ErrorEvent,
    MessageComplete,
    RawUpdate,
    StreamEvent,
    TextBlock,
    TextDelta,
    ToolUseInputDelta,
    UsageUpdate,
)
from interlingua_openai.errors import from_wire_error_body
from interlingua_openai.responses.background import stream_follow_up
from interlingua_openai.responses.items import CALLS, from_wire_item, is_call, normalise_item, normalise_items
from interlingua_openai.responses.replay import item_shell, skeleton
from interlingua_openai.responses.response import find_failure, from_wire_stop, from_wire_trace, from_wire_usage
from interlingua_openai.responses.stream_blocks import SPAN, ItemState, ResponsesBlocks

# an item without a canonical form is kept exact, so its event is read again if it may hold a long integer
_WHOLE = frozenset(("response.output_item.done", "response.completed", "response.incomplete", "response.failed"))
_READ = frozenset(("message", "reasoning", *CALLS))
_LONG_NUMBER = re.compile(rb"\d{17}")
_TEXT = "response.output_text.delta"
_INPUT = "response.function_call_arguments.delta"


async def stream_response(  # noqa: C901, PLR0912  the hot path stays in one frame
    response_stream: AsyncIterator[WireChunk], context: RequestContext
) -> AsyncIterator[StreamEvent]:
    """Translate framed chunks into events; a block's index is its item's place times SPAN plus its part's.

    Most events add to the same block as the event before: these are passed on here, and counted when another kind
    arrives.
    """
    reader = ResponsesReader(context)
    index, place, part, table = -1, -1, -1, reader.texts
    run = 0
    number = -1  # of the last event of an answer in the background, whose events may come again
    async for _, data in response_stream:
        try:
            event = loads_lossy(data)
        except ValueError:
            if data.strip() == b"[DONE]":
                break
            raise
        if reader.follow_up is not None and isinstance(event, dict):
            if (this := event.get("sequence_number", number + 1)) <= number:
                continue
            number = this if event.get("type") in _HANDLERS else number
        try:
            kind = event["type"]
            if kind == _TEXT and event["output_index"] == place and event["content_index"] == part:
                text = event["delta"]
                if text.__class__ is str:
                    run += len(text)
                    yield TextDelta(index=index, text=text)
                    continue
            if kind == _INPUT and event["output_index"] == place and part < 0:
                text = event["delta"]
                if text.__class__ is str:
                    run += len(text)
                    yield ToolUseInputDelta(index=index, partial_json=text)
                    continue
        except (KeyError, TypeError):
            kind = None
        if run:
            table[index] += run
            run = 0
        if not isinstance(event, dict):
            continue
        if kind in _WHOLE and not _READ.issuperset(_item_types(event)) and _LONG_NUMBER.search(data):
            event = loads(data)
        for made in reader.read(event):
            yield made
        if reader.over:
            return
        index, place, part, table = _more_of(event, kind, reader)
    if run:
        table[index] += run
    for made in reader.close():
        yield made


def _item_types(event: dict[str, Any]) -> set[str]:
    items = [event["item"]] if "item" in event else (event.get("response") or {}).get("output") or ()
    return {str(item.get("type")) for item in items if isinstance(item, dict)}


def _more_of(event: dict[str, Any], kind: Any, reader: ResponsesReader) -> tuple[int, int, int, dict[int, int]]:
    """Return the block that the next event probably adds to: index, place, part (-1 for a call) and its table."""
    place, part = event.get("output_index"), event.get("content_index")
    if kind == _TEXT and isinstance(place, int) and isinstance(part, int):
        index = (place + reader.offset) * SPAN + part
        if index in reader.texts:
            return index, place, part, reader.texts
    elif kind == _INPUT and isinstance(place, int):
        index = (place + reader.offset) * SPAN
        if index in reader.inputs:
            return index, place, -1, reader.inputs
    return -1, -1, -1, reader.texts


# the last two are older servers' words
_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
    "response.done": "completed",
}


class ResponsesReader(ResponsesBlocks):
    """Reads events in order; once it is `over`, later events are ignored.

    After a terminal event only another answer is read: a body may hold several, one after the other (seen in
    recordings), and the last terminal event is the message's.
    """

    over = False
    follow_up: FollowUp | None = None  # of an answer in the background
    _ended = False
    _earlier = False
    _answer: Any = None

    @property
    def offset(self) -> int:
        """Place of the current answer's first item."""
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
        elif (failure := find_failure(event)) is not None:
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
        self.follow_up = stream_follow_up(event.get("response") or {}, self._context)
        if (trace := from_wire_trace(event.get("response") or {})) or self.follow_up:
            yield RawUpdate(trace=trace, follow_up=self.follow_up)

    def _added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        if event.get("item") is None:
            return
        item = normalise_item(event["item"], self._context)
        slot = self._slots.open(item, event.get("output_index"))
        if isinstance(item.get("id"), str):
            yield RawUpdate(replay=self._replay(begun=slot), follow_up=self.follow_up)
        if is_call(item) and (slot.kind not in CALLS or item.get("name")):
            yield from self._begin_call(slot, item)

    def _item_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = normalise_item(event["item"], self._context)
        yield from self._settle(self._slots.ending(item, event.get("output_index")), item)
        yield RawUpdate(replay=self._replay())

    def _settle(self, slot: ItemState, item: dict[str, Any]) -> Iterator[StreamEvent]:
        """Complete an item: send its remaining content, end its blocks."""
        slot.done = item
        slot.kept = skeleton(item)
        kind = item.get("type")
        if kind == "message":
            parts = item.get("content") or ()
            for at, part in zip(self._places(slot, len(parts)), parts, strict=False):
                yield from self._end_part(slot, at, part)
        elif kind == "reasoning":
            yield from self._end_reasoning(slot, item)
        elif is_call(item) or slot.start is not None:
            yield from self._end_call(slot, item)
        else:
            block = from_wire_item(item, self._context)[0]
            kept = block if slot.shown is None or block.type == "image" else slot.shown  # a picture that failed later
            yield from self._end_block(slot, 0, kept)

    # -- the end ------------------------------------------------------------------------------------------------

    def _replay(self, begun: ItemState | None = None) -> dict[str, Any]:
        """Return the replay state of the complete items, and of a started one, which already has its id."""
        return {
            "items": [
                slot.kept or skeleton(slot.item) for slot in self._slots if slot.kept is not None or slot is begun
            ]
        }

    def _end(self, response: dict[str, Any], named: str) -> Iterator[StreamEvent]:
        """Read a terminal event; its output, if any, replaces the state of every item."""
        output = normalise_items(response.get("output"), self._context)
        for place, item in enumerate(output):
            slot = self._slots.final(item, place)
            if slot.done != item:
                yield from self._settle(slot, item)
            elif slot.kept is not None:
                slot.kept = {"item": item_shell(item), "sum": slot.kept["sum"]}  # its keys may be in another order
        yield from self.flush()
        yield from self._end_audio()
        items = output or [slot.done for slot in self._slots.present() if slot.done is not None]
        if items:
            yield RawUpdate(replay=self._replay())
        yield RawUpdate(trace=from_wire_trace(response))
        if (usage := from_wire_usage(response, items)) is not None:
            yield UsageUpdate(usage=usage)
        self._ended = True
        if (failure := find_failure({"status": named, **response})) is not None:
            self.over = True
            yield ErrorEvent(error=from_wire_error_body(failure))
            return
        last = items or [slot.item for slot in self._slots.present()]
        reason, raw = from_wire_stop({"status": named, **response}, last)
        yield MessageComplete(stop_reason=reason, stop_reason_raw=raw)

    def close(self) -> Iterator[StreamEvent]:
        """End the stream; an earlier answer's terminal event does not complete an answer that was cut off."""
        yield from self.flush()
        yield from self._end_audio()
        if self._earlier and not self._ended:
            yield ErrorEvent(
                error=StreamInterruptedError("the last of several answers ended before its terminal event")
            )

    def flush(self) -> Iterator[StreamEvent]:
        """End the open items, so that an interrupted message keeps its citations and opaque items."""
        for slot in self._slots:
            if slot.done is not None:
                continue
            if slot.kind in ("message", "reasoning", *CALLS):
                for at, citations in slot.citations.items():
                    if not self._taken(slot.base + at, self.texts):
                        yield from self._end_block(slot, at, TextBlock(text="", citations=citations))
            elif slot.start is not None:
                yield from self._break_call(slot)
            elif not slot.ended:
                yield from self._end_block(slot, 0, from_wire_item(slot.received, self._context)[0])


_HANDLERS: dict[str, Callable[[ResponsesReader, dict[str, Any]], Iterator[StreamEvent]]] = {
    "response.created": ResponsesReader._created,
    "response.output_item.added": ResponsesReader._added,
    "response.output_item.done": ResponsesReader._item_done,
    "response.content_part.added": ResponsesReader._part_added,
    "response.content_part.done": ResponsesReader._part_added,
    "response.output_text.delta": ResponsesReader._text_delta,
    "response.output_text.done": ResponsesReader._text_done,
    "response.output_text.annotation.added": ResponsesReader._annotation,
    "response.refusal.delta": ResponsesReader._text_delta,
    "response.refusal.done": ResponsesReader._text_done,
    "response.reasoning_summary_text.delta": ResponsesReader._summary_delta,
    "response.reasoning_summary_text.done": ResponsesReader._summary_done,
    "response.reasoning_text.delta": ResponsesReader._reasoning_delta,
    "response.reasoning_text.done": ResponsesReader._reasoning_done,
    "response.function_call_arguments.delta": ResponsesReader._input_delta,
    "response.function_call_arguments.done": ResponsesReader._input_done,
    "response.custom_tool_call_input.delta": ResponsesReader._input_delta,
    "response.custom_tool_call_input.done": ResponsesReader._input_done,
    "response.image_generation_call.partial_image": ResponsesReader._partial_image,
    "response.shell_call_command.added": ResponsesReader._command,
    "response.shell_call_command.delta": ResponsesReader._command,
    "response.apply_patch_call_operation_diff.delta": ResponsesReader._diff,
    "response.code_interpreter_call_code.delta": ResponsesReader._more_of_item,
    "response.mcp_call_arguments.delta": ResponsesReader._more_of_item,
    "response.shell_call_output_content.delta": ResponsesReader._outputs,
    "response.audio.delta": ResponsesReader._more_audio,
    "response.audio.transcript.delta": ResponsesReader._more_audio,
}

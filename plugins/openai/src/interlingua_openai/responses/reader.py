"""Everything of a stream but its hot path: items begin and end, parts, reasoning, calls (sheet openai_responses §6).

Never contradicts what was said of a block before: an event that does is passed over.
`stream` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interlingua.blocks import ContentBlock, OpaqueBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock
from interlingua.context import RequestContext
from interlingua.events import (
    BlockEnd,
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
from interlingua.jsontext import dumps
from interlingua_openai.responses.items import (
    BETWEEN,
    CALLS,
    arguments_of,
    from_wire_call,
    from_wire_item,
    from_wire_part,
    from_wire_reasoning,
    part_text,
)
from interlingua_openai.responses.outcome import failure_of, from_wire_stop, from_wire_usage, trace_of
from interlingua_openai.responses.replay import shell, skeleton
from interlingua_openai.responses.slots import SPAN, Slot, Slots
from interlingua_openai.service import error_from_body

_ENDS = ("response.completed", "response.incomplete", "response.failed")


class Reader:
    """Reads events in order.

    Attributes:
        texts: characters sent, by text block; `thoughts` and `inputs` likewise for reasoning and call arguments.
        over: nothing that comes after counts.
    """

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._slots = Slots()
        self.texts: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self._thoughts: dict[int, int] = {}
        self._others: set[int] = set()
        self.over = False

    def read(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Translate one event."""
        kind = event.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            yield from handler(self, event)
        elif kind in _ENDS:
            yield from self._end(event["response"], str(kind).partition(".")[2])
        elif (failure := failure_of(event)) is not None:
            yield from self.flush()
            yield ErrorEvent(error=error_from_body(failure))
            self.over = True

    def _taken(self, index: int, mine: Any) -> bool:
        """Tell whether a block is known to be of another kind than the one whose table is `mine`."""
        tables = (self.texts, self.inputs, self._thoughts, self._others)
        return any(index in table for table in tables if table is not mine)

    # -- items --------------------------------------------------------------------------------------------------

    def _created(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        if trace := trace_of(event.get("response") or {}):
            yield RawUpdate(trace=trace)

    def _added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event["item"]
        slot = self._slots.open(item, event.get("output_index"))
        if slot.kind in CALLS and item.get("name"):
            yield from self._begin_call(slot, item)

    def _item_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event["item"]
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

    def _end_block(self, slot: Slot, at: int, block: ContentBlock) -> Iterator[StreamEvent]:
        """End a block once, and again only where it is now known better."""
        index = slot.base + at
        before = slot.ended.get(at)
        if before is None and isinstance(block, (OpaqueBlock, RedactedThinkingBlock)):
            if self._taken(index, self._others):
                return
            self._others.add(index)
        if before is None or (type(before) is type(block) and before != block):
            slot.ended[at] = block
            yield BlockEnd(index=index, block=block)

    # -- messages -----------------------------------------------------------------------------------------------

    def _places(self, slot: Slot, count: int) -> Sequence[int]:
        """Return each part's place; one server counts its only part as the second, so what was sent decides then."""
        sent = sorted(index - slot.base for index in self.texts if slot.base <= index < slot.base + SPAN)
        return sent if len(sent) == count and sent[-1:] != [count - 1] else range(count)

    def _part_added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        text = part_text(event.get("part") or {})
        if slot is not None and slot.kind == "message" and text is not None:
            yield from self._more_text(slot, event.get("content_index") or 0, text, whole=True)

    def _text_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message") or self._slots.open({"type": "message"}, event.get("output_index"))
        yield from self._more_text(slot, event.get("content_index") or 0, _delta(event))

    def _text_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        text = event.get("text", event.get("refusal"))
        if slot is not None and isinstance(text, str):
            yield from self._more_text(slot, event.get("content_index") or 0, text, whole=True)

    def _more_text(self, slot: Slot, at: int, text: str, *, whole: bool = False) -> Iterator[StreamEvent]:
        index = slot.base + at
        if self._taken(index, self.texts):
            return
        sent = self.texts.setdefault(index, 0)
        rest = text[sent:] if whole else text
        if rest:
            self.texts[index] = sent + len(rest)
            yield TextDelta(index=index, text=rest)

    def _annotation(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        if slot is not None and isinstance(event.get("annotation"), dict):
            slot.citations.setdefault(event.get("content_index") or 0, []).append(event["annotation"])
        return iter(())

    def _end_part(self, slot: Slot, at: int, part: dict[str, Any]) -> Iterator[StreamEvent]:
        text = part_text(part)
        if text is None:
            yield from self._end_block(slot, at, from_wire_part(part, self._context))
            return
        yield from self._more_text(slot, at, text, whole=True)
        citations = part.get("annotations") or ()
        if (citations or not text) and not self._taken(slot.base + at, self.texts):
            yield from self._end_block(slot, at, TextBlock(text="", citations=citations))

    # -- reasoning ----------------------------------------------------------------------------------------------

    def _summary_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("summary", event.get("summary_index") or 0))

    def _reasoning_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("content", event.get("content_index") or 0))

    def _thought(self, event: dict[str, Any], part: tuple[str, int]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "reasoning") or self._slots.open({"type": "reasoning"}, event.get("output_index"))
        text = _delta(event)
        if not text or self._taken(slot.base, self._thoughts):
            return
        if slot.thought is not None and slot.thought != part:
            text = BETWEEN + text
        slot.thought = part
        self._thoughts[slot.base] = self._thoughts.get(slot.base, 0) + len(text)
        yield ThinkingDelta(index=slot.base, text=text)

    def _end_reasoning(self, slot: Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        block = from_wire_reasoning(item)
        text = block.text if isinstance(block, ThinkingBlock) else ""
        if not isinstance(block, RedactedThinkingBlock) and self._taken(slot.base, self._thoughts):
            return
        sent = self._thoughts.get(slot.base, 0)
        if len(text) > sent:
            self._thoughts[slot.base] = len(text)
            yield ThinkingDelta(index=slot.base, text=text[sent:])
        if text or sent:
            block = ThinkingBlock(text="", signature=item.get("encrypted_content") or None)
        yield from self._end_block(slot, 0, block)

    # -- calls --------------------------------------------------------------------------------------------------

    def _begin_call(self, slot: Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        if slot.start is not None or self._taken(slot.base, self.inputs):
            return
        slot.start = ToolUseStart(
            index=slot.base,
            id=self._context.mint_tool_use_id(),
            name=self._context.tool_name(item["name"]),
            provider_id=item.get("call_id") or item.get("id"),
        )
        self.inputs[slot.base] = 0
        yield slot.start

    def _input_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event)
        if slot is None or slot.start is None:
            return
        text = _delta(event)
        if slot.kind == "custom_tool_call":  # free text: written as the JSON string it becomes
            text = dumps(text).decode()[1:-1]
            text = text if self.inputs[slot.base] else '{"input":"' + text
        self.inputs[slot.base] += len(text)
        yield ToolUseInputDelta(index=slot.base, partial_json=text)

    def _end_call(self, slot: Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._begin_call(slot, item)
        start = slot.start
        if start is None:
            return
        block = from_wire_call(item, self._context, start.id)
        raw = arguments_of(item)
        sent = self.inputs[slot.base]
        if sent < len(raw):
            self.inputs[slot.base] = len(raw)
            yield ToolUseInputDelta(index=slot.base, partial_json=raw[sent:])
        if slot.ended.get(0) != block:
            slot.ended[0] = block
            yield ToolUseEnd(index=slot.base, block=block)

    # -- the end ------------------------------------------------------------------------------------------------

    def _replay(self) -> dict[str, Any]:
        return {"items": [slot.kept for slot in self._slots if slot.kept is not None]}

    def _end(self, response: dict[str, Any], named: str) -> Iterator[StreamEvent]:
        """Read a terminal event: its output is the last word on every item, where it has any."""
        output = response.get("output") or ()
        for place, item in enumerate(output):
            slot = self._slots.final(item, place)
            if slot.done != item:
                yield from self._settle(slot, item)
            elif slot.kept is not None:
                slot.kept = {"item": shell(item), "sum": slot.kept["sum"]}  # its keys may stand in another order
        yield from self.flush()
        items = output or [slot.done for slot in self._slots if slot.done is not None]
        if items:
            yield RawUpdate(replay=self._replay())
        yield RawUpdate(trace=trace_of(response))
        if (usage := from_wire_usage(response)) is not None:
            yield UsageUpdate(usage=usage)
        self.over = True
        if (failure := failure_of({"status": named, **response})) is not None:
            yield ErrorEvent(error=error_from_body(failure))
            return
        reason, raw = from_wire_stop({"status": named, **response}, items)
        yield MessageComplete(stop_reason=reason, stop_reason_raw=raw)

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


def _delta(event: dict[str, Any]) -> str:
    """Return the text of a delta; what is no text ends the stream as malformed."""
    text = event["delta"]
    if not isinstance(text, str):
        raise TypeError("a delta is a string")
    return text


_HANDLERS: dict[str, Callable[[Reader, dict[str, Any]], Iterator[StreamEvent]]] = {
    "response.created": Reader._created,
    "response.output_item.added": Reader._added,
    "response.output_item.done": Reader._item_done,
    "response.content_part.added": Reader._part_added,
    "response.output_text.delta": Reader._text_delta,
    "response.output_text.done": Reader._text_done,
    "response.output_text.annotation.added": Reader._annotation,
    "response.refusal.delta": Reader._text_delta,
    "response.refusal.done": Reader._text_done,
    "response.reasoning_summary_text.delta": Reader._summary_delta,
    "response.reasoning_text.delta": Reader._reasoning_delta,
    "response.function_call_arguments.delta": Reader._input_delta,
    "response.custom_tool_call_input.delta": Reader._input_delta,
}

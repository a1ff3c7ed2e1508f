"""Everything of a stream but its hot path: items begin and end, reasoning, the terminal event (sheet §6).

Never trusts an item id to stay the same (some gateways change it in each event): items are known by `output_index`,
and by id or order only where a server sends no index. `stream` comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from interlingua.blocks import ContentBlock, TextBlock, ThinkingBlock
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
from interlingua_openai.service import error_from_body

SPAN = 1 << 16  # block indexes per item
_ENDS = ("response.completed", "response.incomplete", "response.failed")


@attrs.define
class _Slot:
    """One output item: as it began, then as it ended, and what was sent of it."""

    place: int
    item: dict[str, Any]
    done: dict[str, Any] | None = None
    kept: dict[str, Any] | None = None
    start: ToolUseStart | None = None
    citations: dict[int, list[Any]] = attrs.field(factory=dict)
    thought: tuple[str, int] | None = None
    ended: dict[int, ContentBlock] = attrs.field(factory=dict)

    @property
    def base(self) -> int:
        return self.place * SPAN


class Reader:
    """Reads events in order; `sent` counts the characters sent per block, `calls` holds calls begun."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._slots: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._last: _Slot | None = None
        self.sent: dict[int, int] = {}
        self.calls: dict[int, ToolUseStart] = {}
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

    # -- which item ---------------------------------------------------------------------------------------------

    def _slot(self, event: dict[str, Any]) -> _Slot | None:
        place = event.get("output_index")
        if isinstance(place, int):
            return self._slots.get(place)
        return self._by_id.get(str(event.get("item_id"))) or self._last

    def _open(self, item: dict[str, Any], place: Any) -> _Slot:
        if not isinstance(place, int):
            place = max(self._slots, default=-1) + 1
        slot = self._slots[place] = self._last = _Slot(place, item)
        if isinstance(item.get("id"), str):
            self._by_id[item["id"]] = slot
        return slot

    # -- items --------------------------------------------------------------------------------------------------

    def _created(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        if trace := trace_of(event.get("response") or {}):
            yield RawUpdate(trace=trace)

    def _added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event["item"]
        slot = self._open(item, event.get("output_index"))
        if item.get("type") in CALLS and item.get("name"):
            yield from self._begin_call(slot, item)

    def _begin_call(self, slot: _Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        slot.start = ToolUseStart(
            index=slot.base,
            id=self._context.mint_tool_use_id(),
            name=self._context.tool_name(item["name"]),
            provider_id=item.get("call_id") or item.get("id"),
        )
        self.sent[slot.base] = 0
        if item.get("type") == "function_call":
            self.calls[slot.base] = slot.start
        yield slot.start

    def _item_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        item = event["item"]
        slot = (
            None
            if event.get("output_index") is None and item.get("id") not in self._by_id
            else self._slot({"output_index": event.get("output_index"), "item_id": item.get("id")})
        )
        slot = slot or self._open(item, event.get("output_index"))
        yield from self._settle(slot, item)
        yield RawUpdate(replay=self._replay())

    def _settle(self, slot: _Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
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
            yield from self._block_end(slot, 0, from_wire_item(item, self._context)[0])

    def _block_end(self, slot: _Slot, at: int, block: ContentBlock) -> Iterator[StreamEvent]:
        before = slot.ended.get(at)
        if before is None or (type(before) is type(block) and before != block):
            slot.ended[at] = block
            yield BlockEnd(index=slot.base + at, block=block)

    # -- messages -----------------------------------------------------------------------------------------------

    def _places(self, slot: _Slot, count: int) -> Sequence[int]:
        """Return each part's place; one server counts its only part as the second, so what was sent decides then."""
        sent = sorted(index - slot.base for index in self.sent if slot.base <= index < slot.base + SPAN)
        return sent if len(sent) == count and sent[-1:] != [count - 1] else range(count)

    def _part_added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slot(event)
        part = event.get("part") or {}
        if slot is not None and part_text(part) is not None:
            yield from self._more_text(slot, event.get("content_index") or 0, part_text(part) or "", whole=True)

    def _text_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slot(event) or self._open({"type": "message"}, event.get("output_index"))
        yield from self._more_text(slot, event.get("content_index") or 0, event["delta"])

    def _text_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slot(event)
        text = event.get("text", event.get("refusal"))
        if slot is not None and isinstance(text, str):
            yield from self._more_text(slot, event.get("content_index") or 0, text, whole=True)

    def _more_text(self, slot: _Slot, at: int, text: str, *, whole: bool = False) -> Iterator[StreamEvent]:
        index = slot.base + at
        sent = self.sent.setdefault(index, 0)
        rest = text[sent:] if whole else text
        if rest:
            self.sent[index] = sent + len(rest)
            yield TextDelta(index=index, text=rest)

    def _annotation(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slot(event)
        if slot is not None and isinstance(event.get("annotation"), dict):
            slot.citations.setdefault(event.get("content_index") or 0, []).append(event["annotation"])
        return iter(())

    def _end_part(self, slot: _Slot, at: int, part: dict[str, Any]) -> Iterator[StreamEvent]:
        text = part_text(part)
        if text is None:
            yield from self._block_end(slot, at, from_wire_part(part, self._context))
            return
        yield from self._more_text(slot, at, text, whole=True)
        citations = part.get("annotations") or ()
        if citations or not text:
            yield from self._block_end(slot, at, TextBlock(text="", citations=citations))

    # -- reasoning ----------------------------------------------------------------------------------------------

    def _summary_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("summary", event.get("summary_index") or 0))

    def _reasoning_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("content", event.get("content_index") or 0))

    def _thought(self, event: dict[str, Any], part: tuple[str, int]) -> Iterator[StreamEvent]:
        slot = self._slot(event) or self._open({"type": "reasoning"}, event.get("output_index"))
        text = event["delta"]
        if not text:
            return
        if slot.thought is not None and slot.thought != part:
            text = BETWEEN + text
        slot.thought = part
        self.sent[slot.base] = self.sent.get(slot.base, 0) + len(text)
        yield ThinkingDelta(index=slot.base, text=text)

    def _end_reasoning(self, slot: _Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        block = from_wire_reasoning(item)
        text = block.text if isinstance(block, ThinkingBlock) else ""
        sent = self.sent.get(slot.base, 0)
        if len(text) > sent:
            self.sent[slot.base] = len(text)
            yield ThinkingDelta(index=slot.base, text=text[sent:])
        if text or sent:
            block = ThinkingBlock(text="", signature=item.get("encrypted_content") or None)
        yield from self._block_end(slot, 0, block)

    # -- calls --------------------------------------------------------------------------------------------------

    def _input_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slot(event)
        if slot is None or slot.start is None:
            return
        text = event["delta"]
        if slot.item.get("type") == "custom_tool_call":  # free text: written as the JSON string it becomes
            text = dumps(text).decode()[1:-1]
            text = text if self.sent[slot.base] else '{"input":"' + text
        self.sent[slot.base] += len(text)
        yield ToolUseInputDelta(index=slot.base, partial_json=text)

    def _end_call(self, slot: _Slot, item: dict[str, Any]) -> Iterator[StreamEvent]:
        if slot.start is None:
            yield from self._begin_call(slot, item)
        start = slot.start
        assert start is not None  # noqa: S101  begun above
        block = from_wire_call(item, self._context, start.id)
        raw = arguments_of(item)
        sent = self.sent[slot.base]
        if sent < len(raw):
            self.sent[slot.base] = len(raw)
            yield ToolUseInputDelta(index=slot.base, partial_json=raw[sent:])
        if slot.ended.get(0) != block:
            slot.ended[0] = block
            yield ToolUseEnd(index=slot.base, block=block)

    # -- the end ------------------------------------------------------------------------------------------------

    def _replay(self) -> dict[str, Any]:
        return {"items": [slot.kept for _, slot in sorted(self._slots.items()) if slot.kept is not None]}

    def _end(self, response: dict[str, Any], named: str) -> Iterator[StreamEvent]:
        """Read a terminal event: its output is the last word on every item, where it has any."""
        output = response.get("output") or ()
        for place, item in enumerate(output):
            slot = self._find(place, item) or self._open(item, None if place in self._slots else place)
            if slot.done != item:
                yield from self._settle(slot, item)
            elif slot.kept is not None:
                slot.kept = {"item": shell(item), "sum": slot.kept["sum"]}  # its keys may stand in another order
        yield from self.flush()
        items = output or [slot.done for _, slot in sorted(self._slots.items()) if slot.done is not None]
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

    def _find(self, place: int, item: dict[str, Any]) -> _Slot | None:
        """Find the streamed item of a terminal one: by id where ids are kept, else by place and type."""
        for slot in self._slots.values():
            known = slot.done or slot.item
            if item.get("id") is not None and known.get("id") == item["id"]:
                return slot
        slot_here = self._slots.get(place)
        return slot_here if slot_here is not None and slot_here.item.get("type") == item.get("type") else None

    def flush(self) -> Iterator[StreamEvent]:
        """End what is open, so that an interrupted message keeps its citations and opaque items."""
        for _, slot in sorted(self._slots.items()):
            if slot.done is not None:
                continue
            kind = slot.item.get("type")
            if kind in ("message", "reasoning", *CALLS):
                for at, citations in slot.citations.items():
                    yield from self._block_end(slot, at, TextBlock(text="", citations=citations))
            elif not slot.ended:
                yield from self._block_end(slot, 0, from_wire_item(slot.item, self._context)[0])


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

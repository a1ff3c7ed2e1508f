"""The items and blocks of a stream while they arrive: text, reasoning, call arguments."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from interlingua.plugins import RequestContext
from interlingua.types import (
    AudioBlock,
    BlockEnd,
    BlockStart,
    ContentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua_openai.responses.client_calls import FORMS
from interlingua_openai.responses.items import (
    BETWEEN,
    CALLS,
    PICTURE,
    arguments_of,
    call_id_of,
    from_wire_call,
    from_wire_part,
    from_wire_picture,
    from_wire_reasoning,
    part_text,
    seal_of,
)

SPAN = 1 << 16  # block indexes per item
_COMMANDS = 1000  # commands of a shell call whose outputs are told apart
_AUDIO = "response.audio.delta"
_PIECES = {  # event -> the item's member that it is a piece of
    "response.code_interpreter_call_code.delta": "code",
    "response.mcp_call_arguments.delta": "arguments",
}


@attrs.define(eq=False)
class ItemState:
    """One output item: at its start, at its end, and its parts.

    Attributes:
        place: its `output_index`.
        item: the item when it was added.
        done: the complete item.
        kept: its replay state.
        start: the start event of a call.
        shown: a picture as far as it was made.
        thought: the part of a reasoning item that received text last.
        citations: citations by part, for a stream that ends too early.
        ended: the block that ended each part.
        pieces: more of the item's members, which `received` joins.
        outputs: the same of a shell's output, by command.
    """

    place: int
    item: dict[str, Any]
    done: dict[str, Any] | None = None
    kept: dict[str, Any] | None = None
    start: ToolUseStart | None = None
    shown: ImageBlock | None = None
    thought: tuple[str, int] | None = None
    citations: dict[int, list[Any]] = attrs.field(factory=dict)
    ended: dict[int, ContentBlock] = attrs.field(factory=dict)
    pieces: dict[str, list[str]] = attrs.field(factory=dict)
    outputs: dict[int, dict[str, list[str]]] = attrs.field(factory=dict)

    @property
    def received(self) -> dict[str, Any]:
        """The item as far as it has been received."""
        more: dict[str, Any] = {name: _joined(self.item.get(name), pieces) for name, pieces in self.pieces.items()}
        if self.outputs:
            more["output"] = found = [one for one in self.item.get("output") or () if isinstance(one, dict)]
            found += [{} for _ in range(max(self.outputs) + 1 - len(found))]
            for at, members in self.outputs.items():
                joined = {name: _joined(found[at].get(name), pieces) for name, pieces in members.items()}
                found[at] = {**found[at], **joined}
        return {**self.item, **more}

    @property
    def base(self) -> int:
        """Index of its first block."""
        return self.place * SPAN

    @property
    def kind(self) -> Any:
        """The item's type."""
        return self.item.get("type")


class ItemTable:
    """All items by place; a body may hold several answers, whose items follow each other.

    Attributes:
        offset: place of the current answer's first item.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._by_place: dict[int, ItemState] = {}
        self._by_id: dict[str, ItemState] = {}
        self._last: ItemState | None = None

    def __iter__(self) -> Iterator[ItemState]:
        return iter([slot for _, slot in sorted(self._by_place.items())])

    def present(self) -> list[ItemState]:
        """Return the items of the current answer."""
        return [slot for slot in self if slot.place >= self.offset]

    def begin_answer(self) -> None:
        """Place all further items after the items so far."""
        self.offset = max(self._by_place, default=-1) + 1
        self._by_id.clear()
        self._last = None

    def place_of(self, wire_index: Any) -> int | None:
        """Return the place for an `output_index`; None if a server sends no valid one."""
        return wire_index + self.offset if type(wire_index) is int and wire_index >= 0 else None

    def of(self, event: dict[str, Any], kind: str | None = None) -> ItemState | None:
        """Return the item an event belongs to: by index, else by id, else the last item of its kind.

        The id also decides if the item at that index is of another kind.
        """
        place = self.place_of(event.get("output_index"))
        placed = None if place is None else self._by_place.get(place)
        known = self._by_id.get(str(event.get("item_id")))
        if known is not None and (place is None or (placed is not None and kind not in (None, placed.kind))):
            return known
        if place is not None:
            return placed
        return self._last if self._last is not None and kind in (None, self._last.kind) else None

    def open(self, item: dict[str, Any], wire_index: Any, *, behind: bool = False) -> ItemState:
        """Return the state of an item that starts: a new one, unless the item has started before.

        Args:
            item: the item so far.
            wire_index: its `output_index`.
            behind: the item was not announced, so it is placed after all others.
        """
        place = self.place_of(wire_index)
        if place is None or (behind and place < max(self._by_place, default=0)):
            place = max(self._by_place, default=-1) + 1
        slot = self._by_place.get(place)
        if slot is None or slot.kind != item.get("type"):
            place = place if slot is None else max(self._by_place) + 1
            slot = self._by_place[place] = ItemState(place, item)
        self._last = slot
        if isinstance(item.get("id"), str):
            self._by_id[item["id"]] = slot
        return slot

    def ending(self, item: dict[str, Any], wire_index: Any) -> ItemState:
        """Return the state of a complete item, also if it was never announced."""
        place = self.place_of(wire_index)
        known = self._by_id.get(str(item.get("id"))) if place is None else self._by_place.get(place)
        return known if known is not None and known.kind == item.get("type") else self.open(item, wire_index)

    def final(self, item: dict[str, Any], wire_index: int) -> ItemState:
        """Return the state of an item of the terminal event: by id if ids are stable, else by place and type."""
        for slot in self.present():
            known = slot.done or slot.item
            if item.get("id") is not None and known.get("id") == item["id"] and slot.kind == item.get("type"):
                return slot
        return self.open(item, wire_index)


class ResponsesBlocks:
    """The events of an answer's blocks: how much of each was sent, and its end.

    Attributes:
        texts: number of characters sent, by text block.
        inputs: number of characters of arguments sent, by call block.
    """

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._slots = ItemTable()
        self.texts: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self._thoughts: dict[int, int] = {}
        self._others: set[int] = set()
        self._audio: list[str] = []
        self._transcript: list[str] = []

    def _taken(self, index: int, mine: Any) -> bool:
        """Return whether a block is known to have another kind than that of the table `mine`."""
        tables = (self.texts, self.inputs, self._thoughts, self._others)
        return any(index in table for table in tables if table is not mine)

    def _end_block(self, slot: ItemState, at: int, block: ContentBlock) -> Iterator[StreamEvent]:
        """End a block once, and again only if its content changed."""
        index = slot.base + at
        before = slot.ended.get(at)
        if before is None and isinstance(block, (OpaqueBlock, RedactedThinkingBlock, ImageBlock)):
            if self._taken(index, self._others):
                return
            self._others.add(index)
        if before is None or (type(before) is type(block) and before != block):
            slot.ended[at] = block
            yield BlockEnd(index=index, block=block)

    # -- messages -----------------------------------------------------------------------------------------------

    def _places(self, slot: ItemState, count: int) -> Sequence[int]:
        """Return each part's place; one server numbers its only part 1, in which case the parts already sent decide."""
        sent = sorted(index - slot.base for index in self.texts if slot.base <= index < slot.base + SPAN)
        return sent if len(sent) == count and sent[-1:] != [count - 1] else range(count)

    def _part_added(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        text = part_text(event.get("part") or {})
        if slot is not None and slot.kind == "message" and text is not None:
            yield from self._more_text(slot, _part_index(event), text, whole=True)

    def _text_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        slot = slot or self._slots.open({"type": "message"}, event.get("output_index"), behind=True)
        yield from self._more_text(slot, _part_index(event), _delta_text(event))

    def _text_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "message")
        text = event.get("text", event.get("refusal"))
        if slot is not None and isinstance(text, str):
            yield from self._more_text(slot, _part_index(event), text, whole=True)

    def _more_text(self, slot: ItemState, at: int, text: str, *, whole: bool = False) -> Iterator[StreamEvent]:
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
            slot.citations.setdefault(_part_index(event), []).append(event["annotation"])
        return iter(())

    def _end_part(self, slot: ItemState, at: int, part: dict[str, Any]) -> Iterator[StreamEvent]:
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
        yield from self._thought(event, ("summary", event.get("summary_index") or 0), _delta_text(event))

    def _reasoning_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("content", event.get("content_index") or 0), _delta_text(event))

    def _summary_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("summary", event.get("summary_index") or 0), event.get("text"), whole=True)

    def _reasoning_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        yield from self._thought(event, ("content", event.get("content_index") or 0), event.get("text"), whole=True)

    def _thought(
        self, event: dict[str, Any], part: tuple[str, int], text: Any, *, whole: bool = False
    ) -> Iterator[StreamEvent]:
        slot = self._slots.of(event, "reasoning") or self._slots.open({"type": "reasoning"}, event.get("output_index"))
        if not isinstance(text, str) or not text or self._taken(slot.base, self._thoughts):
            return
        if whole and slot.thought == part:
            return  # its deltas came
        if slot.thought is not None and slot.thought != part:
            text = BETWEEN + text
        slot.thought = part
        self._thoughts[slot.base] = self._thoughts.get(slot.base, 0) + len(text)
        yield ThinkingDelta(index=slot.base, text=text)

    def _end_reasoning(self, slot: ItemState, item: dict[str, Any]) -> Iterator[StreamEvent]:
        block = from_wire_reasoning(item)
        text = block.text if isinstance(block, ThinkingBlock) else ""
        if not isinstance(block, RedactedThinkingBlock) and self._taken(slot.base, self._thoughts):
            return
        sent = self._thoughts.get(slot.base, 0)
        if len(text) > sent:
            self._thoughts[slot.base] = len(text)
            yield ThinkingDelta(index=slot.base, text=text[sent:])
        if text or sent:
            block = ThinkingBlock(text="", signature=item[seal] if (seal := seal_of(item)) else None)
        yield from self._end_block(slot, 0, block)

    # -- calls --------------------------------------------------------------------------------------------------

    def _begin_call(self, slot: ItemState, item: dict[str, Any]) -> Iterator[StreamEvent]:
        if slot.start is not None or self._taken(slot.base, self.inputs):
            return
        slot.start = ToolUseStart(
            index=slot.base,
            id=self._context.mint_tool_use_id(),
            name=FORMS[slot.kind].name if slot.kind in FORMS else self._context.tool_name(item["name"]),
            provider_id=call_id_of(item),
        )
        self.inputs[slot.base] = 0
        yield slot.start

    def _input_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        slot = self._slots.of(event)
        if slot is None or slot.start is None:
            return
        text = _delta_text(event)
        if slot.kind == "custom_tool_call":  # free text: written as the JSON string it becomes
            text = json.dumps(text, ensure_ascii=False)[1:-1]  # keeps half a character for its other half
            text = text if self.inputs[slot.base] else '{"input":"' + text
        self.inputs[slot.base] += len(text)
        yield ToolUseInputDelta(index=slot.base, partial_json=text)

    def _input_done(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Read complete arguments if no delta contained them."""
        slot = self._slots.of(event)
        if slot is None or slot.kind not in CALLS:
            return
        item = {**slot.item, **event, "type": slot.kind}
        if item.get("name"):
            yield from self._begin_call(slot, item)
        if slot.start is not None and not self.inputs[slot.base] and (raw := arguments_of(item)) != "{}":
            self.inputs[slot.base] = len(raw)
            yield ToolUseInputDelta(index=slot.base, partial_json=raw)

    def _command(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Note a command that the service's shell tool asks for; the complete item has all of them again."""
        slot, at = self._slots.of(event, "shell_call"), event.get("command_index")
        if slot is not None and slot.kind == "shell_call" and type(at) is int and 0 <= at < SPAN:
            action = slot.item.get("action") or {}
            commands = [*(action.get("commands") or ())]
            commands += [""] * (at + 1 - len(commands))
            commands[at] += _delta_text(event) if "delta" in event else ""
            slot.item = {**slot.item, "action": {**action, "commands": commands}}
        return iter(())

    def _diff(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Note more of a patch; the complete item has all of it again."""
        slot = self._slots.of(event, "apply_patch_call")
        if slot is not None and slot.kind == "apply_patch_call":
            operation = slot.item.get("operation") or {}
            diff = (operation.get("diff") or "") + _delta_text(event)
            slot.item = {**slot.item, "operation": {**operation, "diff": diff}}
        return iter(())

    def _more_of_item(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Note more of an item that the service runs itself; the complete item has all of it again."""
        slot = self._slots.of(event)
        if slot is not None and slot.done is None:
            slot.pieces.setdefault(_PIECES[event["type"]], []).append(_delta_text(event))
        return iter(())

    def _outputs(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Note more of what a command wrote; the complete item has all of it again."""
        slot, delta, at = self._slots.of(event, "shell_call_output"), event.get("delta"), event.get("command_index")
        if slot is not None and slot.kind == "shell_call_output" and isinstance(delta, dict) and type(at) is int:
            for name, text in delta.items():
                if isinstance(text, str):
                    slot.outputs.setdefault(min(max(at, 0), _COMMANDS), {}).setdefault(name, []).append(text)
        return iter(())

    def _more_audio(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Note more of the answer's speech or of its transcript, which no item holds."""
        pieces = self._audio if event["type"] == _AUDIO else self._transcript
        pieces.append(_delta_text(event))
        return iter(())

    def _end_audio(self) -> Iterator[StreamEvent]:
        """Send the speech as a block after all items; its format is not stated."""
        if self._audio or self._transcript:
            source = MediaSource(kind="base64", data=_joined_base64(self._audio))
            block = AudioBlock(source=source, media_type="", transcript="".join(self._transcript) or None)
            self._audio, self._transcript = [], []
            yield BlockEnd(index=SPAN * SPAN + self._slots.offset, block=block)

    def _partial_image(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """Show a picture as far as it is made; each is whole and replaces the previous one."""
        slot, data = self._slots.of(event, PICTURE), event.get("partial_image_b64")
        if slot is None or slot.kind != PICTURE or not isinstance(data, str) or not data or slot.done is not None:
            return
        if self._taken(slot.base, self._others):
            return
        self._others.add(slot.base)
        slot.item = {**slot.item, "result": data, "output_format": event.get("output_format")}
        slot.shown = from_wire_picture(data, event.get("output_format"))
        yield BlockStart(index=slot.base, block=slot.shown)

    def _break_call(self, slot: ItemState) -> Iterator[StreamEvent]:
        """Send what arrived of the arguments of a call that broke off, without their end: they are not whole."""
        text = arguments_of(slot.item)[:-1]
        if slot.kind in FORMS and not self.inputs[slot.base] and text:
            self.inputs[slot.base] = len(text)
            yield ToolUseInputDelta(index=slot.base, partial_json=text)

    def _end_call(self, slot: ItemState, item: dict[str, Any]) -> Iterator[StreamEvent]:
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


def _part_index(event: dict[str, Any]) -> int:
    """Return the part that an event belongs to; 0 if the event has no valid index."""
    index = event.get("content_index")
    return index if type(index) is int and 0 <= index < SPAN else 0


def _joined(begun: Any, pieces: list[str]) -> str:
    return (begun if isinstance(begun, str) else "") + "".join(pieces)


def _joined_base64(pieces: list[str]) -> str:
    """Return the base64 of bytes whose pieces are each encoded alone."""
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except binascii.Error:
        return "".join(pieces)


def _delta_text(event: dict[str, Any]) -> str:
    """Return the text of a delta; raise MalformedResponseError if it is not a string."""
    text = event["delta"]
    if text is None:
        return ""
    if not isinstance(text, str):
        raise TypeError("a delta is a string")
    return text

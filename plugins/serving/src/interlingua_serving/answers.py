"""The state of an answer for its origin only: gather it for callers to keep, and put it back when they send it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from interlingua.plugins import EMPTY, dumps
from interlingua.types import (
    BlockEnd,
    ContentBlock,
    Message,
    MessageComplete,
    OpaqueBlock,
    Origin,
    RawUpdate,
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
    UsageUpdate,
    read_tool_input,
    replace,
)

State = Mapping[str, Any]
"""The state of an answer for its origin only, as JSON (`AnswerState`): origin, replay state and state of blocks."""

# the fields of a block that other APIs cannot carry; all fields of the last two
_FIELDS: dict[type, tuple[str, ...]] = {
    TextBlock: ("signature", "citations"),
    ThinkingBlock: ("signature",),
    ToolUseBlock: ("provider_id", "signature", "raw_input"),
    RedactedThinkingBlock: ("data",),
    OpaqueBlock: ("provider", "kind", "data"),
}
_WHOLE = {kind.type: kind for kind in (RedactedThinkingBlock, OpaqueBlock)}


def dumps_line(value: Any) -> bytes:
    """Write JSON in which NEL, U+2028 and U+2029 are escaped, because some clients end a line at them."""
    data = dumps(value)
    return (
        data.replace(b"\xc2\x85", b"\\u0085").replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    )


class AnswerState:
    """Gathers from an answer's events the state that only its origin can use, which a writer seals.

    Args:
        origin: the model that makes the answer.
        strings: True if the written API carries arguments of calls as strings, which then need no seal.
    """

    def __init__(self, origin: Origin | None, *, strings: bool) -> None:
        self._origin = list(origin or ())
        self._strings = strings
        self._replay: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}  # in order of appearance
        self._pieces: dict[int, list[str]] = {}
        self._new: dict[int, bool] = {}
        self._new_replay = False
        self._moved = False  # a state was taken behind shown blocks that its hidden ones came before

    def note(self, event: StreamEvent, wire_id: str = "") -> None:
        """Add an event; for a `ToolUseStart`, `wire_id` is the id that the caller receives."""
        if type(event) is TextDelta or type(event) is ThinkingDelta:
            self._entry(event.index, event.type[:-6])["length"] += len(event.text)
        elif type(event) is ToolUseInputDelta:
            if not self._strings:
                self._pieces.setdefault(event.index, []).append(event.partial_json)
        elif type(event) is ToolUseStart:
            self._entry(event.index, "tool_use")["id"] = wire_id
            self._keep(event.index, {"provider_id": event.provider_id if event.provider_id != wire_id else None})
        elif type(event) is ToolUseEnd and event.block is None:
            self._keep(event.index, {"raw_input": "".join(self._pieces.pop(event.index, ()))})
        elif type(event) is ToolUseEnd or type(event) is BlockEnd:
            self.add(event.index, event.block)  # type: ignore[arg-type]
        elif type(event) is RawUpdate and event.replay:
            self._replay.update(event.replay)
            self._new_replay = True

    def add(self, index: int, block: ContentBlock, wire_id: str = "") -> None:
        """Add a whole block."""
        entry = self._entry(index, block.type)
        if wire_id:
            entry["id"] = wire_id
        if not entry["length"]:
            entry["length"] = len(getattr(block, "text", ""))
        self._keep(index, {name: getattr(block, name) for name in _FIELDS.get(type(block), ())})

    def add_message(self, message: Message, wire_id: Callable[[ToolUseBlock], str]) -> None:
        """Add a whole message; `wire_id` returns the id that the caller receives for a call."""
        for index, block in enumerate(message.content):
            self.add(index, block, wire_id(block) if isinstance(block, ToolUseBlock) else "")
        self._replay.update((message.metadata.provider_raw or EMPTY).get("replay") or EMPTY)
        self._new_replay = bool(self._replay)

    def _entry(self, index: int, kind: str) -> dict[str, Any]:
        found = self._blocks.get(index)
        if found is None:
            found = self._blocks[index] = {"type": kind, "length": 0}
        return found

    def _keep(self, index: int, fields: Mapping[str, Any]) -> None:
        entry = self._blocks[index]
        for name, value in fields.items():
            if not value or value == entry.get("id" if name == "provider_id" else name):
                continue
            if name == "raw_input" and (self._strings or value == dumps(read_tool_input(value)[0]).decode()):
                continue
            entry[name] = value
            self._new[index] = True

    @property
    def has_blocks(self) -> bool:
        """True if new state of a block has not been taken. Replay state alone can wait for a later block."""
        return bool(self._new)

    def take(self, *, whole: bool = False, always: bool = False) -> State | None:
        """Return the state since the last call, or None if there is no new state.

        Args:
            whole: True at the end of an answer, to return all its state. Only a whole state can divide text blocks that
                the API joins.
            always: return a state with the origin even if there is no other state.
        """
        if not (always or self._new or self._new_replay or (whole and self._moved)):
            return None
        blocks = []
        before: Counter[str] = Counter()  # blocks with text, by their type
        hidden = False
        for index, entry in self._blocks.items():
            is_new = index in self._new
            self._moved = self._moved or (hidden and entry["type"] not in (*_WHOLE, ThinkingBlock.type))
            hidden = hidden or (is_new and entry["type"] in _WHOLE)
            if whole or is_new:
                blocks.append(entry if whole else {**entry, "at": before[entry["type"]]})
            before[entry["type"]] += bool(entry["length"])
        state = {"origin": self._origin, "replay": self._replay, "blocks": blocks, "whole": whole}
        self._new, self._new_replay = {}, False
        return state if whole else {**state, "replay": dict(self._replay)}


def restore_answer(message: Message, items: Sequence[ContentBlock | State]) -> Message:
    """Return an answer that a caller sent back, with its unsealed state.

    Args:
        message: the answer without its content.
        items: its blocks, with each unsealed state before the block that carried it.
    """
    items = _of_one_origin(items)
    states: list[State] = [item for item in items if isinstance(item, Mapping)]
    echoed: list[ContentBlock] = [item for item in items if not isinstance(item, Mapping)]
    if not states:
        return replace(message, content=tuple(echoed))
    provider, api, model = states[-1]["origin"]
    replay: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    for state in states:
        replay.update(state["replay"])
        for entry in state["blocks"]:
            if entry["type"] == "tool_use":
                calls.setdefault(entry["id"], {}).update(entry)
    content = _divided(states[-1]["blocks"], echoed) if states[-1]["whole"] else None
    if content is None:
        content = _in_order(items, calls)
    raw = {"origin": [provider, api, model], "replay": replay, "trace": {}} if replay else None
    metadata = replace(message.metadata, provider=provider, api=api, model=f"{provider}:{model}", provider_raw=raw)
    return replace(message, content=tuple(content), metadata=metadata)


def _of_one_origin(items: Sequence[ContentBlock | State]) -> list[ContentBlock | State]:
    """Return the items without states of other origins than the last state's, and without the thinking after those.

    A caller may have joined answers of two origins.
    """
    origin = next((item["origin"] for item in reversed(items) if isinstance(item, Mapping) and item), None)
    out: list[ContentBlock | State] = []
    other = False
    for item in items:
        if isinstance(item, Mapping):
            other = bool(item) and item["origin"] != origin
            if item and not other:
                out.append(item)
        elif not (other and isinstance(item, ThinkingBlock)):
            other = False
            out.append(item)
    return out


def _divided(entries: Sequence[State], echoed: Sequence[ContentBlock]) -> list[ContentBlock] | None:
    """Return the blocks as they were before an API joined their text; None if the caller changed the answer."""
    texts = {
        kind.type: "".join([block.text for block in echoed if type(block) is kind])
        for kind in (TextBlock, ThinkingBlock)
    }
    rest = [block for block in echoed if block.type not in texts]
    out: list[ContentBlock] = []
    for entry in entries:
        kind, length = entry["type"], entry["length"]
        if kind in texts:
            if len(texts[kind]) < length:
                return None
            block: ContentBlock = (TextBlock if kind == "text" else ThinkingBlock)(text=texts[kind][:length])
            texts[kind] = texts[kind][length:]
        elif kind in _WHOLE:
            out.append(_with_state(None, entry))
            continue
        elif not rest or rest[0].type != kind or getattr(rest[0], "id", "") != entry.get("id", ""):
            return None
        else:
            block = rest.pop(0)
        out.append(_with_state(block, entry))
    return None if rest or any(texts.values()) else out


def _in_order(items: Sequence[ContentBlock | State], calls: Mapping[str, State]) -> list[ContentBlock]:
    out: list[ContentBlock] = []
    waiting: list[State] = []
    for item in items:
        if isinstance(item, Mapping):
            entries = item["blocks"]
            out += [_with_state(None, entry) for entry in entries if entry["type"] in _WHOLE]
            for entry in entries:
                written = entry["type"] == "text" and not _is_ahead(out, entry)
                if written and (at := _find_text(out, entry, entry["length"])) is not None:
                    out[at] = _with_state(out[at], entry)  # a stream writes the state after its text
                elif entry["type"] in ("text", "thinking"):
                    waiting.append(entry)
        elif isinstance(item, ToolUseBlock):
            out.append(_with_state(item, calls.get(item.id, EMPTY)))
        else:
            entry = next((each for each in waiting if each["type"] == item.type), EMPTY)
            if entry:
                waiting.remove(entry)
            out.append(_with_state(item, entry))
    for entry in waiting:  # the state is after its block
        if (at := _find_text(out, entry)) is not None:
            out[at] = _with_state(out[at], entry)
    return out


def _is_ahead(blocks: Sequence[ContentBlock], entry: State) -> bool:
    """Return whether a text block comes after these blocks; False if its state has no count of them."""
    texts = sum(block.type == entry["type"] and bool(getattr(block, "text", "")) for block in blocks)
    return bool(entry.get("at", -1) >= texts)


def _find_text(blocks: Sequence[ContentBlock], entry: State, length: int | None = None) -> int | None:
    """Return the index of the last text without a signature, of the entry's type and, if given, of this length."""
    for at in range(len(blocks) - 1, -1, -1):
        block = blocks[at]
        if not isinstance(block, (TextBlock, ThinkingBlock)) or block.type != entry["type"] or block.signature:
            continue
        if length is None or len(block.text) == length:
            return at
    return None


def _with_state(block: ContentBlock | None, entry: State) -> ContentBlock:
    kind: Any = _WHOLE[entry["type"]] if block is None else type(block)
    fields = {name: entry[name] for name in _FIELDS.get(kind, ()) if name in entry}
    if (
        isinstance(block, ToolUseBlock)
        and "raw_input" in fields
        and read_tool_input(fields["raw_input"])[0] != block.input
    ):
        del fields["raw_input"]
    return kind(**fields) if block is None else replace(block, **fields) if fields else block


def answer_events(message: Message, *, pieces: int = 2) -> tuple[StreamEvent, ...]:
    """Return events that assemble to a message.

    Args:
        message: a complete answer.
        pieces: the number of events for each text that has as many characters.
    """
    out: list[StreamEvent] = []
    raw: Mapping[str, Any] = message.metadata.provider_raw or EMPTY
    for index, block in enumerate(message.content):
        if isinstance(block, (TextBlock, ThinkingBlock)):
            delta = TextDelta if isinstance(block, TextBlock) else ThinkingDelta
            out += [delta(index=index, text=text) for text in _pieces(block.text, pieces)]
            out.append(BlockEnd(index=index, block=replace(block, text="")))
        elif isinstance(block, ToolUseBlock):
            out.append(ToolUseStart(index=index, id=block.id, name=block.name, provider_id=block.provider_id))
            out += [ToolUseInputDelta(index=index, partial_json=text) for text in _pieces(block.input_json, pieces)]
            out.append(ToolUseEnd(index=index, block=block))
        else:
            out.append(BlockEnd(index=index, block=block))
    if raw:
        out.append(RawUpdate(replay=raw.get("replay"), trace=raw.get("trace")))
    if message.metadata.usage is not None:
        out.append(UsageUpdate(usage=message.metadata.usage))
    reason = message.metadata.stop_reason or StopReason.END_TURN
    out.append(MessageComplete(stop_reason=reason, stop_reason_raw=message.metadata.stop_reason_raw))
    return tuple(out)


def _pieces(text: str, count: int) -> list[str]:
    ends = [len(text) * at // count for at in range(count + 1)]
    return [piece for start, end in pairwise(ends) if (piece := text[start:end])]

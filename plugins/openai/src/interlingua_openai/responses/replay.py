"""State of a response's items that has no canonical place, kept so that the same model gets its items back whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from interlingua.types import (
    ContentBlock,
    ImageBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua_openai.responses.client_calls import FORMS, is_client_call, with_arguments, without_arguments
from interlingua_openai.responses.items import (
    BETWEEN,
    CALLS,
    PICTURE,
    arguments_of,
    call_id_of,
    is_call,
    is_picture,
    part_text,
    reasoning_texts,
    seal_of,
)

IN_BLOCKS = True  # replaces a value that the blocks hold


def replay_state(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the replay state of a response's items."""
    return {"items": [skeleton(item) for item in items]}


def skeleton(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's shell with a checksum of what the blocks hold of it."""
    kind = item.get("type")
    texts: Iterable[str] = ()
    if kind == "message":
        texts = [part_text(part) or "" for part in item.get("content") or ()]
    elif kind == "reasoning":
        texts = [BETWEEN.join(reasoning_texts(item))]
    elif is_call(item):
        texts = [arguments_of(item)]
    elif is_picture(item):
        texts = [item["result"]]
    return {"item": item_shell(item), "sum": checksum(texts)}


def item_shell(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's own keys in their order, with what the blocks hold left out."""
    kind = item.get("type")
    if kind == "message":
        return {**item, "content": [_part_shell(part) for part in item.get("content") or ()]}
    if kind == "reasoning":
        return _reasoning_shell(item)
    if kind in CALLS:
        return {**item, ("input" if kind == "custom_tool_call" else "arguments"): IN_BLOCKS}
    if is_picture(item):
        return {**item, "result": IN_BLOCKS}
    return without_arguments(item, IN_BLOCKS) if is_client_call(item) else {"type": kind}


def _part_shell(part: Mapping[str, Any]) -> Any:
    text = part_text(part)
    if text is None:
        return IN_BLOCKS
    kept = {name: value for name, value in part.items() if name != "logprobs"}
    if text.strip():
        # blank text stays here, for projection drops its block
        kept["refusal" if part.get("type") == "refusal" else "text"] = IN_BLOCKS
    if kept.get("annotations"):
        kept["annotations"] = IN_BLOCKS
    return kept


def _reasoning_shell(item: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(item)
    for name in ("summary", "content"):
        if parts := item.get(name):
            kept[name] = [{**part, "text": len(part.get("text") or "")} for part in parts]
    if (seal := seal_of(item)) is not None:
        kept[seal] = IN_BLOCKS
    return kept


def checksum(texts: Iterable[str]) -> int:
    """Return the checksum of strings in their order."""
    value = 0
    for text in texts:
        value = crc32(text.encode("utf-8", "surrogatepass"), value)
    return value


class ItemMatch(NamedTuple):
    """An item and the blocks that came from it.

    Attributes:
        item: its skeleton.
        blocks: one per place the skeleton leaves open; None if projection dropped a block.
        same: True when the blocks hold what they held when the item arrived.
    """

    item: Mapping[str, Any]
    blocks: tuple[ContentBlock | None, ...]
    same: bool


def match_items(rows: Any, content: Sequence[ContentBlock]) -> list[ItemMatch] | None:
    """Lay the blocks of a message along its items; None when they do not line up (the history was edited)."""
    found: list[ItemMatch] = []
    at = 0
    for row in rows or ():
        item = row["item"]
        taken: list[ContentBlock | None] = []
        for fits, optional in _places(item):
            block = content[at] if at < len(content) else None
            if block is not None and fits(block):
                taken.append(block)
                at += 1
            elif optional:
                taken.append(None)
            else:
                return None
        found.append(ItemMatch(item, tuple(taken), _is_unchanged(row, item, taken)))
    return found if at == len(content) else None


def _places(item: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield, per block an item gave: a test for it, and whether projection may have dropped it."""
    kind = item.get("type")
    if kind == "message":
        for part in item.get("content") or ():
            if part is IN_BLOCKS:
                yield _is_opaque, False
            else:
                blank = part.get("refusal" if part.get("type") == "refusal" else "text") is not IN_BLOCKS
                yield (_is_blank_text, True) if blank else (_is_text, False)
    elif kind == "reasoning":
        yield _is_thinking, seal_of(item) is None
    elif is_call(item):
        call_id = call_id_of(item)
        yield lambda block: isinstance(block, ToolUseBlock) and block.provider_id == call_id, False
    elif item.get("result") is IN_BLOCKS and kind == PICTURE:
        yield lambda block: isinstance(block, ImageBlock) and block.source.kind == "base64", False
    else:
        yield lambda block: isinstance(block, OpaqueBlock) and block.kind == str(kind), False


def _is_text(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock)


def _is_blank_text(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _is_opaque(block: ContentBlock) -> bool:
    return isinstance(block, OpaqueBlock)


def _is_thinking(block: ContentBlock) -> bool:
    stored = isinstance(block, OpaqueBlock) and block.kind == "reasoning"  # of a caller's request
    return stored or isinstance(block, (ThinkingBlock, RedactedThinkingBlock))


def _is_unchanged(row: Mapping[str, Any], item: Mapping[str, Any], blocks: Sequence[ContentBlock | None]) -> bool:
    kind = item.get("type")
    if kind == "message":
        texts = []
        for part, block in zip(item.get("content") or (), blocks, strict=True):
            if part is not IN_BLOCKS:
                texts.append(block.text if isinstance(block, TextBlock) else part_text(part) or "")
        return bool(checksum(texts) == row["sum"])
    block = blocks[0]
    if isinstance(block, ThinkingBlock):
        return bool(checksum([block.text]) == row["sum"])
    if isinstance(block, ImageBlock):
        return bool(checksum([block.source.data]) == row["sum"])
    return not isinstance(block, ToolUseBlock) or bool(checksum([block.input_json]) == row["sum"])


def to_wire_item(match: ItemMatch) -> dict[str, Any]:
    """Return the item as it arrived, ids, phase and encrypted content included."""
    item = match.item
    kind = item.get("type")
    if kind == "message":
        pairs = zip(item["content"], match.blocks, strict=True)
        return {**item, "content": [_fill_part(part, block) for part, block in pairs]}
    block = match.blocks[0]
    if isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
        return _fill_reasoning(item, block)
    if isinstance(block, ToolUseBlock) and kind in FORMS:
        return with_arguments(item, block.input, IN_BLOCKS) | {"call_id" if "call_id" in item else "id": block.id}
    if isinstance(block, ToolUseBlock):
        return {**item, "call_id": block.id, "name": call_name(item, block), **call_arguments(item, block)}
    if isinstance(block, ImageBlock):
        return {**item, "result": block.source.data}
    assert isinstance(block, OpaqueBlock)  # noqa: S101  `match_items` checked it
    return dict(block.data)


def call_name(item: Mapping[str, Any], call: ToolUseBlock) -> str:
    """Return a call's name: in a namespace the item has it, which others know with the namespace before it."""
    return str(item["name"]) if item.get("namespace") and "name" in item else call.name


def call_arguments(item: Mapping[str, Any], call: ToolUseBlock) -> dict[str, str]:
    """Return the argument member of a function or custom call."""
    if item.get("type") == "custom_tool_call":
        return {"input": str(call.input.get("input", ""))}
    return {"arguments": call.input_json}


def _fill_part(part: Any, block: ContentBlock | None) -> Any:
    if isinstance(block, OpaqueBlock):
        return block.data
    if not isinstance(block, TextBlock):
        return part
    filled = dict(part)
    filled["refusal" if part.get("type") == "refusal" else "text"] = block.text
    if part.get("annotations") is IN_BLOCKS:
        filled["annotations"] = block.citations
    return filled


def _fill_reasoning(item: Mapping[str, Any], block: ThinkingBlock | RedactedThinkingBlock) -> dict[str, Any]:
    filled = dict(item)
    text = block.text if isinstance(block, ThinkingBlock) else ""
    at = 0
    for name in ("summary", "content"):
        if parts := item.get(name):
            filled[name] = []
            for part in parts:
                length = part["text"]
                at += len(BETWEEN) if at and length else 0
                filled[name].append({**part, "text": text[at : at + length]})
                at += length
    if (seal := seal_of(item)) is not None:
        filled[seal] = block.signature if isinstance(block, ThinkingBlock) else block.data
    return filled

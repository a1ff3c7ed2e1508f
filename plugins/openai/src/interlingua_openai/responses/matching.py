"""A message's blocks laid along the items they came from, and the items written again (sheet §3, §4).

Never guesses: where blocks and items do not line up, the history was edited and nothing is matched.
`assistant` comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.blocks import (
    ContentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua_openai.responses.items import BETWEEN, CALLS, part_text
from interlingua_openai.responses.replay import HELD, checksum


class Matched(NamedTuple):
    """An item and the blocks that came from it.

    Attributes:
        item: its skeleton.
        blocks: one per place the skeleton leaves open; None where projection dropped a block.
        same: True when the blocks hold what they held when the item arrived.
    """

    item: Mapping[str, Any]
    blocks: tuple[ContentBlock | None, ...]
    same: bool


def matched(rows: Any, content: Sequence[ContentBlock]) -> list[Matched] | None:
    """Lay the blocks of a message along its items; None when they do not line up (the history was edited)."""
    found: list[Matched] = []
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
        found.append(Matched(item, tuple(taken), _same(row, item, taken)))
    return found if at == len(content) else None


def _places(item: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield, per block an item gave: a test for it, and whether projection may have dropped it."""
    kind = item.get("type")
    if kind == "message":
        for part in item.get("content") or ():
            if part is HELD:
                yield _is_opaque, False
            else:
                blank = part.get("refusal" if part.get("type") == "refusal" else "text") is not HELD
                yield (_is_blank_text, True) if blank else (_is_text, False)
    elif kind == "reasoning":
        yield _is_thinking, not item.get("encrypted_content")
    elif kind in CALLS:
        call_id = item.get("call_id") or item.get("id")
        yield lambda block: isinstance(block, ToolUseBlock) and block.provider_id == call_id, False
    else:
        yield lambda block: isinstance(block, OpaqueBlock) and block.kind == str(kind), False


def _is_text(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock)


def _is_blank_text(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _is_opaque(block: ContentBlock) -> bool:
    return isinstance(block, OpaqueBlock)


def _is_thinking(block: ContentBlock) -> bool:
    return isinstance(block, (ThinkingBlock, RedactedThinkingBlock))


def _same(row: Mapping[str, Any], item: Mapping[str, Any], blocks: Sequence[ContentBlock | None]) -> bool:
    kind = item.get("type")
    if kind == "message":
        texts = []
        for part, block in zip(item.get("content") or (), blocks, strict=True):
            if part is not HELD:
                texts.append(block.text if isinstance(block, TextBlock) else part_text(part) or "")
        return bool(checksum(texts) == row["sum"])
    block = blocks[0]
    if isinstance(block, ThinkingBlock):
        return bool(checksum([block.text]) == row["sum"])
    return not isinstance(block, ToolUseBlock) or bool(checksum([block.input_json]) == row["sum"])


def to_wire_matched(match: Matched) -> dict[str, Any]:
    """Return the item as it arrived, ids, phase and encrypted content included."""
    item = match.item
    kind = item.get("type")
    if kind == "message":
        pairs = zip(item["content"], match.blocks, strict=True)
        return {**item, "content": [_filled(part, block) for part, block in pairs]}
    block = match.blocks[0]
    if isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
        return _filled_reasoning(item, block)
    if isinstance(block, ToolUseBlock):
        return {**item, "call_id": block.id, "name": block.name, **call_arguments(item, block)}
    assert isinstance(block, OpaqueBlock)  # noqa: S101  `matched` saw to it
    return dict(block.data)


def call_arguments(item: Mapping[str, Any], call: ToolUseBlock) -> dict[str, str]:
    """Return the argument member of a function or custom call."""
    if item.get("type") == "custom_tool_call":
        return {"input": str(call.input.get("input", ""))}
    return {"arguments": call.input_json}


def _filled(part: Any, block: ContentBlock | None) -> Any:
    if isinstance(block, OpaqueBlock):
        return block.data
    if not isinstance(block, TextBlock):
        return part
    filled = dict(part)
    filled["refusal" if part.get("type") == "refusal" else "text"] = block.text
    if part.get("annotations") is HELD:
        filled["annotations"] = block.citations
    return filled


def _filled_reasoning(item: Mapping[str, Any], block: ThinkingBlock | RedactedThinkingBlock) -> dict[str, Any]:
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
    if item.get("encrypted_content"):
        filled["encrypted_content"] = block.signature if isinstance(block, ThinkingBlock) else block.data
    return filled

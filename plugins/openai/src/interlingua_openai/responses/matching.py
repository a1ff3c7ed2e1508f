"""A message's blocks laid along the items they came from, or the finding that they do not fit (sheet §3).

Never guesses: where blocks and items do not line up, the history was edited and nothing is matched.
`assistant` and `refill` come in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.types import ContentBlock, OpaqueBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua_openai.responses.items import CALLS, call_id_of, part_text
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
        call_id = call_id_of(item)
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

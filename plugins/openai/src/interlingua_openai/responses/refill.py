"""A matched item -> the item as it arrived, ids, phase and encrypted content included (sheet openai_responses §4).

Never decides whether it may be sent (`assistant` does).
`assistant` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.types import ContentBlock, OpaqueBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua_openai.responses.items import BETWEEN
from interlingua_openai.responses.matching import Matched
from interlingua_openai.responses.replay import HELD


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

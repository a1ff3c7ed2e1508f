"""An assistant message -> its items: the own model's exactly as they came, any other's by content (sheet §3, §4).

Never sends half of a pair: where reasoning cannot go back, the ids of the items it belongs to do not either.
`elements` comes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import BlockLoss
from interlingua.types import (
    ContentBlock,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from interlingua_openai.catalogue import RESPONSES
from interlingua_openai.responses.items import CALLS
from interlingua_openai.responses.matching import Matched, matched
from interlingua_openai.responses.refill import call_arguments, to_wire_matched

_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_EDITED = "the message was edited since it was made"
_UNKEPT = "its reasoning has no encrypted form, so nothing of it is kept by the service"


def to_wire_assistant(message: Message, model: str) -> tuple[list[Any], list[BlockLoss], tuple[str, ...]]:
    """Return items, losses, and the ids of custom calls."""
    raw: Mapping[str, Any] = message.metadata.provider_raw or {}
    origin: Sequence[str] = raw.get("origin") or ()
    rows = (raw.get("replay") or {}).get("items") if len(origin) == 3 and origin[1] == RESPONSES else None
    same_model = rows is not None and _stem(origin[2]) == _stem(model)
    matches = matched(rows, message.content) if rows else None
    custom = _custom_calls(rows, message)
    why = _broken(matches) if same_model else "it was made by another model"
    if matches is not None and why is None:
        whole, losses = _without_dangling(matches, message)
        return [to_wire_matched(match) for match in whole], losses, custom
    items, losses = _by_content(message, rows or (), matches if same_model else None, why or _EDITED)
    return items, losses, custom


def _stem(model: str) -> str:
    return _SNAPSHOT.sub("", model)


def _broken(matches: list[Matched] | None) -> str | None:
    """Say why the items may not go back as they came, or None. A pair is broken by an edit or by lost reasoning."""
    if matches is None or not all(match.same for match in matches):
        return _EDITED
    reasoning = [match for match in matches if match.item.get("type") == "reasoning"]
    return None if all(match.item.get("encrypted_content") for match in reasoning) else _UNKEPT


def _without_dangling(matches: list[Matched], message: Message) -> tuple[list[Matched], list[BlockLoss]]:
    """Leave out reasoning at the end: the item it led to was never made, and alone it is refused (sheet §3)."""
    end = len(matches)
    while end and matches[end - 1].item.get("type") == "reasoning":
        end -= 1
    gone = len(matches) - end
    places = range(len(message.content) - gone, len(message.content))
    why = "reasoning cannot go back: no item followed it"
    return matches[:end], [BlockLoss(at, message.content[at].type, "dropped", why) for at in places]


def _custom_calls(rows: Any, message: Message) -> tuple[str, ...]:
    custom = {row["item"].get("call_id") for row in rows or () if row["item"].get("type") == "custom_tool_call"}
    return tuple(call.id for call in message.tool_calls() if call.provider_id in custom) if custom else ()


def _by_content(
    message: Message, rows: Any, matches: list[Matched] | None, why: str
) -> tuple[list[Any], list[BlockLoss]]:
    """Write the blocks without ids and reasoning."""
    kept = [row["item"] for row in rows]
    calls = {item.get("call_id"): item for item in kept if item.get("type") in CALLS}
    phases = _phases(matches)
    reasoned = any(item.get("type") == "reasoning" for item in kept)
    items: list[Any] = []
    losses: list[BlockLoss] = []
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            _add_text(items, block, phases.get(id(block)))
        elif isinstance(block, ToolUseBlock):
            items.append(_call(block, calls.get(block.provider_id) or {}))
        elif isinstance(block, OpaqueBlock) and not (reasoned and "id" in block.data):
            items.append(block.data)
        else:
            losses.append(BlockLoss(at, block.type, "dropped", _reason(block, why)))
    return items, losses


def _reason(block: ContentBlock, why: str) -> str:
    if isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
        return f"reasoning cannot go back: {why}"
    if isinstance(block, OpaqueBlock):
        return f"{block.kind} is bound to reasoning that does not go back: {why}"
    return f"an assistant message on this wire cannot hold {block.type}"


def _phases(matches: list[Matched] | None) -> dict[int, str]:
    """Phase by block: it tells the model what was commentary and costs nothing to keep (sheet §4)."""
    return {
        id(block): match.item["phase"]
        for match in matches or ()
        for block in match.blocks
        if match.item.get("phase") is not None
    }


def _add_text(items: list[Any], block: TextBlock, phase: str | None) -> None:
    part = {"type": "output_text", "text": block.text}
    last = items[-1] if items else {}
    if last.get("type") == "message" and "id" not in last and last.get("phase") == phase:
        last["content"].append(part)
        return
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
    if phase is not None:
        item["phase"] = phase
    items.append(item)


def _call(block: ToolUseBlock, item: Mapping[str, Any]) -> dict[str, Any]:
    """A call without its item id; a namespace belongs to the tool's name, so it stays (sheet §2)."""
    kind = "custom_tool_call" if item.get("type") == "custom_tool_call" else "function_call"
    held = {"type": kind, "call_id": block.id, "name": block.name}
    if item.get("namespace"):
        held["namespace"] = item["namespace"]
    return held | call_arguments(item, block)

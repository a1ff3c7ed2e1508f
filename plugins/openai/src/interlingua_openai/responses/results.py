"""A tool message -> its output items (sheet openai_responses §2, `function_call_output`).

Never looks for the call it answers: core stands every result behind its call.
`elements` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import BlockLoss, dumps
from interlingua.types import Message, ToolResultBlock
from interlingua_openai.responses.element import Elements, marked_part
from interlingua_openai.responses.parts import to_wire_part

_ERROR_PREFIX = "Error: "  # as on the Chat wire: neither has an error flag


def to_wire_results(message: Message, marked: Sequence[int], custom: frozenset[str]) -> Elements:
    """Write the results; `custom` holds the ids of calls whose results have the custom type."""
    items = []
    rows: list[BlockLoss] = []
    hints = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            rows.append(BlockLoss(at, block.type, "dropped", "a tool message holds results only"))
            continue
        kind = "custom_tool_call_output" if block.tool_use_id in custom else "function_call_output"
        output = _output(block, at, rows)
        if at in marked and isinstance(output, list):
            output[-1] = marked_part(output[-1], block)
        if block.cache is not None and isinstance(output, list):
            hints.append(at)
        items.append({"type": kind, "call_id": block.tool_use_id, "output": output})
    return Elements(b",".join([dumps(item) for item in items]), tuple(rows), tuple(hints))


def _output(block: ToolResultBlock, at: int, rows: list[BlockLoss]) -> str | list[Any]:
    """One text is a string; anything more is a list of parts, and so is what may be marked."""
    parts = []
    for part in block.content:
        made = to_wire_part(part)
        if made is None:
            rows.append(BlockLoss(at, part.type, "dropped", f"a result on this wire cannot hold {part.type}"))
        else:
            parts.append(dict(made))
    if len(parts) > 1:  # blank text says nothing beside other parts, and may be refused as one (case 12)
        parts = [part for part in parts if _says(part)] or parts[:1]
    if block.is_error:
        rows.append(BlockLoss(at, block.type, "rewritten", "this wire has no error flag; the text says it"))
        if parts and parts[0]["type"] == "input_text":
            parts[0]["text"] = _ERROR_PREFIX + parts[0]["text"]
        else:
            parts.insert(0, {"type": "input_text", "text": _ERROR_PREFIX.rstrip()})
    plain = len(parts) <= 1 and all(part["type"] == "input_text" for part in parts)
    if plain and (block.cache is None or not parts or not _says(parts[0])):
        return parts[0]["text"] if parts else ""
    return parts


def _says(part: Mapping[str, Any]) -> bool:
    return part["type"] != "input_text" or bool(part["text"].strip())

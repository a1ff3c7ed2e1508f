"""The short way for plain content: text, calls, and results of one text.

Never marks, drops or rewrites anything: a message that wants any of it is left to `elements`, which writes these very
bytes for the others. `turns` comes in, and the estimate.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import dumps
from interlingua.plugins.encoding import inside
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Message, Role
from interlingua.types.plain import RESULT, TEXT, plainness

_ASSISTANT = Role.ASSISTANT  # an enum's member is found by a slow call before Python 3.12
WRITTEN = ("anthropic", "usual")
"""Memo key of what `usual_elements` made of a message."""


def usual_elements(message: Message) -> bytes | None:
    """Return a message's elements, joined and made once; None: its content is not plain."""
    found: bytes | None = message.memo.get(WRITTEN)
    if found is None:
        blocks = usual_blocks(message)
        if blocks is not None:
            found = message.memo[WRITTEN] = bytes(inside(dumps(blocks)))
    return found


def usual_blocks(message: Message) -> list[dict[str, Any]] | None:
    """Return a message's elements, still to be written; None: its content is not plain."""
    kind = plainness(message)
    if not kind or message.metadata.provider_raw is not None:
        return None
    content: tuple[Any, ...] = message.content
    block = content[0]
    if kind is TEXT:
        text = block.text
        if message.role is _ASSISTANT and text[-1].isspace():
            return None  # cannot always stand at an assistant's end
        return [{"type": "text", "text": text}]
    if kind is RESULT:
        element = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": block.content[0].text}
        if block.is_error:
            element["is_error"] = True
        return [element]
    elements: list[dict[str, Any]] = []
    for block in content:
        if type(block) is ToolUseBlock:
            elements.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
        else:
            elements.append({"type": "text", "text": block.text})
    return elements

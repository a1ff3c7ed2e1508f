"""The short way for what most histories are made of: text, calls, and results of one text.

Never marks, drops or rewrites anything: a message that wants any of it is left to `elements`, which writes these very
bytes for the others. `turns` comes in.
"""

from __future__ import annotations

from interlingua.blocks import ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua_anthropic.elements import fits_name

_KEY = ("anthropic", "usual")


def usual_elements(message: Message) -> bytes | None:
    """Return a message's elements, joined and made once; None: it is not a usual one."""
    found: bytes | None = message.memo.get(_KEY)
    if found is None:
        content = message.content
        if message.metadata.provider_raw is not None or not content:
            return None
        if message.role is Role.ASSISTANT and type(content[-1]) is TextBlock and content[-1].text[-1:].isspace():
            return None
        if len(content) == 1:
            found = _element(content[0])
        else:
            parts = [_element(block) for block in content]
            found = None if None in parts else b",".join(parts)  # type: ignore[arg-type]
        if found is not None:
            message.memo[_KEY] = found
    return found


def _element(block: ContentBlock) -> bytes | None:
    if type(block) is TextBlock:
        if block.cache is not None or block.citations or block.signature is not None:
            return None
        return dumps({"type": "text", "text": block.text})
    if type(block) is ToolUseBlock:
        if block.cache is not None or block.parse_error is not None or not fits_name(block.name):
            return None
        return dumps({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
    if type(block) is ToolResultBlock and len(block.content) == 1 and block.cache is None:
        part = block.content[0]
        if type(part) is TextBlock and part.cache is None and part.text and not part.text.isspace():
            element = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": part.text}
            return dumps(element | {"is_error": True} if block.is_error else element)
    return None

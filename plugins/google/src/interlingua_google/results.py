"""A tool's result -> its `functionResponse` part, and what of its media stands beside it (sheet gemini §2).

Never counts results (projection answers every call, in the calls' order). `contents` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import dumps
from interlingua.plugins.wire import BlockLoss
from interlingua.types.blocks import OpaqueBlock, TextBlock, ToolResultBlock
from interlingua.types.messages import Message
from interlingua_google.media import MEDIA, to_wire_media, unsaid
from interlingua_google.parts import Parts

_INSIDE = ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")  # sheet §2


def to_wire_result(message: Message, name: str | None, *, with_id: bool) -> Parts:
    """Write a TOOL message.

    Args:
        message: it holds one result, the call's wire id in it.
        name: the function's name as its call said it; None where that is not known.
        with_id: the model gave the call an id, so the result names it (sheet §2; REGRESSIONS case 11).
    """
    made: list[dict[str, Any]] = []
    rows: list[BlockLoss] = []
    for index, block in enumerate(message.content):
        if isinstance(block, ToolResultBlock):
            made += _result(block, index, name, rows, with_id=with_id)
    return Parts("user", b",".join(map(dumps, made)), tuple(rows))


def _result(
    block: ToolResultBlock, index: int, name: str | None, rows: list[BlockLoss], *, with_id: bool
) -> list[dict[str, Any]]:
    said: list[Any] = []
    inside: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for part in block.content:
        if isinstance(part, TextBlock):
            said.append(part.text)
        elif isinstance(part, OpaqueBlock):
            said.append(part.data)
        elif isinstance(part, MEDIA):
            (inside if part.media_type in _INSIDE else beside).append(to_wire_media(part))
            if (names := unsaid(part)) is not None:
                reason = f"this wire has no {names} on a part; the data is kept"
                rows.append(BlockLoss(index, part.type, "rewritten", reason))
            if part.media_type not in _INSIDE:
                reason = f"a result holds no {part.media_type or 'media of unknown type'} here; it follows the result"
                rows.append(BlockLoss(index, part.type, "rewritten", reason))
    value = said[0] if len(said) == 1 else said or ""
    response = {
        **({"id": block.tool_use_id} if with_id else {}),
        "name": name or block.tool_name or block.tool_use_id,
        "response": {"error" if block.is_error else "output": value},
    }
    return [{"functionResponse": response | ({"parts": inside} if inside else {})}, *beside]

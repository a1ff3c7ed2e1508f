"""The short way for plain messages: the very objects that the message writer makes of them, still to be written.

Never marks, drops or rewrites anything: a message that wants any of it is left to the message writer.
The request writer comes in, for services that have no rules across messages.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import dumps
from interlingua.types.blocks import TextBlock
from interlingua.types.messages import Message, Role
from interlingua.types.plain import RESULT, TEXT, plainness
from interlingua_chat_completions.dialect import Dialect

_SYSTEM, _USER = Role.SYSTEM, Role.USER  # an enum's member is found by a slow call before Python 3.12


def usual_body(message: Message, dialect: Dialect) -> dict[str, Any] | None:
    """Return a message's object; None: its content is not plain, or this service wants more of it."""
    kind = plainness(message)
    if not kind:
        return None
    content: tuple[Any, ...] = message.content
    first = content[0]
    if kind is RESULT:
        if first.is_error:
            return None
        return {"role": "tool", "tool_call_id": first.tool_use_id, "content": first.content[0].text}
    role = message.role
    if role is _USER:
        if dialect.cache_breakpoints:  # markers need parts, and so the parts are always there
            return {"role": "user", "content": [{"type": "text", "text": first.text}]}
        return {"role": "user", "content": first.text}
    if (
        role is _SYSTEM
        or type(first) is not TextBlock
        or message.metadata.provider_raw is not None
        or dialect.content_chunks
        or dialect.reasoning_missing is not None
    ):
        return None
    body = {"role": "assistant", "content": first.text}
    return body if kind is TEXT else _with_calls(body, content[1:])


def _with_calls(body: dict[str, Any], blocks: tuple[Any, ...]) -> dict[str, Any] | None:
    calls: list[dict[str, Any]] = []
    for block in blocks:
        if block.raw_input is not None:
            return None  # replayed letter by letter
        function = {"name": block.name, "arguments": dumps(block.input).decode()}
        calls.append({"id": block.id, "type": "function", "function": function})
    body["tool_calls"] = calls
    return body

"""Events and messages as seed 000 spells them in JSON (§2 to §5).

Never reads that JSON back: transcripts of that runtime are another distribution's business.
User interfaces behind a socket come in, through the room's front door.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.types.blocks import ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageStatus, Role, Usage
from interlingua_sessions.events.agent import AgentEvent
from interlingua_sessions.events.assistant import AssistantMessageEvent, Error
from interlingua_sessions.events.view import seed_stop_reason

_SPELLING = {
    "content_index": "contentIndex",
    "assistant_message_event": "assistantMessageEvent",
    "tool_call": "toolCall",
    "tool_call_id": "toolCallId",
    "tool_name": "toolName",
    "tool_results": "toolResults",
    "partial_result": "partialResult",
    "is_error": "isError",
}
_READ = ("partial", "content", "tool_call", "message")
"""What events make when it is read: properties, not fields."""
_INTERNAL = frozenset({"growing", "seen", "cause"})


def to_wire_event(event: AssistantMessageEvent | AgentEvent) -> dict[str, Any]:
    """Write an event as the seed's JSON object; a partial is made for it."""
    names = [field.name for field in attrs.fields(type(event)) if field.name not in _INTERNAL]
    names += [name for name in _READ if isinstance(getattr(type(event), name, None), property)]
    written = {_SPELLING.get(name, name): _value(getattr(event, name)) for name in names}
    if isinstance(event, Error):
        written["error"]["stopReason"] = event.reason
    return {"type": event.type, **written}


def to_wire_message(message: Message) -> dict[str, Any]:
    """Write a message in the seed's form (§3); blocks that it has no word for are left out.

    A system message, which the seed keeps elsewhere, is written with role `system`. The seed knows no unknown counts
    and no unknown price: both are 0 there.
    """
    role = "toolResult" if message.role is Role.TOOL else message.role.value
    written: dict[str, Any] = {"role": role, "content": _content(message)}
    metadata = message.metadata
    if message.role is Role.ASSISTANT:
        written |= {"api": metadata.api or "", "provider": metadata.provider or ""}
        written |= {"model": (metadata.model or "").partition(":")[2], "usage": _usage(metadata.usage or Usage())}
        written["stopReason"] = seed_stop_reason(message)
        if metadata.error is not None:
            written["errorMessage"] = metadata.error.message
    elif message.role is Role.TOOL:
        written |= _result_fields(message.tool_results()[0])
    return written | {"timestamp": int(message.created_at.timestamp() * 1000)}


def to_wire_block(block: object) -> dict[str, Any] | None:
    """Write a block in the seed's form (§2), or None where it has none."""
    if isinstance(block, TextBlock):
        return _present({"type": "text", "text": block.text, "textSignature": block.signature})
    if isinstance(block, ThinkingBlock):
        return _present({"type": "thinking", "thinking": block.text, "thinkingSignature": block.signature})
    if isinstance(block, ToolUseBlock):
        fields = {"type": "toolCall", "id": block.id, "name": block.name, "arguments": dict(block.input)}
        return _present({**fields, "thoughtSignature": block.signature})
    if isinstance(block, ImageBlock) and block.source.kind == "base64":
        return {"type": "image", "data": block.source.data, "mimeType": block.media_type}
    return None


def _content(message: Message) -> Any:
    blocks: Any = message.content
    if message.role is Role.TOOL:
        blocks = message.tool_results()[0].content
    elif message.role in (Role.USER, Role.SYSTEM) and all(type(block) is TextBlock for block in blocks):
        return message.text_content()
    return [written for block in blocks if (written := to_wire_block(block)) is not None]


def _result_fields(result: ToolResultBlock) -> dict[str, Any]:
    fields = {"toolCallId": result.tool_use_id, "toolName": result.tool_name or "", "isError": result.is_error}
    return fields if result.details is None else {**fields, "details": dict(result.details)}


def _usage(usage: Usage) -> dict[str, Any]:
    buckets, cost = usage.buckets(), usage.cost
    output = usage.output_tokens or 0
    parts = (cost.input, cost.output, cost.cached_read, cost.cache_write) if cost else (0, 0, 0, 0)
    money = dict(zip(("input", "output", "cacheRead", "cacheWrite"), map(float, parts), strict=True))
    return {
        "input": buckets.uncached_input,
        "output": output,
        "cacheRead": buckets.cached_input,
        "cacheWrite": buckets.cache_creation_input,
        "totalTokens": buckets.uncached_input + output,  # the seed's sum: input and output, without the cache
        "cost": {**money, "total": float(usage.cost_usd or 0)},
    }


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        growing = value.metadata.status is MessageStatus.PARTIAL  # not aborted: that runtime says `stop` meanwhile
        return to_wire_message(value) | ({"stopReason": "stop"} if growing else {})
    if isinstance(value, ToolResultBlock):
        content = [written for block in value.content if (written := to_wire_block(block)) is not None]
        return _present({"content": content, "details": None if value.details is None else dict(value.details)})
    if isinstance(value, ToolUseBlock):
        return to_wire_block(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return to_wire_event(value) if isinstance(value, AssistantMessageEvent) else value


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

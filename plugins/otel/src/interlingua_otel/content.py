"""Prompts, answers and tools in the form of the conventions' JSON schemas, for applications that record content."""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Sequence
from enum import Enum
from hashlib import sha256
from typing import Any

from interlingua.plugins import dumps, thaw
from interlingua.types import (
    ContentBlock,
    MediaBlock,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
)

_log = logging.getLogger("interlingua")
_FEWEST = 64  # characters that a shortened string keeps at least


class CaptureContent(Enum):
    """Where the content of requests and answers is recorded; the values of `VARIABLE`."""

    NO_CONTENT = "NO_CONTENT"
    SPAN_ONLY = "SPAN_ONLY"
    EVENT_ONLY = "EVENT_ONLY"
    SPAN_AND_EVENT = "SPAN_AND_EVENT"

    @property
    def on_spans(self) -> bool:
        """True if content is recorded as attributes of spans, in JSON."""
        return self in (CaptureContent.SPAN_ONLY, CaptureContent.SPAN_AND_EVENT)

    @property
    def on_events(self) -> bool:
        """True if content is recorded in events, as structured values."""
        return self in (CaptureContent.EVENT_ONLY, CaptureContent.SPAN_AND_EVENT)


VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def read_capture(value: str | CaptureContent | None) -> CaptureContent:
    """Read an argument or the variable; an unknown word records no content, with a warning."""
    if isinstance(value, CaptureContent):
        return value
    try:
        return CaptureContent((value or "NO_CONTENT").strip().upper())
    except ValueError:
        words = ", ".join(one.value for one in CaptureContent)
        _log.warning("%s must be one of %s, not %r: no content is recorded", VARIABLE, words, value)
        return CaptureContent.NO_CONTENT


def to_instructions(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the text of the leading system messages."""
    leading = messages[: _begin(messages)]
    return [part for message in leading for part in map(_to_part, message.content) if part["type"] == "text"]


def to_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages after the leading system messages."""
    return [_to_message(message) for message in messages[_begin(messages) :]]


def to_definitions(tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """Return the tools that a model was offered."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": thaw(tool.input_schema),
        }
        for tool in tools
    ]


def to_arguments(call: ToolUseBlock) -> Any:
    """Return a call's input, or the received string if it is not valid JSON."""
    return call.raw_input if call.parse_error is not None else thaw(call.input)


def to_response(result: ToolResultBlock) -> Any:
    """Return a result: its text, or its parts if it holds more than text."""
    if all(isinstance(block, TextBlock) for block in result.content):
        return "".join(block.text for block in result.content if isinstance(block, TextBlock))
    return [_to_part(block) for block in result.content]


def fit(value: Any, limit: int) -> Any:
    """Return a value whose JSON has at most `limit` characters: strings are shortened, then the oldest items dropped.

    An extra item counts the dropped ones, so that the JSON stays valid.
    """
    longest = limit
    while len(to_text(value)) > limit and longest > _FEWEST:
        longest = max(longest // 2, _FEWEST)
        value = _shorten(value, longest)
    if not isinstance(value, list):
        return value if len(to_text(value)) <= limit else f"[{len(to_text(value))} characters left out]"
    dropped = 0
    while len(value) > 1 and len(to_text(value)) > limit:
        value, dropped = value[1:], dropped + 1
    if len(to_text(value)) > limit:
        value, dropped = [], dropped + len(value)
    note = {"type": "truncated", "dropped": dropped}
    if dropped and (not value or "parts" in value[0]):
        return [{"role": "system", "parts": [note]}, *value]
    return [note, *value] if dropped else value


def to_text(value: Any) -> str:
    """Return JSON text."""
    return dumps(value).decode()


def _begin(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))


def _to_message(message: Message) -> dict[str, Any]:
    return {"role": message.role.value, "parts": [_to_part(block) for block in message.content]}


def _to_part(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "content": block.text}
    if isinstance(block, ThinkingBlock):
        return {"type": "reasoning", "content": block.text}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": to_arguments(block)}
    if isinstance(block, ToolResultBlock):
        return {"type": "tool_call_response", "id": block.tool_use_id, "response": to_response(block)}
    if isinstance(block, MediaBlock):
        return _to_media(block)
    if isinstance(block, OpaqueBlock):
        return {"type": block.kind, "provider": block.provider}
    return {"type": block.type}  # encrypted reasoning, and blocks of newer versions


def _to_media(block: Any) -> dict[str, Any]:
    """Return where media are, or their digest and size: never their bytes."""
    source = block.source
    part = {"modality": block.type, "mime_type": block.media_type or None}
    if source.kind == "url":
        return {"type": "uri", **part, "uri": source.data.partition("?")[0]}  # a query may hold a signature
    if source.kind == "file_id":
        return {"type": "file", **part, "file_id": source.data}
    if source.kind != "base64":
        return {"type": "media", **part, "file_ref": source.data}
    data = b64decode(source.data)
    return {"type": "media", **part, "sha256": sha256(data).hexdigest(), "size": len(data)}


def _shorten(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        if len(value) <= longest:
            return value
        return f"{value[:longest]}… [{len(value) - longest} characters left out]"
    if isinstance(value, dict):
        return {name: _shorten(item, longest) for name, item in value.items()}
    return [_shorten(item, longest) for item in value] if isinstance(value, list) else value

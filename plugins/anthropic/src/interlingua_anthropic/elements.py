"""One canonical message -> its content elements on this wire, as bytes (sheet anthropic §2 to §5).

Never places a cache marker (those are spliced in afterwards, so that they are not part of the prefix) and never looks
at another message. `to_wire` comes in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, NamedTuple

from interlingua.blocks import (
    DocumentBlock,
    ImageBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua.wire import Verdict


class Row(NamedTuple):
    """A loss of this wire alone, before its message's place is known."""

    block: int
    block_type: str
    verdict: Verdict
    reason: str


class Mark(NamedTuple):
    """A cache hint: which element, and for how long."""

    element: int
    ttl: str | None


class Elements(NamedTuple):
    """What a message became: elements in order, hints, losses; `joined` is the usual case, ready."""

    role: str
    parts: tuple[bytes, ...]
    joined: bytes
    marks: tuple[Mark, ...]
    rows: tuple[Row, ...]


def to_wire_elements(message: Message) -> Elements:
    """Write a message's elements, thinking included."""
    return _elements(message, with_thinking=True)


def to_wire_elements_without_thinking(message: Message) -> Elements:
    """Write a message's elements without thinking, for histories edited before it (sheet §5, block binding)."""
    return _elements(message, with_thinking=False)


def _elements(message: Message, *, with_thinking: bool) -> Elements:
    parts: list[bytes] = []
    marks: list[Mark] = []
    rows: list[Row] = []
    raw = message.metadata.provider_raw
    calls: dict[str, Any] = raw["replay"].get("calls", {}) if raw else {}
    for index, block in enumerate(message.content):
        if not with_thinking and isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
            rows.append(Row(index, block.type, "dropped", "what came before this thinking has changed since"))
            continue
        element = _element(block, index, message, calls, rows)
        if element is None:
            continue
        hint = getattr(block, "cache", None)
        if hint is not None:
            marks.append(Mark(len(parts), hint.ttl))
        parts.append(dumps(element))
    role = "assistant" if message.role is Role.ASSISTANT else "user"
    return Elements(role, tuple(parts), b",".join(parts), tuple(marks), tuple(rows))


def _element(block: Any, index: int, message: Message, calls: dict[str, Any], rows: list[Row]) -> Any:
    kind = type(block)
    if kind is TextBlock:
        return _text(block, index, message, rows)
    if kind is ToolUseBlock:
        return _call(block, index, calls, rows)
    if kind is ToolResultBlock:
        return _result(block)
    if kind is ThinkingBlock:
        return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    if kind is RedactedThinkingBlock:
        return {"type": "redacted_thinking", "data": block.data}
    if kind is OpaqueBlock:
        return block.data
    if kind is DocumentBlock and message.role is Role.ASSISTANT:
        rows.append(Row(index, block.type, "dropped", "this wire takes no document in an assistant message"))
        return None
    return _MEDIA[kind](block)


def _text(block: TextBlock, index: int, message: Message, rows: list[Row]) -> dict[str, Any]:
    element: dict[str, Any] = {"type": "text", "text": block.text}
    if block.citations:
        if message.role is Role.ASSISTANT:
            element["citations"] = list(block.citations)
        else:
            rows.append(Row(index, block.type, "rewritten", "this wire takes citations on assistant text only"))
    return element


def _call(block: ToolUseBlock, index: int, calls: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    value: Any = block.input
    if block.parse_error is not None:
        rows.append(Row(index, block.type, "rewritten", "arguments are not JSON and this wire wants an object"))
        value = {"invalid_json": block.raw_input}
    element = {"type": "tool_use", "id": block.id, "name": block.name, "input": value}
    return element | calls.get(block.id, {})


def _result(block: ToolResultBlock) -> dict[str, Any]:
    content = block.content
    inner: Any
    if len(content) == 1 and type(content[0]) is TextBlock and content[0].cache is None:
        inner = content[0].text
    else:
        inner = [_inner(part) for part in content]
    element: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.tool_use_id}
    if inner:
        element["content"] = inner
    if block.is_error:
        element["is_error"] = True
    return element


def _inner(part: Any) -> Any:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    return part.data if isinstance(part, OpaqueBlock) else _MEDIA[type(part)](part)


def _source(block: ImageBlock | DocumentBlock) -> dict[str, Any]:
    source = block.source
    if source.kind == "base64":
        return {"type": "base64", "media_type": block.media_type, "data": source.data}
    if source.kind == "file_id":
        return {"type": "file", "file_id": source.data}
    return {"type": "url", "url": source.data}


def _image(block: ImageBlock) -> dict[str, Any]:
    return {"type": "image", "source": _source(block)}


def _document(block: DocumentBlock) -> dict[str, Any]:
    source = _source(block)
    if block.media_type == "text/plain" and block.source.kind == "base64":
        source = {"type": "text", "media_type": "text/plain", "data": _plain(block.source.data)}
    element: dict[str, Any] = {"type": "document", "source": source}
    if block.title is not None:
        element["title"] = block.title
    if block.context is not None:
        element["context"] = block.context
    if block.cite:
        element["citations"] = {"enabled": True}
    return element


def _plain(data: str) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except binascii.Error:
        return data


_MEDIA: dict[type, Callable[[Any], dict[str, Any]]] = {ImageBlock: _image, DocumentBlock: _document}

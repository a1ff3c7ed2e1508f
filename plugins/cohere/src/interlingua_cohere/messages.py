"""Messages -> elements of `messages`, and the documents beside them (WIRE.md, Messages)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.plugins import BlockLoss, dumps, dumps_trimmed, encode_each, note_for, placeholder_text, replay_state
from interlingua.types import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

ERROR_PREFIX = "Error: "
FOREIGN_CALL = "tool_call"  # a call of a kind this plugin does not know, kept exact
FOREIGN_CONTENT = "content"  # also an item of `content`
_DETAILS = ("auto", "low", "high")
_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER  # found by a slow call before Python 3.12


class CohereElement(NamedTuple):
    """One message on this wire (None if it cannot be sent at all), its losses, and its documents."""

    wire: bytes | None
    rows: tuple[BlockLoss, ...] = ()
    documents: tuple[bytes, ...] = ()


def to_wire_messages(messages: Sequence[Message]) -> list[CohereElement]:
    """Write all messages."""
    return encode_each(messages, "cohere", to_wire_message)


def to_wire_message(message: Message) -> CohereElement:
    """Write one projected message."""
    if message.role is _ASSISTANT:
        return _assistant(message)
    return _result(message) if message.role is _TOOL else _input(message)


def _input(message: Message) -> CohereElement:
    """Write a user or system message; one that has only documents lists their names."""
    rows: list[BlockLoss] = []
    parts: list[dict[str, Any]] = []
    documents: list[bytes] = []
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock) and (image := _image(block, at, rows)):
            parts.append({"type": "image_url", "image_url": image})
        elif isinstance(block, DocumentBlock) and (document := to_wire_document(block)):
            documents.append(dumps(document))
        else:
            rows.append(BlockLoss(at, block.type, "dropped", "this wire has no form for it"))
            if (note := note_for(message, at, rows)) is not None:
                parts.append({"type": "text", "text": note})
    if not parts and message.role is _USER:
        parts.append({"type": "text", "text": _name_documents(message, rows) if documents else placeholder_text(rows)})
    if not parts:
        return CohereElement(None, tuple(rows))
    alone = len(parts) == 1 and parts[0]["type"] == "text"
    body = {"role": "user" if message.role is _USER else "system", "content": parts[0]["text"] if alone else parts}
    return CohereElement(dumps_trimmed(body), tuple(rows), tuple(documents))


def _name_documents(message: Message, rows: list[BlockLoss]) -> str:
    """Return text for a message that would be empty because it has only documents."""
    names: list[str] = []
    for at, block in enumerate(message.content):
        if isinstance(block, DocumentBlock):
            names.append(f"[document: {block.title}]" if block.title else "[document]")
            reason = "sent beside the messages; its message, otherwise empty, holds its title"
            rows.append(BlockLoss(at, block.type, "rewritten", reason))
    return "\n".join(names)


def _image(block: ImageBlock, at: int, rows: list[BlockLoss]) -> dict[str, str] | None:
    if block.source.kind not in ("url", "base64"):
        return None
    data = block.source.data
    image = {"url": data if block.source.kind == "url" else f"data:{block.media_type};base64,{data}"}
    if block.detail in _DETAILS:
        return {**image, "detail": block.detail}
    if block.detail is not None:
        reason = f"the service knows no detail {block.detail!r}; it chooses one"
        rows.append(BlockLoss(at, block.type, "rewritten", reason))
    return image


def to_wire_document(block: DocumentBlock) -> dict[str, Any] | None:
    """Return a text document as the service's object of strings; None if its bytes are not text."""
    if block.source.kind != "base64":
        return None
    try:
        text = base64.b64decode(block.source.data).decode()
    except ValueError:
        return None
    data = {"title": block.title, "context": block.context, "text": text}
    return {"data": {name: value for name, value in data.items() if value is not None}}


def _assistant(message: Message) -> CohereElement:
    """Write an answer; the plan before its calls and its citations are separate fields."""
    rows: list[BlockLoss] = []
    replay = replay_state(message)
    content: list[Any] = []
    calls: list[Any] = []
    citations: list[Any] = []
    plan: str | None = None
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            citations += [_placed(citation, len(content)) for citation in block.citations]
            content.append({"type": "text", "text": block.text})
        elif isinstance(block, ThinkingBlock):
            if block.signature:
                reason = "thinking has no signature on this wire; its text is kept"
                rows.append(BlockLoss(at, block.type, "rewritten", reason))
            if plan is None and block.text == replay.get("tool_plan"):
                plan = block.text
            else:
                content.append({"type": "thinking", "thinking": block.text})
        elif isinstance(block, ToolUseBlock):
            calls.append(_call(block, at, rows))
        elif isinstance(block, OpaqueBlock) and block.kind in (FOREIGN_CALL, FOREIGN_CONTENT):
            (calls if block.kind == FOREIGN_CALL else content).append(block.data)
        else:
            rows.append(BlockLoss(at, block.type, "dropped", "this wire has no form for it"))
    citations += _other_citations(replay, content, plan)
    body: dict[str, Any] = {"role": "assistant"}
    parts = {"content": content, "tool_plan": plan, "tool_calls": calls, "citations": citations}
    body |= {name: value for name, value in parts.items() if value}
    return CohereElement(dumps_trimmed(body) if content or plan or calls else None, tuple(rows))


def _placed(citation: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    """Return a citation of the content at `place`, with the place if the citation had one."""
    if citation.get("content_index", place) == place:
        return citation
    return {**citation, "content_index": place}


def _other_citations(replay: Mapping[str, Any], content: list[Any], plan: str | None) -> list[Any]:
    """Return the citations of a plan or of thinking, if these are sent."""
    thinking = next((at for at, part in enumerate(content) if part.get("type") == "thinking"), None)
    kept: list[Any] = []
    for citation in replay.get("citations") or ():
        if citation.get("type") == "PLAN":
            kept += [citation] if plan is not None else []
        elif thinking is not None:
            kept.append(_placed(citation, thinking))
    return kept


def _call(block: ToolUseBlock, at: int, rows: list[BlockLoss]) -> dict[str, Any]:
    """Write a call; its arguments are the original string, or JSON."""
    raw = block.raw_input
    if block.parse_error is not None:
        rows.append(BlockLoss(at, block.type, "rewritten", "its arguments are no JSON; sent inside a JSON object"))
        arguments = dumps({"invalid_arguments": raw or ""}).decode()
    elif raw is None:
        arguments = dumps(block.input).decode()
    else:
        arguments = raw if raw.lstrip().startswith("{") else "{}"
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _result(message: Message) -> CohereElement:
    results = message.tool_results
    if not results:
        return CohereElement(None)
    block = results[0]
    rows: list[BlockLoss] = []
    parts: list[dict[str, Any]] = []
    for part in block.content:
        if isinstance(part, TextBlock):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, DocumentBlock) and (document := to_wire_document(part)):
            parts.append({"type": "document", "document": document})
        else:
            rows.append(BlockLoss(0, part.type, "dropped", _drop_reason(part)))
    if block.is_error:
        reason = "no error flag for tool results on this wire; the text says that it is one"
        rows.append(BlockLoss(0, block.type, "rewritten", reason))
        if parts and "text" in parts[0]:
            parts[0] = {"type": "text", "text": ERROR_PREFIX + parts[0]["text"]}
        else:
            parts.insert(0, {"type": "text", "text": ERROR_PREFIX.strip()})
    texts = [part.get("text") for part in parts]
    content: Any = parts if len(parts) > 1 or None in texts else "".join(map(str, texts))
    return CohereElement(
        dumps_trimmed({"role": "tool", "tool_call_id": block.tool_use_id, "content": content}), tuple(rows)
    )


def _drop_reason(part: ContentBlock) -> str:
    return "tool results hold only text and text documents on this wire" if part.type != "text" else "it is empty"

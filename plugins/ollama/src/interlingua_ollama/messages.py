"""Messages -> elements of `messages`, one each (WIRE.md, Messages)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.plugins import EMPTY, BlockLoss, dumps_trimmed, encode_each, note_for, placeholder_text, replay_state
from interlingua.types import (
    ContentBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

API = "chat-native"
ERROR_PREFIX = "Error: "
FOREIGN_CALL = "tool_call"  # a call of a kind this plugin does not know, kept exact
UNSAID = "unsaid"  # in the replay state: ids of calls that a caller's request lacks, though it has their results
GENERATE = "generate"  # in the echo of a request to `/api/generate`
_TOOL = Role.TOOL  # an enum's member is found by a slow call before Python 3.12
_ROLES = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant"}


class OllamaElement(NamedTuple):
    """One message on this wire (None if it cannot be sent at all), its losses, and whether its result lacks a name."""

    wire: bytes | None
    rows: tuple[BlockLoss, ...] = ()
    nameless: bool = False


def to_wire_messages(messages: Sequence[Message]) -> list[OllamaElement]:
    """Write all messages; a result without a tool name gets its call's, because the server matches results by name."""
    elements = encode_each(messages, "ollama", to_wire_message)
    for at, element in enumerate(elements):
        if element.nameless:
            elements[at] = to_wire_message(messages[at], _missing_tool_name(messages, at))
    return elements


def _missing_tool_name(messages: Sequence[Message], at: int) -> str | None:
    """Return the tool name of a result that has none; core places each result directly after its call."""
    block = messages[at].tool_results[0]
    while at > 0 and messages[at].role is _TOOL:
        at -= 1
    return next((call.name for call in messages[at].tool_calls if call.id == block.tool_use_id), None)


def to_wire_message(message: Message, tool_name: str | None = None) -> OllamaElement:
    """Write one message.

    Args:
        message: the projected message.
        tool_name: tool name of a result, if the block has none.
    """
    rows: list[BlockLoss] = []
    kept = replay_state(message, API)
    shells: Mapping[str, Any] = kept.get("calls") or EMPTY
    unsaid = kept.get(UNSAID) or ()
    if message.role is _TOOL:
        return _result(message, tool_name, rows)
    texts: list[str] = []
    thoughts: list[str] = []
    images: list[str] = []
    calls: list[Any] = []
    for at, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            texts.append(block.text)
            if block.citations:
                rows.append(BlockLoss(at, block.type, "rewritten", "citations have no place on this wire"))
        elif isinstance(block, ThinkingBlock):
            thoughts.append(_thinking(block, at, rows))
        elif isinstance(block, ToolUseBlock):
            if block.id not in unsaid:
                calls.append(_call(block, at, len(calls), rows, shells.get(block.id)))
        elif isinstance(block, ImageBlock) and block.source.kind == "base64":
            images.append(block.source.data)
        elif isinstance(block, OpaqueBlock) and block.kind == FOREIGN_CALL:
            calls.append(block.data)
        else:
            rows.append(BlockLoss(at, block.type, "dropped", _drop_reason(block)))
            if (note := note_for(message, at, rows)) is not None:
                texts.append(note)
    texts = texts or ([] if images else _stand_in(message, rows))
    body: dict[str, Any] = {"role": _ROLES[message.role], "content": "\n".join(texts)}
    more = {"thinking": "\n".join(thoughts) if thoughts else None, "images": images, "tool_calls": calls}
    body |= {name: value for name, value in more.items() if value or value == ""}
    body |= kept.get("message") or EMPTY
    is_sent = texts or unsaid or any(more.values()) or kept.get("message")  # empty thinking alone is not a message
    return OllamaElement(dumps_trimmed(body) if is_sent else None, tuple(rows))


def _stand_in(message: Message, rows: list[BlockLoss]) -> list[str]:
    """Return a placeholder for a user message that cannot be sent at all."""
    return [placeholder_text(rows)] if message.role is Role.USER else []


def _thinking(block: ThinkingBlock, at: int, rows: list[BlockLoss]) -> str:
    if block.signature:
        rows.append(BlockLoss(at, block.type, "rewritten", "thinking has no signature on this wire; its text is kept"))
    return block.text


def _drop_reason(block: ContentBlock) -> str:
    if isinstance(block, ImageBlock):
        return "this wire takes images as data only"
    return "this wire has no form for it"


def _call(
    block: ToolUseBlock, at: int, place: int, rows: list[BlockLoss], shell: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Write a call; its arguments are an object, never a string; `shell` has further members of a caller's request."""
    value: Any = block.input
    if block.parse_error is not None:
        rows.append(BlockLoss(at, block.type, "rewritten", "its arguments are no JSON object; sent inside one"))
        value = {"invalid_arguments": block.raw_input or ""}
    if shell is not None:
        return {**shell, "function": {**shell["function"], "name": block.name, "arguments": value}}
    return {"id": block.id, "function": {"index": place, "name": block.name, "arguments": value}}


def _result(message: Message, tool_name: str | None, rows: list[BlockLoss]) -> OllamaElement:
    results = message.tool_results
    if not results:
        return OllamaElement(None)
    block = results[0]
    text = "\n".join([part.text for part in block.content if isinstance(part, TextBlock)])
    for part in block.content:
        if not isinstance(part, TextBlock):
            rows.append(BlockLoss(0, part.type, "dropped", "tool results hold text only on this wire"))
    if block.is_error:
        text = ERROR_PREFIX + text
        reason = "no error flag for tool results on this wire; the text says that it is one"
        rows.append(BlockLoss(0, block.type, "rewritten", reason))
    body = {"role": "tool", "content": text}
    if (kept := replay_state(message, API).get("message")) is not None:
        return OllamaElement(dumps_trimmed({**body, **kept}), tuple(rows))
    name = block.tool_name or tool_name
    if name is not None:
        body["tool_name"] = name
    body["tool_call_id"] = block.tool_use_id
    return OllamaElement(dumps_trimmed(body), tuple(rows), nameless=name is None and block.tool_name is None)

"""Every text, argument and reasoning leaf of an answer, as its wire spells it, and what of them a message holds.

An independent reader: nothing of the adapters is imported, and each wire's leaves are listed by its own walker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from interlingua.types.blocks import (
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UnknownBlock,
)
from interlingua.types.messages import Message

Leaf = tuple[str, Any]
"""(kind, value): kind is `text`, `thinking`, `name`, `argument` or `opaque`."""


def flat(kind: str, value: Any) -> Iterator[Leaf]:
    """Yield the scalars inside a JSON value; an empty container is a leaf of its own."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield kind, f"key:{key}"
            yield from flat(kind, item)
    elif isinstance(value, (list, tuple)) and value:
        for item in value:
            yield from flat(kind, item)
    else:
        yield kind, json.dumps(value) if isinstance(value, (dict, list, tuple)) else value


def _content_blocks(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of a body with typed content blocks."""
    for block in body["content"]:
        kind = block["type"]
        if kind == "text":
            yield "text", block["text"]
        elif kind == "thinking":
            yield "thinking", block["thinking"]
        elif kind == "redacted_thinking":
            yield "thinking", block["data"]
        elif kind == "tool_use":
            yield "name", block["name"]
            yield from flat("argument", block["input"])
        else:
            yield from flat("opaque", block)


def _native_chat(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of one `message`, or of the older generate API's `response`."""
    message = body.get("message") or {"content": body.get("response"), "thinking": body.get("thinking")}
    yield "text", message.get("content") or ""
    yield "thinking", message.get("thinking") or ""
    for call in message.get("tool_calls") or ():
        yield "name", call["function"]["name"]
        yield from flat("argument", call["function"]["arguments"])


def _generated(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of the first candidate's parts, and every other candidate whole."""
    content = next((item.get("content") or {} for item in body["candidates"] if not item.get("index")), {})
    for other in body["candidates"]:
        if other.get("index"):
            yield from flat("opaque", other)
    for part in content.get("parts") or ():
        if "text" in part:
            yield ("thinking" if part.get("thought") else "text"), part["text"]
        elif "functionCall" in part:
            if part["functionCall"]:
                yield "name", part["functionCall"]["name"]
                yield from flat("argument", part["functionCall"].get("args") or {})
        elif "inlineData" not in part and "fileData" not in part:
            yield from flat("opaque", part)


def _choices(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of the first choice, and every other choice whole."""
    for choice in body["choices"]:
        if choice.get("index"):
            yield from flat("opaque", choice)
            continue
        message = choice["message"]
        content = message.get("content")
        yield "text", content if isinstance(content, str) else "".join(part["text"] for part in content or ())
        yield "text", message.get("refusal") or ""
        details = message.get("reasoning_details") or ()
        told = "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
        yield "thinking", message.get("reasoning_content") or message.get("reasoning") or told
        for detail in details:
            yield "thinking", detail.get("data") or ""
        for call in message.get("tool_calls") or ():
            yield "name", call["function"]["name"]
            yield from flat("argument", _parsed(call["function"].get("arguments") or "{}"))


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _first_choice(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of the first choice's message, its content text or chunks."""
    message = body["choices"][0]["message"]
    content = message.get("content") or ""
    if isinstance(content, str):
        yield "text", content
        content = []
    kinds = {kind: "".join(_chunk_texts(content, kind)) for kind in ("text", "thinking")}
    yield from kinds.items()
    for chunk in content:
        if chunk["type"] not in kinds:
            yield from flat("opaque", chunk)
    for call in message.get("tool_calls") or ():
        yield "name", call["function"]["name"]
        yield from _arguments(call["function"]["arguments"])


def _chunk_texts(chunks: list[Any], kind: str) -> Iterator[str]:
    for chunk in chunks:
        if chunk["type"] == kind:
            yield chunk["text"] if kind == "text" else "".join(inner["text"] for inner in chunk["thinking"])


def _arguments(raw: Any) -> Iterator[Leaf]:
    """Leaves of an argument string; the string itself where it is no JSON."""
    try:
        value = json.loads(raw) if isinstance(raw, str) and raw else raw or {}
    except ValueError:
        value = raw
    yield from flat("argument", value)


def _plan_and_content(body: dict[str, Any]) -> Iterator[Leaf]:
    """Leaves of a message with items of content, a plan before its calls, and citations beside."""
    message = body["message"]
    for item in message.get("content") or ():
        if item["type"] in ("text", "thinking"):
            yield item["type"], item[item["type"]]
        else:
            yield from flat("opaque", item)
    yield "thinking", message.get("tool_plan") or ""
    for call in message.get("tool_calls") or ():
        yield "name", call["function"]["name"]
        yield from _arguments(call["function"]["arguments"])


WALKERS: dict[str, Callable[[dict[str, Any]], Iterator[Leaf]]] = {
    "anthropic": _content_blocks,
    "cohere": _plan_and_content,
    "mistral": _first_choice,
    "ollama": _native_chat,
    "chat": _choices,
    "google": _generated,
}


def wire_leaves(wire: str, body: dict[str, Any]) -> Counter[str]:
    """Return the leaves of a whole 2xx body of this wire; empty strings are nothing to lose."""
    return _counted(WALKERS[wire](body))


def message_leaves(message: Message) -> Counter[str]:
    """Return the leaves of a canonical message's content."""
    return _counted(_of_message(message))


def missing(wire: str, body: dict[str, Any], message: Message) -> Counter[str]:
    """Return the wire's leaves that the message does not hold."""
    return wire_leaves(wire, body) - message_leaves(message)


def _of_message(message: Message) -> Iterator[Leaf]:
    for block in message.content:
        if isinstance(block, TextBlock):
            yield "text", block.text
        elif isinstance(block, ThinkingBlock):
            yield "thinking", block.text
        elif isinstance(block, RedactedThinkingBlock):
            yield "thinking", block.data
        elif isinstance(block, ToolUseBlock):
            yield "name", block.name
            yield from flat("argument", block.raw_input if block.parse_error else block.input)
        elif isinstance(block, OpaqueBlock):
            yield from flat("opaque", block.data)
        elif isinstance(block, UnknownBlock):
            yield from flat("opaque", block.raw)


def _counted(leaves: Iterator[Leaf]) -> Counter[str]:
    return Counter(f"{kind}:{type(value).__name__}:{value}" for kind, value in leaves if value != "")

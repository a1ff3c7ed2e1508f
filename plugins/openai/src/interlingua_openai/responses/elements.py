"""One canonical message -> its input items on this wire, as bytes (sheet openai_responses §2 to §4).

Never looks at another message: what depends on one (custom calls, cache markers) comes in as an argument.
`input` comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.blocks import ContentBlock, DocumentBlock, TextBlock, ToolResultBlock
from interlingua.cache import CacheHint
from interlingua.jsontext import dumps
from interlingua.messages import Message, Role
from interlingua.wire import Verdict
from interlingua_openai.responses.assistant import to_wire_assistant
from interlingua_openai.responses.parts import to_wire_part

_ERROR_PREFIX = "Error: "  # as on the Chat wire: neither has an error flag


class Row(NamedTuple):
    """A loss of this wire alone, before its message's place is known."""

    block: int
    block_type: str
    verdict: Verdict
    reason: str


class Elements(NamedTuple):
    """What a message became.

    Attributes:
        joined: its items, ready, comma between them.
        rows: losses.
        hints: blocks that carry a cache hint which this wire can mark.
        custom: call ids of calls of custom tools, whose results have their own item type.
    """

    joined: bytes
    rows: tuple[Row, ...] = ()
    hints: tuple[int, ...] = ()
    custom: tuple[str, ...] = ()


def to_wire_elements(message: Message, model: str, marked: Sequence[int] = (), custom: Iterable[str] = ()) -> Elements:
    """Write a message's items.

    Args:
        message: a projected message.
        model: decides whether the message's own state goes back.
        marked: blocks that get a cache marker.
        custom: ids of custom calls made so far.
    """
    if message.role is Role.ASSISTANT:
        items, rows, made = to_wire_assistant(message, model)
        return Elements(_joined(items), tuple(Row(*row) for row in rows), (), made)
    if message.role is Role.TOOL:
        return _results(message, marked, frozenset(custom))
    role = "developer" if message.role is Role.SYSTEM else "user"
    return _input_message(message, role, marked)


def _joined(items: Iterable[Any]) -> bytes:
    return b",".join([dumps(item) for item in items])


def _input_message(message: Message, role: str, marked: Sequence[int]) -> Elements:
    rows: list[Row] = []
    items: list[Any] = []
    parts: list[Any] = []
    hints = []
    for at, block in enumerate(message.content):
        part = to_wire_part(block)
        if part is not None:
            parts.extend(_context(block, at, rows))
            parts.append(_marked(part, block) if at in marked else part)
            if getattr(block, "cache", None) is not None:
                hints.append(at)
        elif block.type == "opaque":  # an input item of its own, such as an approval
            items.extend(_message(role, parts))
            items.append(block.data)
            parts = []
        else:
            rows.append(Row(at, block.type, "dropped", f"a {role} message on this wire cannot hold {block.type}"))
    items.extend(_message(role, parts))
    return Elements(_joined(items), tuple(rows), tuple(hints))


def _message(role: str, parts: list[Any]) -> list[Any]:
    return [{"type": "message", "role": role, "content": parts}] if parts else []


def _context(block: ContentBlock, at: int, rows: list[Row]) -> Iterable[dict[str, Any]]:
    """A document's context stands before it as text; asking for citations has no form here."""
    if not isinstance(block, DocumentBlock):
        return
    if block.cite:
        rows.append(Row(at, block.type, "rewritten", "this wire cannot ask for citations; the document is kept"))
    if block.context:
        rows.append(Row(at, block.type, "rewritten", "the document's context is sent as text before it"))
        yield {"type": "input_text", "text": block.context}


def _results(message: Message, marked: Sequence[int], custom: frozenset[str]) -> Elements:
    items = []
    rows: list[Row] = []
    hints = []
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResultBlock):
            rows.append(Row(at, block.type, "dropped", "a tool message holds results only"))
            continue
        kind = "custom_tool_call_output" if block.tool_use_id in custom else "function_call_output"
        output = _output(block, at, rows)
        if at in marked and isinstance(output, list):
            output[-1] = _marked(output[-1], block)
        if block.cache is not None and isinstance(output, list):
            hints.append(at)
        items.append({"type": kind, "call_id": block.tool_use_id, "output": output})
    return Elements(_joined(items), tuple(rows), tuple(hints))


def _output(block: ToolResultBlock, at: int, rows: list[Row]) -> str | list[Any]:
    """One text is a string; anything more is a list of parts, and so is what may be marked."""
    parts = []
    for part in block.content:
        made = to_wire_part(part)
        if made is None:
            rows.append(Row(at, part.type, "dropped", f"a result on this wire cannot hold {part.type}"))
        else:
            parts.append(dict(made))
    if block.is_error:
        rows.append(Row(at, block.type, "rewritten", "this wire has no error flag; the text says it"))
        if parts and parts[0]["type"] == "input_text":
            parts[0]["text"] = _ERROR_PREFIX + parts[0]["text"]
        else:
            parts.insert(0, {"type": "input_text", "text": _ERROR_PREFIX.rstrip()})
    plain = len(parts) <= 1 and all(part["type"] == "input_text" for part in parts)
    if plain and (block.cache is None or not parts):
        return parts[0]["text"] if parts else ""
    return parts


def _marked(part: Mapping[str, Any], block: Any) -> dict[str, Any]:
    return {**part, "prompt_cache_breakpoint": breakpoint_of(block.cache)}


def breakpoint_of(hint: CacheHint | None) -> dict[str, str]:
    """Return the marker: this wire keeps for 30 minutes or 12 hours, so an hour becomes 12 (sheet §2)."""
    return {"mode": "explicit", "ttl": "12h"} if hint is not None and hint.ttl == "1h" else {"mode": "explicit"}


def text_of_system(message: Message) -> str:
    """Return a system message as one string."""
    return "\n\n".join([block.text for block in message.content if isinstance(block, TextBlock)])

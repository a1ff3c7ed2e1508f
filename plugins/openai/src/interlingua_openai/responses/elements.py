"""One canonical message -> its input items on this wire, as bytes (sheet openai_responses §2 to §4).

Never looks at another message: what depends on one (custom calls, cache markers) comes in as an argument.
`input` comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from interlingua.plugins import BlockLoss, dumps
from interlingua.types import ContentBlock, DocumentBlock, Message, Role, TextBlock
from interlingua_openai.responses.assistant import to_wire_assistant
from interlingua_openai.responses.element import Elements, marked_part
from interlingua_openai.responses.parts import to_wire_part
from interlingua_openai.responses.results import to_wire_results


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
        return Elements(_joined(items), tuple(rows), (), made)
    if message.role is Role.TOOL:
        return to_wire_results(message, marked, frozenset(custom))
    role = "developer" if message.role is Role.SYSTEM else "user"
    return _input_message(message, role, marked)


def _joined(items: Iterable[Any]) -> bytes:
    return b",".join([dumps(item) for item in items])


def _input_message(message: Message, role: str, marked: Sequence[int]) -> Elements:
    rows: list[BlockLoss] = []
    items: list[Any] = []
    parts: list[Any] = []
    hints = []
    for at, block in enumerate(message.content):
        part = to_wire_part(block)
        if part is not None:
            parts.extend(_context(block, at, rows))
            parts.append(marked_part(part, block) if at in marked else part)
            if getattr(block, "cache", None) is not None:
                hints.append(at)
        elif block.type == "opaque":  # an input item of its own, such as an approval
            items.extend(_message(role, parts))
            items.append(block.data)
            parts = []
        else:
            rows.append(BlockLoss(at, block.type, "dropped", f"a {role} message on this wire cannot hold {block.type}"))
    items.extend(_message(role, parts))
    return Elements(_joined(items), tuple(rows), tuple(hints))


def _message(role: str, parts: list[Any]) -> list[Any]:
    return [{"type": "message", "role": role, "content": parts}] if parts else []


def _context(block: ContentBlock, at: int, rows: list[BlockLoss]) -> Iterable[dict[str, Any]]:
    """A document's context stands before it as text; asking for citations has no form here."""
    if not isinstance(block, DocumentBlock):
        return
    if block.cite:
        rows.append(BlockLoss(at, block.type, "rewritten", "this wire cannot ask for citations; the document is kept"))
    if block.context:
        rows.append(BlockLoss(at, block.type, "rewritten", "the document's context is sent as text before it"))
        yield {"type": "input_text", "text": block.context}


def text_of_system(message: Message) -> str:
    """Return a system message as one string."""
    return "\n\n".join([block.text for block in message.content if isinstance(block, TextBlock)])

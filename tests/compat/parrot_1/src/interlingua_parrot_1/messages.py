"""Write messages as the elements of a request, each independent of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import BlockLoss, Loss, encode_each
from interlingua.types import ContentBlock, Message, OpaqueBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock

# The system prompt's elements are left out of the list: `request.py` writes it as `perch`.
_SPEAKERS = {Role.SYSTEM: "perch", Role.USER: "keeper", Role.ASSISTANT: "bird", Role.TOOL: "trainer"}


class Element(NamedTuple):
    """One message on this wire, and what was lost in writing it."""

    value: dict[str, Any]
    losses: tuple[BlockLoss, ...]


def to_wire_messages(messages: Sequence[Message], losses: list[Loss]) -> list[dict[str, Any]]:
    """Write all messages in order; in a long conversation each is written only once."""
    elements = encode_each(messages, "parrot", to_wire_message)
    for index, (message, element) in enumerate(zip(messages, elements, strict=True)):
        losses += [loss.at(index, message.id) for loss in element.losses]
    return [element.value for element in elements]


def to_wire_message(message: Message) -> Element:
    """Write one message; the result depends on this message alone, so it is the same in every turn."""
    losses: list[BlockLoss] = []
    says = [to_wire_part(block, at, losses) for at, block in enumerate(message.content)]
    return Element({"from": _SPEAKERS[message.role], "says": says}, tuple(losses))


def to_wire_part(block: ContentBlock, at: int, losses: list[BlockLoss]) -> Any:
    """Write one block; core passes only declared kinds, and this service's own opaque blocks.

    Args:
        block: the block, or a part of a tool's result.
        at: index of the block in its message.
        losses: receives what this wire cannot carry.

    Raises:
        CapabilityError: this wire has no form for the block.
    """
    match block:
        case TextBlock():
            return {"type": "words", "words": block.text}
        case ToolUseBlock():
            return {"type": "trick", "tag": block.id, "trick": block.name, "with": _arguments(block, at, losses)}
        case ToolResultBlock():
            says = [to_wire_part(part, at, losses) for part in block.content]
            went = "badly" if block.is_error else "well"
            return {"type": "outcome", "tag": block.tool_use_id, "went": went, "says": says}
        case OpaqueBlock():
            return block.data
        case _:
            raise CapabilityError(f"this wire has no form for {block.type}", path=f"content[{at}]")


def _arguments(block: ToolUseBlock, at: int, losses: list[BlockLoss]) -> Any:
    """Return the arguments; this wire takes an object only, so broken JSON is sent as text inside one."""
    if block.parse_error is None:
        return block.input
    losses.append(BlockLoss(at, block.type, "rewritten", "the arguments are not a JSON object"))
    return {"garbled": block.raw_input}

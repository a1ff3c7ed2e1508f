"""System messages within the conversation: changes of tools and effort, and their further members (WIRE.md, System)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import dumps
from interlingua.types import ChangeBlock, Message, OpaqueBlock
from interlingua_anthropic.claude_tools import fit_tools
from interlingua_anthropic.client_tools import to_wire_tool

_INLINE_TOOLS, _EFFORT_CHANGES = "inline-tools-2026-09-15", "mid-conversation-output-config-2026-07-01"
MEMBERS = "message_members"
"""Kind of the opaque block that holds a message's own members, such as `clear_at` (WIRE.md, System)."""


def changes_of(message: Message) -> list[ChangeBlock]:
    """Return the changes that a system message holds."""
    return [block for block in message.content if type(block) is ChangeBlock]


def to_wire_change(
    block: ChangeBlock, betas: list[str], kept: Mapping[str, Any] | None = None
) -> list[Mapping[str, Any]]:
    """Return the elements of a change of tools (WIRE.md, System); its effort is a member of the message.

    Args:
        block: the change.
        betas: gets the beta features of the elements.
        kept: the element of a caller's request, which is sent unchanged if the change is still the same.
    """
    if kept is not None and _is_same(block, kept):
        return [kept]
    if block.tools_added or block.tools_removed:
        betas.append(_INLINE_TOOLS)
    if block.effort is not None:
        betas.append(_EFFORT_CHANGES)
    again = {tool.name for tool in block.tools_added}  # a new definition replaces the old one
    removed = [name for name in block.tools_removed if name not in again]
    added = [to_wire_tool(tool) for tool in fit_tools(block.tools_added).tools]
    return [
        *({"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}} for name in removed),
        *({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": made}} for made in added),
    ]


def _is_same(block: ChangeBlock, kept: Mapping[str, Any]) -> bool:
    given = kept["tool"]
    if kept["type"] == "tool_removal":
        return block == ChangeBlock(tools_removed=[given["name"]])
    if len(block.tools_added) != 1 or block != ChangeBlock(tools_added=block.tools_added):
        return False
    (added,) = block.tools_added
    if given["type"] == "tool_reference":
        return bool(added.name == given["name"])
    return to_wire_tool(added) == {
        name: value for name, value in given["definition"].items() if name != "cache_control"
    }


def members_of(message: Message, changes: Sequence[ChangeBlock]) -> bytes:
    """Return the members that a system message holds beside role and content."""
    held = [block.data for block in message.content if type(block) is OpaqueBlock and block.kind == MEMBERS]
    efforts = [{"output_config": {"effort": change.effort}} for change in changes if change.effort is not None]
    return b"".join([dumps(data)[1:-1] + b"," for data in [*held, *efforts[-1:]] if isinstance(data, Mapping) and data])


def has_own_turn(piece: Any) -> bool:
    """Return whether the elements of a message share their turn with no other message."""
    return bool(piece.notes is not None and (piece.notes.floats or piece.notes.members != b""))


def place_changes(pieces: Sequence[Any]) -> Sequence[Any]:
    """Return the messages with each change behind the messages of the user that follow it, as the service wants it."""
    if not [piece for piece in pieces if piece.notes is not None and piece.notes.floats]:
        return pieces
    placed: list[Any] = []
    waiting: list[Any] = []
    for piece in pieces:
        if piece.notes is not None and piece.notes.floats:
            waiting.append(piece)
            continue
        if piece.role == "assistant":
            placed += waiting
            waiting = []
        placed.append(piece)
    return [*placed, *waiting]

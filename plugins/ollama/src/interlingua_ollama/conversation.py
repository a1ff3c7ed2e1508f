"""A projected conversation -> the list of its elements, each written once and remembered on its message (DESIGN 8).

Never writes a message itself (`messages` does); finds the tool name a result needs.
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from interlingua.plugins.encoding import json_array, keep_grown, remembered, take_grown
from interlingua.plugins.wire import Loss
from interlingua.types.blocks import ToolResultBlock
from interlingua.types.messages import Message, Role
from interlingua_ollama.messages import Element, to_wire_message

_KEY = "ollama.message"
_GROWN = "ollama.grown"


def to_wire_messages(messages: Sequence[Message], losses: list[Loss]) -> list[bytes]:
    """Return the pieces of the message list, ready to be joined."""
    known, made = take_grown(messages, _GROWN)
    pieces: list[bytes] = [b"["] if made is None else made
    for at in range(known, len(messages)):
        wire, rows = element_of(messages, at)
        if rows:
            return [_whole(messages, losses)]
        if wire is not None:
            pieces += (wire, b",")
    keep_grown(messages, _GROWN, pieces)
    return [*pieces[:-1], b"]"] if len(pieces) > 1 else [b"[]"]


def element_of(messages: Sequence[Message], at: int) -> Element:
    """Return the element of one message of a conversation."""
    message = messages[at]
    name = _name_of_call(messages, at) if message.role is Role.TOOL else None
    return remembered(message, (_KEY, name), partial(to_wire_message, tool_name=name))


def _whole(messages: Sequence[Message], losses: list[Loss]) -> bytes:
    """Write a conversation in which something is lost."""
    found = []
    for index, message in enumerate(messages):
        wire, rows = element_of(messages, index)
        losses += [row.at(index, message.id) for row in rows]
        if wire is not None:
            found.append(wire)
    return json_array(found)


def _name_of_call(messages: Sequence[Message], at: int) -> str | None:
    """Return the name of the call a result without a name answers: projection put it right behind that call."""
    block = next((block for block in messages[at].content if isinstance(block, ToolResultBlock)), None)
    if block is None or block.tool_name is not None:
        return None
    while at > 0 and messages[at].role is Role.TOOL:
        at -= 1
    return next((call.name for call in messages[at].tool_calls() if call.id == block.tool_use_id), None)

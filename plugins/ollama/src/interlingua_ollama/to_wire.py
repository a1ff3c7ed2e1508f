"""Canonical conversation -> one request of the native chat API (sheet ollama §2).

Never holds a key and never reads the clock; joins what the neighbours wrote.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from interlingua.json import dumps
from interlingua.plugins.encoding import Json, json_object
from interlingua.plugins.wire import Loss, WireRequest
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_ollama.catalogue import API
from interlingua_ollama.conversation import to_wire_messages
from interlingua_ollama.options import to_wire_options
from interlingua_ollama.tools import to_wire_tools

PATH = "/api/chat"


class _ToolBytes:
    """The tool list written last: a session sends the same one every turn."""

    def __init__(self) -> None:
        self._last: tuple[tuple[ToolDefinition, ...], bytes, tuple[Loss, ...]] = ((), b"[]", ())

    def of(self, tools: Sequence[ToolDefinition]) -> tuple[bytes, tuple[Loss, ...]]:
        known, wire, losses = self._last
        if len(known) != len(tools) or not all(map(is_, known, tools)):
            wire, losses = to_wire_tools(tools)
            self._last = (tuple(tools), wire, losses)
        return wire, losses


_tool_bytes = _ToolBytes()


def to_wire(messages: Sequence[Message], tools: Sequence[ToolDefinition], options: AdapterOptions) -> WireRequest:
    """Write the request; `stream` is always said, for this wire streams by default (sheet §2).

    Raises:
        CapabilityError: a call was demanded, which this wire cannot say.
    """
    losses: list[Loss] = []
    others = to_wire_options(options, losses)
    fields: dict[str, Json] = {"model": dumps(options.model), "messages": to_wire_messages(messages, losses)}
    if tools and options.tool_choice != "none":  # "none" is said by naming no tool (sheet MAPPING)
        fields["tools"], lost = _tool_bytes.of(tools)
        losses += lost
    fields.update({name: dumps(value) for name, value in others.items()})
    return WireRequest(path=PATH, body=json_object(fields), losses=tuple(losses), api=API, stream=options.stream)

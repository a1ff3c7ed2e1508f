"""Tools and the choice among them -> `tools` and `tool_choice` (sheet anthropic §3, §4).

Never checks a schema (that happened when the tool was registered). `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.blocks import ToolUseBlock
from interlingua.errors import CapabilityError
from interlingua.fragments import json_array, spliced
from interlingua.jsontext import FrozenDict, dumps
from interlingua.messages import Message
from interlingua.options import AdapterOptions, ToolNamed
from interlingua.tools import ToolDefinition, to_wire_input_schema_tool
from interlingua.wire import Loss
from interlingua_anthropic.thinking import option_loss
from interlingua_anthropic.turns import MAX_MARKS, cache_control

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def to_wire_tools(tools: Sequence[ToolDefinition], losses: list[Loss]) -> tuple[bytes, int]:
    """Write the definitions; return them with the number of cache markers they carry."""
    used = 0
    parts = []
    for at, tool in enumerate(tools):
        part = dumps(to_wire_input_schema_tool(tool))
        if tool.cache is not None and used < MAX_MARKS:
            part = spliced(part, "cache_control", cache_control(tool.cache.ttl))
            used += 1
        elif tool.cache is not None:
            reason = "more cache hints than the wire takes"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="dropped", reason=reason))
        parts.append(part)
    return json_array(parts), used


def tools_of_history(messages: Sequence[Message]) -> bytes | None:
    """Write bare definitions for the tools a history names when the request brings none (REGRESSIONS case 24)."""
    names = {block.name: None for message in messages for block in message.content if isinstance(block, ToolUseBlock)}
    if not names:
        return None
    return json_array(dumps({"name": name, "input_schema": {"type": "object"}}) for name in names)


def to_wire_tool_choice(options: AdapterOptions, facts: FrozenDict, losses: list[Loss]) -> dict[str, Any] | None:
    """Write the choice.

    Raises:
        CapabilityError: a forced choice, which this model refuses.
    """
    wanted = options.tool_choice
    forced = isinstance(wanted, ToolNamed) or wanted == "required"
    if forced and facts.get("forced_tool_choice") is False:
        raise CapabilityError(
            f"{options.model} refuses a forced tool choice; ask with tool_choice='auto' and only the tool you want",
            path="options.tool_choice",
        )
    choice: dict[str, Any] | None = None
    if isinstance(wanted, ToolNamed):
        choice = {"type": "tool", "name": wanted.name}
    elif wanted is not None:
        choice = {"type": _CHOICES[wanted]}
    if options.parallel_tool_calls is False:
        choice = choice or {"type": "auto"}
        if choice["type"] == "none":
            losses.append(option_loss("parallel_tool_calls", "dropped", "no tool may be called anyway"))
        else:
            choice["disable_parallel_tool_use"] = True
    return choice

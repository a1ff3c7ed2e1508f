"""Tools and the choice among them -> `tools` and `tool_choice` (sheet anthropic §3, §4).

Never checks a schema (that happened when the tool was registered). `to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.json import FrozenDict, dumps
from interlingua.plugins.encoding import append_member, concat_arrays, json_array
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions, ToolChoice
from interlingua.types.tool_schemas import to_wire_input_schema_tool
from interlingua.types.tools import ToolDefinition
from interlingua_anthropic.turns import MAX_MARKS, Spent, cache_control

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


class Written(NamedTuple):
    """The definitions: as sent, as the prefix knows them (without cache markers), and the markers spent."""

    sent: bytes
    plain: bytes
    spent: Spent


def to_wire_tools(tools: Sequence[ToolDefinition], losses: list[Loss]) -> Written:
    """Write the definitions."""
    plain = [dumps(to_wire_input_schema_tool(tool)) for tool in tools]
    sent = plain[:]
    used, short = 0, False
    for at, tool in enumerate(tools):
        if tool.cache is None:
            continue
        ttl = tool.cache.ttl
        path = f"tools[{at}]"
        if used == MAX_MARKS:
            reason = "more cache hints than the wire takes"
            losses.append(Loss(path=path, block_type="tool", verdict="dropped", reason=reason))
            continue
        if ttl == "1h" and short:
            reason = "a 1h cache marker may not follow a 5m one; sent as 5m"
            losses.append(Loss(path=path, block_type="tool", verdict="rewritten", reason=reason))
            ttl = None
        sent[at] = append_member(plain[at], "cache_control", cache_control(ttl))
        used, short = used + 1, short or ttl != "1h"
    return Written(json_array(sent), json_array(plain), Spent(used, short))


def with_service_tools(written: Written | None, own: Sequence[Any]) -> Written:
    """Stand the service's own tools, as the caller wrote them, behind the definitions; their cache markers count."""
    known = written or Written(b"[]", b"[]", Spent())
    more = dumps(own)
    marks = [tool["cache_control"] for tool in own if isinstance(tool, Mapping) and tool.get("cache_control")]
    short = known.spent.short or any(mark.get("ttl") != "1h" for mark in marks)
    spent = Spent(known.spent.markers + len(marks), short)
    return Written(concat_arrays(known.sent, more), concat_arrays(known.plain, more), spent)


def tools_of_history(messages: Sequence[Message]) -> Written | None:
    """Write bare definitions for the tools a history names when the request brings none (REGRESSIONS case 24)."""
    names = {block.name: None for message in messages for block in message.content if isinstance(block, ToolUseBlock)}
    if not names:
        return None
    bare = json_array(dumps({"name": name, "input_schema": {"type": "object"}}) for name in names)
    return Written(bare, bare, Spent())


def is_forced(options: AdapterOptions) -> bool:
    """True when the caller demands a call."""
    return isinstance(options.tool_choice, ToolChoice) or options.tool_choice == "required"


def to_wire_tool_choice(options: AdapterOptions, facts: FrozenDict, losses: list[Loss]) -> dict[str, Any] | None:
    """Write the choice.

    Raises:
        CapabilityError: a forced choice, which this model refuses.
    """
    wanted = options.tool_choice
    if is_forced(options) and facts.get("forced_tool_choice") is False:
        raise CapabilityError(
            f"{options.model} refuses a forced tool choice; ask with tool_choice='auto' and only the tool you want",
            path="options.tool_choice",
        )
    choice: dict[str, Any] | None = None
    if isinstance(wanted, ToolChoice):
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

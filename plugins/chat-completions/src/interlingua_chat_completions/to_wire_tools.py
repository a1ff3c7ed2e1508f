"""Tool definitions and the choice among them.

Never renames a tool (core projected the names) and never changes a schema beyond what strictness needs.
The request writer comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.json import EMPTY, dumps
from interlingua.plugins.encoding import json_array
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions, ToolChoice
from interlingua.types.tool_schemas import to_wire_function_tool
from interlingua.types.tools import ToolDefinition
from interlingua_chat_completions.cache_marks import TOO_MANY, Markers, cache_control
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.strict import strict_schema
from interlingua_chat_completions.strict_tools import NONE, OPTION, StrictTools, to_wire_strict_tools


class ToolList(NamedTuple):
    """The tools on the wire, what they lost, the lifetimes of their cache markers in order, what answers need."""

    wire: bytes
    losses: tuple[Loss, ...]
    marks: tuple[str | None, ...] = ()
    echo: Mapping[str, Any] = EMPTY


def strict_asked(options: AdapterOptions, dialect: Dialect) -> Any:
    """Return what the caller wants strict, where the service enforces schemas of tools."""
    return options.provider_options.get(OPTION) if dialect.strict_option else None


def to_wire_tools(tools: Sequence[ToolDefinition], dialect: Dialect, asked: Any = None) -> ToolList:
    """Write the tool list; a tool's cache hint has a form on few of these services.

    Raises:
        CapabilityError: `asked` (see `strict_asked`) is no choice of tools.
    """
    marks = Markers() if dialect.cache_breakpoints and dialect.cache_style == "cache_control" else None
    strict = to_wire_strict_tools(tools, asked) if asked else NONE
    losses: list[Loss] = [*strict.losses]
    wire = []
    for at, tool in enumerate(tools):
        made = _tool(tool, dialect, strict)
        if tool.cache is not None:
            reason = "tools take no cache marker on this wire" if marks is None else marks.spend(tool.cache.ttl)
            if reason:
                losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
            if marks is not None and reason != TOO_MANY:
                made["cache_control"] = cache_control(marks.spent[-1])
        wire.append(dumps(made))
    return ToolList(json_array(wire), tuple(losses), tuple(marks.spent) if marks is not None else (), strict.echo)


def _tool(tool: ToolDefinition, dialect: Dialect, asked: StrictTools) -> dict[str, Any]:
    wrapped = to_wire_function_tool(tool)
    if tool.name in asked.schemas:
        wrapped["function"] = {**wrapped["function"], "parameters": asked.schemas[tool.name], "strict": True}
        return wrapped
    if not tool.input_schema:
        wrapped["function"]["parameters"] = {"type": "object", "properties": {}}
    if dialect.strict_tools and (strict := strict_schema(tool.input_schema)) is not None:
        wrapped["function"] = {**wrapped["function"], "parameters": strict, "strict": True}
    return wrapped


def leaves_tools_out(options: AdapterOptions, dialect: Dialect) -> bool:
    """True when "call no tool" can only be said by not naming any."""
    return options.tool_choice == "none" and "none" not in dialect.tool_choices


def to_wire_tool_choice(
    options: AdapterOptions, dialect: Dialect, tools: Sequence[ToolDefinition], losses: list[Loss]
) -> bytes | None:
    """Write `tool_choice`, or None when nothing was asked.

    Where a tool cannot be named, the only one there is can be meant by "some tool": that is told, and forces the same.

    Raises:
        CapabilityError: forcing was asked of a service that cannot force: the model might answer without the call.
    """
    choice = options.tool_choice
    if choice is None:
        return None
    kind = "named" if isinstance(choice, ToolChoice) else choice
    if kind not in dialect.tool_choices:
        if kind == "auto":
            return None
        if isinstance(choice, ToolChoice) and _is_only(choice, options, dialect, tools):
            reason = (
                f"this service takes no tool's name here; {choice.name!r} is the only tool, and some tool is forced"
            )
            losses.append(option_loss("tool_choice", "rewritten", reason))
            return dumps(dialect.required_choice)
        raise CapabilityError(f"this service does not take tool_choice {kind!r}", path="options.tool_choice")
    if isinstance(choice, ToolChoice):
        return dumps({"type": "function", "function": {"name": choice.name}})
    return dumps(dialect.required_choice if choice == "required" else choice)


def _is_only(choice: ToolChoice, options: AdapterOptions, dialect: Dialect, tools: Sequence[ToolDefinition]) -> bool:
    alone = [tool.name for tool in tools] == [choice.name] and "tools" not in options.provider_options
    return alone and "required" in dialect.tool_choices

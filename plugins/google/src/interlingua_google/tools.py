"""Tools and the choice among them -> `functionDeclarations` and `functionCallingConfig` (sheet gemini §2).

Never checks a schema (that happened when the tool was registered). `to_wire` and `estimate` come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions, ToolChoice
from interlingua.types.tools import ToolDefinition
from interlingua_google.schema import to_wire_schema

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def to_wire_tools(tools: Sequence[ToolDefinition], losses: list[Loss]) -> list[dict[str, Any]]:
    """Return the declarations; `parametersJsonSchema` takes the whole canonical subset, `parameters` would not."""
    made = []
    for at, tool in enumerate(tools):
        declaration: dict[str, Any] = {"name": tool.name}
        if tool.description:
            declaration["description"] = tool.description
        if tool.cache is not None:
            reason = "this wire has no cache markers; its own caching applies"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="rewritten", reason=reason))
        path = f"tools[{at}].input_schema"
        declaration["parametersJsonSchema"] = to_wire_schema(tool.input_schema, losses, path, "tool")
        made.append(declaration)
    return made


def to_wire_tool_choice(
    tools: Sequence[ToolDefinition], options: AdapterOptions, losses: list[Loss]
) -> dict[str, Any] | None:
    """Return `functionCallingConfig`, or None where nothing is to be said.

    Raises:
        CapabilityError: a call is demanded and there are no tools.
    """
    wanted = options.tool_choice
    if not tools:
        if isinstance(wanted, ToolChoice) or wanted == "required":
            raise CapabilityError("a call is demanded and there are no tools", path="options.tool_choice")
        return None
    if options.parallel_tool_calls is False and wanted != "none":
        reason = "this wire cannot forbid several calls in one answer"
        losses.append(option_loss("parallel_tool_calls", "dropped", reason))
    if isinstance(wanted, ToolChoice):
        return {"mode": "ANY", "allowedFunctionNames": [wanted.name]}
    return None if wanted is None else {"mode": _MODES[wanted]}

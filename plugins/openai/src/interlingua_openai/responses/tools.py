"""Tool definitions, tool choice and the answer's schema (sheet openai_responses §2, tools; openai_chat §3).

Never changes a schema it was given: what strict mode needs is added to a copy.
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import Loss, dumps, json_array, option_loss
from interlingua.types import AdapterOptions, ToolChoice, ToolDefinition
from interlingua_chat_completions.tools import StrictTools, strict_schema


def to_wire_tools(tools: Sequence[ToolDefinition], strict: StrictTools, losses: list[Loss]) -> bytes:
    """Write the definitions, flat and with `strict` said: left out, the server would try strict by itself (sheet §2).

    It is false where strictness was not asked for, because it makes every property required and so changes what the
    tool accepts.
    """
    losses.extend(strict.losses)
    for at, tool in enumerate(tools):
        if tool.cache is not None:
            reason = "tools carry no cache marker on this wire; they are part of what the first marker keeps"
            losses.append(Loss(path=f"tools[{at}]", block_type="tool", verdict="dropped", reason=reason))
    return json_array([dumps(_function(tool, strict.schemas.get(tool.name))) for tool in tools])


def _function(tool: ToolDefinition, strict: Mapping[str, Any] | None) -> dict[str, Any]:
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        function["description"] = tool.description
    schema: Mapping[str, Any] = tool.input_schema if strict is None else strict
    function["parameters"] = schema if "type" in schema else {"type": "object", **schema}
    function["strict"] = strict is not None
    return function


def to_wire_tool_choice(choice: ToolChoice) -> str | dict[str, str]:
    """Return the choice."""
    return {"type": "function", "name": choice.name} if isinstance(choice, ToolChoice) else choice


def to_wire_format(options: AdapterOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return `text.format` for the schema asked for; strict, so that the answer must follow it, where it can be."""
    schema = options.response_schema
    assert schema is not None  # noqa: S101  the caller looked
    strict = strict_schema(schema)
    if strict is None:
        reason = "it has optional properties or open objects, which strict mode refuses; the model is asked, not forced"
        losses.append(option_loss("response_schema", "rewritten", reason))
    return {
        "type": "json_schema",
        "name": options.response_name,
        "schema": schema if strict is None else strict,
        "strict": strict is not None,
    }

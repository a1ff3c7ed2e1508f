"""The three ways wires wrap one tool schema, to and from `ToolDefinition` (seed 002, Schema Translation).

Never touches the schema inside the wrapper, and never adds what a service wants on top (strictness, cache markers).
Adapters and importers of foreign tool lists come in, through the room's front door.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import CallerError
from interlingua.tools.definition import ToolDefinition
from interlingua.tools.kinds import SideEffects, ToolKind

_NO_INPUT: Mapping[str, Any] = {"type": "object", "properties": {}}


def to_wire_input_schema_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Return `{name, description, input_schema}`; an empty description is left out (REGRESSIONS case 23)."""
    return {**_named(definition), "input_schema": definition.input_schema}


def to_wire_function_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Return `{type: "function", function: {name, description, parameters}}`; an empty description is left out."""
    return {"type": "function", "function": {**_named(definition), "parameters": definition.input_schema}}


def to_wire_flat_function_tool(definition: ToolDefinition) -> dict[str, Any]:
    """Return `{type: "function", name, description, parameters}`; an empty description is left out."""
    return {"type": "function", **_named(definition), "parameters": definition.input_schema}


def from_wire_tool(
    tool: Mapping[str, Any], *, side_effects: SideEffects, requires_workspace: bool = True, kind: ToolKind | None = None
) -> ToolDefinition:
    """Read a tool in any of the three wrappers; what no wire carries comes from the caller.

    Args:
        tool: one entry of a wire's list of tools; keys beside name, description and schema are not read.
        side_effects: what running the tool may change.
        requires_workspace: as in ToolDefinition.
        kind: as in ToolDefinition.

    Raises:
        CallerError: it is none of the three, or its name is not canonical.
        SchemaNotSupported: its schema is outside the subset; `path` points into the schema.
    """
    name, description, schema = _unwrapped(tool)
    if not isinstance(description, str):
        raise CallerError(f"the description of tool {name!r} must be a string, not {type(description).__name__}")
    return ToolDefinition(
        name=name,
        description=description,
        input_schema=schema,
        side_effects=side_effects,
        requires_workspace=requires_workspace,
        kind=kind,
    )


def _named(definition: ToolDefinition) -> dict[str, Any]:
    named = {"name": definition.name}
    if definition.description:
        named["description"] = definition.description
    return named


def _unwrapped(tool: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    inner, key = tool, "input_schema"
    if tool.get("type") == "function":
        inner, key = tool.get("function", tool), "parameters"
    if not isinstance(inner, Mapping) or "name" not in inner or (key == "input_schema" and key not in inner):
        raise CallerError(
            "not a tool definition: expected {name, description, input_schema}, {type: 'function', function: {name,"
            " description, parameters}} or {type: 'function', name, description, parameters}, got the keys"
            f" {', '.join(map(str, tool))}"
        )
    schema = inner.get(key)
    return inner["name"], inner.get("description") or "", _NO_INPUT if schema is None else schema

"""The tools room: definitions, the schema subset and its importer, wire wrappers, input checks and name projection.

Never holds a tool call or its result (blocks do), and never runs anything.
Rooms above it in DESIGN 2 and every plugin come in, by this door only.
"""

from __future__ import annotations

from interlingua.tools.definition import TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN, ToolDefinition
from interlingua.tools.kinds import SideEffects, ToolKind
from interlingua.tools.names import project_names
from interlingua.tools.normalise import NormalisedSchema, SchemaChange, normalise_schema
from interlingua.tools.schema import check_schema
from interlingua.tools.validate import InputViolation, validate_input
from interlingua.tools.wrappers import (
    from_wire_tool,
    to_wire_flat_function_tool,
    to_wire_function_tool,
    to_wire_input_schema_tool,
)

__all__ = [
    "TOOL_NAME_MAX_LENGTH",
    "TOOL_NAME_PATTERN",
    "InputViolation",
    "NormalisedSchema",
    "SchemaChange",
    "SideEffects",
    "ToolDefinition",
    "ToolKind",
    "check_schema",
    "from_wire_tool",
    "normalise_schema",
    "project_names",
    "to_wire_flat_function_tool",
    "to_wire_function_tool",
    "to_wire_input_schema_tool",
    "validate_input",
]

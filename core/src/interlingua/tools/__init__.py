"""The tools room: definitions, the schema subset and its importer, wire wrappers, input checks and names.

Never holds a tool call or its result (blocks do), and never runs anything.
Rooms above it in DESIGN 2 and every plugin come in, by this door only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua.tools.definition import TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN, ToolDefinition
from interlingua.tools.kinds import SideEffects, ToolKind
from interlingua.tools.schema import check_schema
from interlingua.tools.wrappers import (
    from_wire_tool,
    to_wire_flat_function_tool,
    to_wire_function_tool,
    to_wire_input_schema_tool,
)

if TYPE_CHECKING:
    from interlingua.tools.names import canonical_names
    from interlingua.tools.normalise import NormalisedSchema, SchemaChange, normalise_schema
    from interlingua.tools.validate import InputViolation, validate_input

# Not every conversation needs these, and attrs classes cost import time.
_LATER = {
    "InputViolation": "validate",
    "NormalisedSchema": "normalise",
    "SchemaChange": "normalise",
    "canonical_names": "names",
    "normalise_schema": "normalise",
    "validate_input": "validate",
}

__all__ = [
    "TOOL_NAME_MAX_LENGTH",
    "TOOL_NAME_PATTERN",
    "InputViolation",
    "NormalisedSchema",
    "SchemaChange",
    "SideEffects",
    "ToolDefinition",
    "ToolKind",
    "canonical_names",
    "check_schema",
    "from_wire_tool",
    "normalise_schema",
    "to_wire_flat_function_tool",
    "to_wire_function_tool",
    "to_wire_input_schema_tool",
    "validate_input",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value

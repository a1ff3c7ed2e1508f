"""Tool-schema wrappers; the expected objects are the three forms that services document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from interlingua.errors import CallerError, UnsupportedSchemaError
from interlingua.types.tools import (
    SideEffects,
    ToolDefinition,
    from_wire_tool,
    to_wire_function_tool,
)
from tests.core.types import strategies as s

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
INPUT_SCHEMA = {"name": "read_file", "description": "Read a file", "input_schema": SCHEMA}
FUNCTION = {
    "type": "function",
    "function": {"name": "read_file", "description": "Read a file", "parameters": SCHEMA},
}
FLAT = {"type": "function", "name": "read_file", "description": "Read a file", "parameters": SCHEMA}
TOOL = ToolDefinition(name="read_file", description="Read a file", input_schema=SCHEMA, side_effects=SideEffects.READ)


@pytest.mark.parametrize("wire", [INPUT_SCHEMA, FUNCTION, FLAT])
def test_every_form_is_read(wire: dict[str, Any]) -> None:
    assert from_wire_tool(wire, side_effects=SideEffects.READ) == TOOL


def test_the_form_that_most_services_share_is_written() -> None:
    assert json.dumps(to_wire_function_tool(TOOL)) == json.dumps(FUNCTION)


@given(s.inside_roots)
def test_the_schema_content_is_identical_in_the_wrapper(schema: dict[str, Any]) -> None:
    tool = ToolDefinition(name="x", description="", input_schema=schema, side_effects=SideEffects.NONE)
    wire = to_wire_function_tool(tool)
    assert json.dumps(wire["function"]["parameters"]) == json.dumps(schema)
    assert from_wire_tool(wire, side_effects=SideEffects.NONE) == tool


def test_case_23_an_empty_description_is_left_out() -> None:
    tool = ToolDefinition(name="x", description="", input_schema=SCHEMA, side_effects=SideEffects.NONE)
    assert "description" not in to_wire_function_tool(tool)["function"]


@pytest.mark.parametrize(
    "wire", [{"type": "function", "function": {"name": "now"}}, {"type": "function", "name": "now"}]
)
def test_a_function_without_parameters_takes_nothing(wire: dict[str, Any]) -> None:
    tool = from_wire_tool(wire, side_effects=SideEffects.NONE)
    assert (tool.description, tool.input_schema) == ("", {"type": "object", "properties": {}})


def test_what_no_wire_carries_comes_from_the_caller() -> None:
    tool = from_wire_tool(FLAT, side_effects=SideEffects.NETWORK)
    assert (tool.side_effects, tool.requires_workspace, tool.kind) == ("network", True, None)


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"type": "web_search"},
        {"name": "x"},
        {"name": "x", "parameters": SCHEMA},
        {"type": "function", "function": "x"},
        {"type": "function", "function": {"parameters": SCHEMA}},
        {**INPUT_SCHEMA, "description": 7},
        {**INPUT_SCHEMA, "name": "Read-File"},
    ],
)
def test_anything_else_is_refused(wire: dict[str, Any]) -> None:
    with pytest.raises(CallerError):
        from_wire_tool(wire, side_effects=SideEffects.READ)


def test_a_schema_outside_the_subset_is_refused_with_the_path_inside_the_schema() -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        from_wire_tool({"name": "x", "input_schema": {"type": "object", "anyOf": []}}, side_effects=SideEffects.READ)
    assert caught.value.path == "/anyOf"

"""ToolDefinition: names, freezing, and refusal when it is made (format.md, Tools)."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import CallerError, UnsupportedSchemaError
from interlingua.types.blocks import CacheHint
from interlingua.types.tools import SideEffects, ToolDefinition, ToolKind

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def make(**fields: Any) -> ToolDefinition:
    given = {
        "name": "read_file",
        "description": "Read a file",
        "input_schema": SCHEMA,
        "side_effects": SideEffects.READ,
    }
    return ToolDefinition(**(given | fields))


def test_defaults_are_those_of_the_format() -> None:
    tool = make()
    assert (tool.requires_workspace, tool.cache, tool.kind) == (True, None, None)
    assert tool.input_schema == SCHEMA


def test_side_effects_are_those_of_the_format() -> None:
    assert [str(effect) for effect in SideEffects] == ["none", "read", "write", "execute", "network"]


@pytest.mark.parametrize("name", ["a", "read_file", "x2", "a" * 64])
def test_canonical_names(name: str) -> None:
    assert make(name=name).name == name


@pytest.mark.parametrize("name", ["", "Read", "read-file", "2x", "_x", "a b", "read_file\n", "a" * 65, "ä", None, 7])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(CallerError, match="canonical"):
        make(name=name)


def test_side_effects_must_be_declared() -> None:
    with pytest.raises(TypeError, match="side_effects"):
        ToolDefinition(name="x", description="", input_schema=SCHEMA)  # type: ignore[call-arg]
    with pytest.raises(CallerError, match="side_effects"):
        make(side_effects="harmless")
    assert make(side_effects="read").side_effects is SideEffects.READ


def test_a_schema_outside_the_subset_is_refused_at_registration() -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        make(input_schema={"type": "object", "properties": {"x": {"oneOf": []}}})
    assert caught.value.path == "/properties/x/oneOf"
    assert isinstance(caught.value, CallerError)


def test_case_23_later_mutation_of_the_input_does_not_reach_the_definition() -> None:
    mine: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = make(input_schema=mine)
    mine["properties"]["path"]["oneOf"] = []
    assert tool.input_schema["properties"]["path"] == {"type": "string"}
    with pytest.raises(TypeError):
        tool.input_schema["properties"]["path"]["oneOf"] = []


def test_definitions_are_hashable_values() -> None:
    a = make(cache=CacheHint(ttl="1h"), kind=ToolKind.READ)
    assert a == make(cache=CacheHint(ttl="1h"), kind=ToolKind.READ)
    assert hash(a) == hash(make(cache=CacheHint(ttl="1h"), kind=ToolKind.READ))
    assert a != make()

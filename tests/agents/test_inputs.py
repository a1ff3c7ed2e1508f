"""validate_input: JSON Schema draft 2020-12 semantics, and no exception whatever the input."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.types import SideEffects, ToolDefinition
from interlingua_agents import InputViolation, validate_input


def tool(**schema: Any) -> ToolDefinition:
    return ToolDefinition(
        name="t", description="", input_schema={"type": "object", **schema}, side_effects=SideEffects.NONE
    )


PATHS = {"properties": {"paths": {"type": "array", "items": {"type": "string"}}}, "required": ["paths"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        (PATHS, {"paths": ["a"], "more": 1}),
        ({"properties": {"n": {"type": "integer"}}}, {"n": 1.0}),  # 2020-12: 1.0 is an integer
        ({"properties": {"d": {"format": "date"}}}, {"d": "soon"}),  # format is an annotation
        ({"properties": {"$ref": {"type": "string"}}}, {"$ref": "x"}),
    ],
)
def test_valid(schema: dict[str, Any], value: Any) -> None:
    assert validate_input(tool(**schema), value) == ()


@pytest.mark.parametrize(
    ("schema", "value", "paths"),
    [
        (PATHS, {}, [""]),
        (PATHS, {"paths": ["a", 1, 2]}, ["/paths/1", "/paths/2"]),
        (PATHS, [], [""]),
        ({"properties": {"a/b": {"type": "integer"}}}, {"a/b": True}, ["/a~1b"]),
        ({"additionalProperties": False}, {"x": 1}, [""]),
        ({"properties": {"n": {"enum": [1]}}}, {"n": True}, ["/n"]),
    ],
)
def test_every_violation_has_its_path(schema: dict[str, Any], value: Any, paths: list[str]) -> None:
    found = validate_input(tool(**schema), value)
    assert [violation.path for violation in found] == paths
    assert all(violation.message for violation in found)


def test_schemas_equal_in_python_but_not_in_json_do_not_share_a_validator() -> None:
    one, true = tool(properties={"n": {"enum": [1]}}), tool(properties={"n": {"enum": [True]}})
    assert validate_input(one, {"n": 1}) == ()
    assert validate_input(true, {"n": True}) == ()
    assert len(validate_input(true, {"n": 1})) == 1


def test_a_huge_or_deep_input_is_a_short_violation() -> None:
    (violation,) = validate_input(tool(properties={"n": {"type": "integer"}}), {"n": "x" * 100_000})
    assert len(violation.message) <= 300
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    (violation,) = validate_input(tool(properties={"n": {"type": "integer"}}), {"n": deep})
    assert isinstance(violation, InputViolation)

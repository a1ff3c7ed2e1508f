"""normalise_schema (case 23). Shapes marked pydantic or OpenAPI are what those tools emit."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from interlingua.errors import UnsupportedSchemaError
from interlingua.types.tools import check_schema
from interlingua_agents.schemas import normalise_schema
from tests.core.types import strategies as s


def one(schema: Any, **root: Any) -> Any:
    """The normalised form of one property."""
    return normalise_schema({"type": "object", "properties": {"x": schema}, **root}).schema["properties"]["x"]


def actions(schema: Any) -> set[tuple[str, str]]:
    return {(change.path, change.action) for change in normalise_schema(schema).changes}


PYDANTIC = {
    "$defs": {
        "Unit": {"enum": ["c", "f"], "title": "Unit", "type": "string"},
        "Place": {
            "description": "Where.",
            "properties": {"city": {"title": "City", "type": "string", "minLength": 1}},
            "required": ["city"],
            "title": "Place",
            "type": "object",
        },
    },
    "properties": {
        "place": {"$ref": "#/$defs/Place", "description": "Asked for."},
        "unit": {"allOf": [{"$ref": "#/$defs/Unit"}], "default": "c"},
        "days": {"anyOf": [{"type": "integer", "maximum": 7}, {"type": "null"}], "default": None, "title": "Days"},
    },
    "required": ["place"],
    "title": "Weather",
    "type": "object",
}


def test_case_23_a_pydantic_schema_is_inlined_folded_and_described() -> None:
    before = copy.deepcopy(PYDANTIC)
    result = normalise_schema(PYDANTIC)
    assert result.schema == {
        "properties": {
            "place": {
                "description": "Asked for.\nWhere.",
                "properties": {"city": {"type": "string", "description": "minLength: 1"}},
                "required": ["city"],
                "type": "object",
            },
            "unit": {"enum": ["c", "f"], "type": "string", "description": 'default: "c"'},
            "days": {"type": "integer", "description": "maximum: 7"},
        },
        "required": ["place"],
        "type": "object",
    }
    assert before == PYDANTIC
    assert {
        ("/$defs", "dropped"),
        ("/title", "dropped"),
        ("/properties/place/$ref", "inlined"),
        ("/$defs/Place/properties/city/minLength", "described"),
        ("/properties/unit/allOf", "inlined"),
        ("/properties/days/anyOf", "folded"),
        ("/properties/days/default", "dropped"),
    } <= actions(PYDANTIC)


@pytest.mark.parametrize(
    "nullable",
    [
        {"type": ["string", "null"]},
        {"type": ["null", "string"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"type": "null"}, {"type": "string"}]},
        {"anyOf": [{"type": "string"}, {"const": None}]},
        {"type": "string", "nullable": True},  # OpenAPI 3.0
    ],
)
def test_case_23_null_leaves_a_union(nullable: dict[str, Any]) -> None:
    assert one(nullable) == {"type": "string"}
    assert {action for _, action in actions({"type": "object", "properties": {"x": nullable}})} == {"folded"}


def test_null_leaves_the_enumeration_with_the_union() -> None:
    assert one({"type": ["string", "null"], "enum": ["a", None]}) == {"type": "string", "enum": ["a"]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": None}, {"enum": [None]}),
        ({"type": "string", "const": "a", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"anyOf": [{"const": 1}, {"const": True}]}, {"enum": [1, True]}),
        (
            {"oneOf": [{"type": "string", "const": "a", "description": "First."}, {"type": "string", "enum": ["b"]}]},
            {"type": "string", "enum": ["a", "b"], "description": '"a": First.'},
        ),
    ],
)
def test_constants_become_enumerations(schema: Any, expected: Any) -> None:
    assert json.dumps(one(schema)) == json.dumps(expected)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("exclusiveMinimum", 0),
        ("pattern", "^a$"),
        ("propertyNames", {"pattern": "^x"}),
        ("default", 0),
        ("default", False),
        ("examples", ["é"]),
    ],
)
def test_case_23_a_constraint_becomes_words(keyword: str, value: Any) -> None:
    words = f"{keyword}: {json.dumps(value, ensure_ascii=False)}"
    assert one({keyword: value}) == {"description": words}
    assert one({keyword: value, "description": "Text."}) == {"description": f"Text. ({words})"}


@pytest.mark.parametrize("keyword", ["$schema", "$id", "title", "$comment", "x-order", "markdownDescription"])
def test_case_23_an_annotation_is_dropped(keyword: str) -> None:
    schema = {"type": "object", keyword: "https://example.org"}
    assert normalise_schema(schema).schema == {"type": "object"}
    assert actions(schema) == {(f"/{keyword}", "dropped")}


def test_case_23_empty_description_and_empty_object() -> None:
    assert normalise_schema({"type": "object", "description": ""}).schema == {"type": "object"}
    assert normalise_schema({}).schema == {"type": "object"}
    assert actions({}) == {("/type", "added")}


def test_all_of_is_inlined_where_its_parts_agree() -> None:
    both = [{"type": "string"}, {"enum": ["a"], "type": "string"}]
    assert one({"allOf": both}) == {"type": "string", "enum": ["a"]}


def test_a_schema_for_other_properties_is_widened_and_described() -> None:
    assert one({"type": "object", "additionalProperties": {"type": "integer"}}) == {
        "type": "object",
        "additionalProperties": True,
        "description": 'additionalProperties: {"type": "integer"}',
    }
    assert one({"additionalProperties": {}}) == {"additionalProperties": True}


def test_true_is_the_empty_schema() -> None:
    assert one(True) == {}
    assert one({"items": True}) == {"items": {}}


def test_property_names_like_keywords_are_left_alone() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "not": {}, "title": {}}}
    assert normalise_schema(schema).schema == schema
    assert normalise_schema(schema).changes == ()


def test_references_follow_escapes() -> None:
    assert one({"$ref": "#/$defs/a~1b%20c"}, **{"$defs": {"a/b c": {"type": "number"}}}) == {"type": "number"}
    assert one({"$ref": "#/definitions/y/allOf/0"}, definitions={"y": {"allOf": [{"type": "null"}]}}) == {
        "type": "null"
    }


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"$defs": {"Node": NODE}, "$ref": "#/$defs/Node"}, "/$defs/Node/properties/next/$ref"),
        ({"properties": {"x": {"$ref": "#"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "#/$defs/no"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "other.json"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"$ref": "#anchor"}}}, "/properties/x/$ref"),
        ({"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}, "/properties/x/anyOf"),
        ({"properties": {"x": {"allOf": [{"enum": [1]}, {"enum": [2]}]}}}, "/properties/x/allOf"),
        ({"properties": {"x": {"oneOf": []}}}, "/properties/x/oneOf"),
        ({"properties": {"x": {"type": ["string", "integer"]}}}, "/properties/x/type"),
        ({"properties": {"x": {"type": "string", "allOf": [{"type": "integer"}]}}}, "/properties/x/allOf"),
        ({"properties": {"x": {"enum": [1], "const": True}}}, "/properties/x/const"),
        ({"properties": {"x": {"not": {}}}}, "/properties/x/not"),
        ({"properties": {"x": {"if": {}}}}, "/properties/x/if"),
        ({"properties": {"x": {"items": [{}]}}}, "/properties/x/items"),
        ({"properties": {"x": False}}, "/properties/x"),
        ({"properties": {"x": {"patternProperties": {}}}}, "/properties/x/patternProperties"),
        ({"properties": {"x": {"default": float("nan")}}}, "/properties/x/default"),
        ({"type": "string"}, "/type"),
    ],
)
def test_what_cannot_be_folded_is_refused_with_its_path(schema: Any, path: str) -> None:
    before = copy.deepcopy(schema)
    with pytest.raises(UnsupportedSchemaError) as caught:
        normalise_schema(schema)
    assert caught.value.path == path
    assert repr(schema) == repr(before)


def test_references_that_fan_out_end_in_a_typed_error() -> None:
    defs = {f"d{i}": {"properties": {k: {"$ref": f"#/$defs/d{i + 1}"} for k in "abcd"}} for i in range(30)}
    with pytest.raises(UnsupportedSchemaError, match="large"):
        normalise_schema({"$defs": {**defs, "d30": {}}, "$ref": "#/$defs/d0"})


def test_hostile_depth_ends_in_a_typed_error() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"anyOf": [schema]}
    with pytest.raises(UnsupportedSchemaError, match="deep"):
        normalise_schema(schema)


@given(st.one_of(s.loose_roots, s.inside_roots))
def test_the_result_is_always_inside_and_the_input_is_never_mutated(schema: Any) -> None:
    before = json.dumps(schema)
    try:
        result = normalise_schema(schema)
    except UnsupportedSchemaError:
        return
    finally:
        assert json.dumps(schema) == before
    check_schema(result.schema)
    assert normalise_schema(result.schema).changes == ()


@given(s.inside_roots)
def test_a_schema_inside_the_subset_comes_back_byte_equal(schema: dict[str, Any]) -> None:
    result = normalise_schema(schema)
    assert json.dumps(result.schema) == json.dumps(schema)
    assert result.changes == ()


@given(s.loose_roots, st.dictionaries(s.names, s.json_values, max_size=3))
def test_what_the_original_accepts_the_result_accepts_unless_null_left(schema: Any, value: Any) -> None:
    """Folding only widens (words are not checks); narrowing happens where null leaves a union, and is reported."""
    try:
        result = normalise_schema(schema)
    except UnsupportedSchemaError:
        return
    if not any(change.action in {"folded", "added"} for change in result.changes) and Draft202012Validator(
        schema
    ).is_valid(value):
        assert Draft202012Validator(result.schema).is_valid(value)

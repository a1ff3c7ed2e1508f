"""The schema subset: format.md, Tools, is the source of every expectation here."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.errors import UnsupportedSchemaError
from interlingua.types.tools import check_schema, follow_pointer

from . import strategies as s


def oracle(node: Any, *, root: bool = True) -> bool:
    """format.md, Tools, as a predicate, written without looking at the code."""
    if not isinstance(node, dict) or set(node) - set(s.KEYWORDS) or (root and node.get("type") != "object"):
        return False
    required = node.get("required", [])
    properties = node.get("properties", {})
    return (
        node.get("type", "null") in s.TYPE_NAMES
        and isinstance(node.get("enum", [0]), list)
        and len(node.get("enum", [0])) > 0
        and isinstance(required, list)
        and len(required) == len({json.dumps(name) for name in required})
        and isinstance(properties, dict)
        and all(oracle(child, root=False) for child in properties.values())
        and ("items" not in node or oracle(node["items"], root=False))
        and isinstance(node.get("description", ""), str)
        and isinstance(node.get("format", ""), str)
        and node.get("additionalProperties", True) in (True, False)
    )


@given(st.one_of(s.loose_roots, s.inside_roots))
def test_accepts_exactly_the_subset(schema: Any) -> None:
    before = copy.deepcopy(schema)
    try:
        check_schema(schema)
        accepted = True
    except UnsupportedSchemaError:
        accepted = False
    assert accepted == oracle(schema)
    assert json.dumps(schema) == json.dumps(before)


def nested(keyword: str, value: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a/b": {"type": "array", "items": {keyword: value}}}}


@pytest.mark.parametrize(
    "keyword",
    ["$ref", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "patternProperties", "minimum", "const", "title"],
)
def test_a_foreign_keyword_is_named_by_its_pointer(keyword: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="normalise_schema") as caught:
        check_schema(nested(keyword, {}))
    assert caught.value.path == f"/properties/a~1b/items/{keyword}"  # RFC 6901: / in a token is ~1


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("additionalProperties", {"type": "string"}),  # boolean is OK, a schema is not
        ("type", ["string", "null"]),
        ("type", "any"),
        ("enum", []),
        ("enum", [float("nan")]),
        ("enum", [object()]),
        ("required", True),
        ("required", ["a", "a"]),
        ("properties", []),
        ("items", [{"type": "string"}]),
        ("description", None),
        ("format", 1),
    ],
)
def test_a_malformed_keyword_is_named_by_its_pointer(keyword: str, value: Any) -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        check_schema(nested(keyword, value))
    assert caught.value.path == f"/properties/a~1b/items/{keyword}"


def test_properties_may_be_named_like_keywords() -> None:
    names = ["not", "$ref", "anyOf", "$defs", "type", "properties"]
    check_schema({"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names})


@pytest.mark.parametrize(("schema", "path"), [({}, ""), ({"type": "string"}, "/type"), ({"properties": {}}, "")])
def test_the_root_is_an_object(schema: dict[str, Any], path: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="object") as caught:
        check_schema(schema)
    assert caught.value.path == path


@pytest.mark.parametrize("schema", [None, [], "object", True])
def test_a_schema_that_is_no_object_is_refused(schema: Any) -> None:
    with pytest.raises(UnsupportedSchemaError):
        check_schema(schema)


def test_hostile_depth_ends_in_a_typed_error() -> None:
    schema: dict[str, Any] = {"type": "object"}
    deep_enum: list[Any] = []
    for _ in range(50_000):
        schema = {"type": "object", "properties": {"x": schema}}
        deep_enum = [deep_enum]
    with pytest.raises(UnsupportedSchemaError, match="deeper"):
        check_schema(schema)
    with pytest.raises(UnsupportedSchemaError) as caught:
        check_schema({"type": "object", "enum": deep_enum})
    assert caught.value.path == "/enum"


# the document of RFC 6901, section 5, with its values, and what the section's rules exclude
RFC = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, " ": 7, "m~n": 8, "~1": 9}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/ ", 7),
        ("/m~0n", 8), ("/~01", 9),
        ("/foo/2", None), ("/foo/-", None), ("/foo/bar", None), ("/foo/0/x", None), ("/none", None), ("foo", None),
    ],
)  # fmt: skip
def test_a_pointer_is_followed_as_its_specification_says(pointer: str, value: object) -> None:
    assert follow_pointer(RFC, pointer) == value

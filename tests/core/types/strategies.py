"""Schemas for the Hypothesis tests; plain generators, no knowledge of the code under test."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KEYWORDS = ("type", "enum", "required", "properties", "items", "description", "format", "additionalProperties")
TYPE_NAMES = ("string", "number", "integer", "boolean", "null", "object", "array")

names = st.sampled_from(["a", "b", "path", "not", "$ref", "type", "a/b", "c~d", ""])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | names
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2)
)


def _node(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A node inside the subset."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPE_NAMES),
            "enum": st.lists(json_values, min_size=1, max_size=3),
            "required": st.lists(names, unique=True, max_size=3),
            "properties": st.dictionaries(names, inner, max_size=3),
            "items": inner,
            "description": st.text(min_size=1, max_size=5),
            "format": st.sampled_from(["date", "uri"]),
            "additionalProperties": st.booleans(),
        },
    )


inside = st.recursive(_node(st.just({"type": "string"})), _node, max_leaves=8)
inside_roots = inside.map(lambda node: {**node, "type": "object"})


def _loose(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A node in the neighbourhood of the subset: each keyword right or wrong, and foreign keywords."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from([*TYPE_NAMES, "any", ["string", "null"], ["string"], ["string", "integer"], 3]),
            "enum": st.lists(json_values, max_size=3) | st.just("x"),
            "required": st.lists(names, max_size=3) | st.booleans(),
            "properties": st.dictionaries(names, inner, max_size=3) | st.just([]),
            "items": inner | st.lists(inner, max_size=2) | st.booleans(),
            "description": st.sampled_from(["", "what it is", 7]),
            "format": st.sampled_from(["date", 7]),
            "additionalProperties": st.booleans() | inner,
            "anyOf": st.lists(inner | st.just({"type": "null"}), max_size=3),
            "oneOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "$ref": st.sampled_from(["#", "#/$defs/x", "#/properties/a", "other.json"]),
            "$defs": st.dictionaries(st.just("x"), inner, max_size=1),
            "const": json_values,
            "default": json_values,
            "title": names,
            "minimum": st.integers(0, 3),
            "not": inner,
            "x-vendor": json_values,
        },
    ) | st.booleans()  # fmt: skip


loose = st.recursive(_loose(st.just({"type": "string"})), _loose, max_leaves=6)
loose_roots = st.one_of(loose, loose.map(lambda node: {**node, "type": "object"} if isinstance(node, dict) else node))

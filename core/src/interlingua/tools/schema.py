"""The JSON Schema subset of tool inputs, checked with a pointer to the keyword that is outside it.

Never rewrites a schema (normalise.py does) and never validates a tool's input against one (validate.py does).
The tools room comes in; others call `check_schema` through its front door.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interlingua.errors import SchemaNotSupported

TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
"""The values of `type` that seed 003 §5.4 allows."""

MAX_DEPTH = 64
"""Levels of nesting accepted: far past what any provider takes, and short of Python's recursion limit."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a tool's input schema that is outside the subset of seed 003 §5.4; the schema is only read.

    Args:
        schema: the JSON Schema of an object.

    Raises:
        SchemaNotSupported: its `path` is the JSON pointer of the first offending keyword, in document order.
    """
    stack: list[tuple[str, Any, int]] = [("", schema, 0)]
    while stack:
        path, node, depth = stack.pop()
        if not isinstance(node, Mapping):
            raise SchemaNotSupported(f"a schema must be a JSON object, not {type(node).__name__}", path=path)
        if depth > MAX_DEPTH:
            raise SchemaNotSupported(f"the schema nests deeper than {MAX_DEPTH} levels; flatten it", path=path)
        for keyword, value in node.items():
            check_keyword(keyword, value, path)
        stack += [(at, child, depth + 1) for at, child in reversed(list(children(node, path)))]
    if schema.get("type") != "object":
        place = "/type" if "type" in schema else ""
        raise SchemaNotSupported('a tool takes an object: its schema needs "type": "object" at the root', path=place)


def check_keyword(keyword: Any, value: Any, path: str) -> None:
    """Refuse one keyword of the schema at `path`, by its name or by the form of its value.

    Raises:
        SchemaNotSupported: the keyword is outside the subset, or its value is malformed.
    """
    check = _CHECKS.get(keyword)
    place = pointer(path, keyword)
    if check is None:
        allowed = ", ".join(_CHECKS)
        raise SchemaNotSupported(
            f"tool schemas may not use {keyword!r}; allowed are {allowed}. Remove it, or pass the schema through"
            " normalise_schema(), which inlines, folds or describes what it can and reports each change",
            path=place,
        )
    if complaint := check(value):
        raise SchemaNotSupported(f"{keyword} must be {complaint}", path=place)


def children(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Yield each direct subschema of a checked node with its pointer."""
    for name, child in node.get("properties", {}).items():
        yield pointer(path, "properties", name), child
    if "items" in node:
        yield pointer(path, "items"), node["items"]


def pointer(path: str, *tokens: Any) -> str:
    """Extend a JSON pointer by tokens, escaped (RFC 6901)."""
    return path + "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def _type(value: Any) -> str | None:
    if isinstance(value, str) and value in TYPES:
        return None
    return f"a single one of {', '.join(TYPES)}; normalise_schema() folds a nullable union"


def _enum(value: Any) -> str | None:
    return None if isinstance(value, list) and value and _is_json(value) else "a non-empty array of JSON values"


def _required(value: Any) -> str | None:
    names = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return None if names and len(set(value)) == len(value) else "an array of distinct property names"


def _properties(value: Any) -> str | None:
    names = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    return None if names else "an object that maps property names to schemas"


def _schema(value: Any) -> str | None:
    return None if isinstance(value, Mapping) else "one schema"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "a string"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false; a schema is not allowed here"


def _is_json(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                if not all(isinstance(key, str) for key in item):
                    return False
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif not _is_scalar(item):
                return False
        if not inner:
            return True
        level = inner
    return False


def _is_scalar(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else value is None or isinstance(value, (str, int))


_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "type": _type,
    "enum": _enum,
    "required": _required,
    "properties": _properties,
    "items": _schema,
    "description": _text,
    "format": _text,
    "additionalProperties": _boolean,
}

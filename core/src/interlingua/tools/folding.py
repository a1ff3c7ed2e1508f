"""Folding rules for one node: which keywords go, which become words, how null leaves a union, how two nodes merge.

Never walks a schema and never reports (normalise.py does both).
Only normalise.py comes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import SchemaNotSupported
from interlingua.tools.schema import pointer

DESCRIBED = frozenset({
    "default", "examples", "example", "deprecated",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType",
    "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties", "propertyNames", "dependentRequired",
})  # fmt: skip
"""Keywords outside the subset whose meaning a model can read as words (JSON Schema 2020-12, validation vocabulary)."""

REFUSED = frozenset({
    "not", "if", "then", "else", "patternProperties", "dependentSchemas", "dependencies",
    "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "contentSchema",
    "unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
})  # fmt: skip
"""Keywords that change which inputs are valid in a way the subset cannot say, nor a few words."""

_NULL_KEYS = ({"type"}, {"enum"}, {"type", "enum"})


def as_words(keyword: str, value: Any, place: str) -> str:
    """Spell a keyword for a description, as `minimum: 1`.

    Raises:
        SchemaNotSupported: the value is not JSON.
    """
    try:
        return f"{keyword}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaNotSupported(f"{keyword} is not a JSON value", path=place) from error


def with_words(description: str, words: Sequence[str]) -> str:
    """Add keyword words to a description, in brackets."""
    text = "; ".join(words)
    if not words or not description:
        return description or text
    return f"{description} ({text})"


def without_null(types: Any) -> Any:
    """Reduce a list of types to its only type beside null; anything else comes back as it is."""
    if not isinstance(types, list):
        return types
    rest = [name for name in types if name != "null"] or types
    return rest[0] if len(rest) == 1 else types


def is_null(schema: Mapping[str, Any]) -> bool:
    """Tell whether a folded schema accepts null only."""
    says = (schema.get("type", "null"), schema.get("enum", [None]))
    return schema.keys() - {"description"} in _NULL_KEYS and says == ("null", [None])


def joined_enum(branches: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Fold alternatives that are all enumerations of one type into one enumeration; None when they are not.

    What each alternative says of its values moves to the common description.
    """
    types = {branch.get("type") for branch in branches}
    if len(types) != 1 or not all(
        "enum" in item and item.keys() <= {"type", "enum", "description"} for item in branches
    ):
        return None
    values = {json.dumps(value): value for branch in branches for value in branch["enum"]}  # 1 and true stay apart
    lines = [f"{json.dumps(item['enum'])[1:-1]}: {item['description']}" for item in branches if "description" in item]
    kind = types.pop()
    joined = {} if kind is None else {"type": kind}
    return joined | {"enum": list(values.values())} | ({"description": "\n".join(lines)} if lines else {})


def conjunction(branches: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Return what all branches of an `allOf` say together.

    Raises:
        SchemaNotSupported: two of them say something different with one keyword.
    """
    joined: dict[str, Any] = {}
    for branch in branches:
        merge(joined, branch, place, place)
    return joined


def merge(own: dict[str, Any], other: Mapping[str, Any], place: str, path: str) -> None:
    """Add to `own` what an inlined schema says; both descriptions stay.

    Args:
        own: changed in place.
        other: the inlined schema.
        place: pointer of the keyword that brought it in.
        path: pointer of the node that holds the keyword.

    Raises:
        SchemaNotSupported: both say something different with one keyword.
    """
    for keyword, value in other.items():
        if keyword not in own:
            own[keyword] = value
        elif json.dumps(own[keyword]) != json.dumps(value):  # in Python 1 == True, in JSON not
            if keyword != "description":
                also = pointer(path, keyword)
                raise SchemaNotSupported(f"what this brings in also says {keyword!r}, unlike {also}", path=place)
            own[keyword] = f"{own[keyword]}\n{value}"

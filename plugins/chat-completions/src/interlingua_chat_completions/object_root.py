"""Schemas of tools whose root is not a plain object: joined into one, because services take no other root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from interlingua.plugins import FrozenDict, Loss, dumps, freeze_object, loads
from interlingua.types import ToolDefinition, follow_pointer

_UNIONS = ("anyOf", "oneOf", "allOf")
_DEPTH = 4  # of forms within forms; a schema may lead back to itself


class JoinedSchema(NamedTuple):
    """A schema with an object at its root, and the keywords of the root that were changed."""

    schema: FrozenDict
    changed: tuple[str, ...]


def join_root(schema: Mapping[str, Any]) -> JoinedSchema | None:
    """Return the schema with the properties of all forms of its root; None if the root is a plain object.

    A property is required if the whole schema requires it. The description keeps alternatives.
    """
    if schema.get("type") == "object" and not schema.keys() & {"$ref", *_UNIONS}:
        return None
    return _joined(dumps(schema))


@lru_cache(maxsize=1024)  # successive requests have the same tools
def _joined(written: bytes) -> JoinedSchema | None:
    schema = loads(written)
    changed = [name for name in (*_UNIONS, "$ref") if name in schema]
    made = _join(schema, schema, 0)
    if made.get("type", "object") != "object":
        changed.append("type")
    if not changed:
        return None  # the type alone is missing, which means the same
    return JoinedSchema(freeze_object({**made, "type": "object"}), tuple(changed))


def _join(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    joined = {name: value for name, value in schema.items() if name not in (*_UNIONS, "$ref")}
    properties: dict[str, Any] = dict(_properties(joined))
    required = _required(joined)
    words: list[str] = []
    for keyword in (*_UNIONS, "$ref"):
        if keyword not in schema:
            continue
        given = schema[keyword] if isinstance(schema[keyword], list) else [{"$ref": schema[keyword]}]
        found = [_target(one, root) for one in given if depth < _DEPTH]
        forms = [_join(form, root, depth + 1) for form in found if isinstance(form, Mapping)]
        for form in forms:
            for name, child in _properties(form).items():
                known = properties.get(name, child)
                properties[name] = child if known == child else {"anyOf": [known, child]}
        demands = [set(_required(form)) for form in forms]
        if demands:
            shared = set.union(*demands) if keyword in ("allOf", "$ref") else set.intersection(*demands)
            required += sorted(shared.difference(required))
        if keyword in ("anyOf", "oneOf"):
            words.append(f"{keyword}: {dumps(given).decode()}")
    joined["properties"] = properties
    if required:
        joined["required"] = required
    if words:
        said = joined.get("description")
        joined["description"] = "; ".join([said, *words] if said and isinstance(said, str) else words)
    return joined


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties; a caller's schema may have a value of another type there."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _target(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow references into the schema itself; one that leads nowhere, or back, is an empty schema."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen or not reference.startswith("#/"):
            return {}
        seen.add(reference)
        schema = follow_pointer(root, reference[1:])
    return schema


def root_losses(tools: Sequence[ToolDefinition], api: str) -> list[Loss]:
    """Return a row for each changed root; tools of a request on this API are sent as they came."""
    rows = []
    for at, tool in enumerate(tools):
        if tool.extra_of(api) or (joined := join_root(tool.input_schema)) is None:
            continue
        reason = f"a root with {' and '.join(joined.changed)} is refused; it is one object with the properties of all"
        rows.append(Loss(path=f"tools[{at}].input_schema", block_type="tool", verdict="rewritten", reason=reason))
    return rows

"""Schemas of tools, and the subset for structured answers (WIRE.md, Tools and Structured answers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.plugins import Loss, dumps

_KEPT = ("type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "title",
         "description")  # fmt: skip
_NAMED, _UNIONS = ("properties", "$defs"), ("anyOf", "allOf", "oneOf")
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")


def to_wire_schema(
    schema: Mapping[str, Any], losses: list[Loss], path: str = "options.response_schema"
) -> dict[str, Any]:
    """Return the schema in the subset; keywords outside it move into the description, one loss each."""
    out: dict[str, Any] = {}
    words: list[str] = []
    for name, value in schema.items():
        if name in _NAMED:
            out[name] = {key: _inner_schema(item, losses, f"{path}.{name}.{key}") for key, item in value.items()}
        elif name == "items" and isinstance(value, Mapping):
            out[name] = to_wire_schema(value, losses, f"{path}.items")
        elif name in _UNIONS:
            kept = "anyOf" if name == "oneOf" else name
            out[kept] = [_inner_schema(item, losses, f"{path}.{name}[{at}]") for at, item in enumerate(value)]
        elif name == "additionalProperties":
            if value is not False:
                reason = "objects are closed in structured output; additionalProperties became false"
                losses.append(Loss(path=f"{path}.{name}", block_type="option", verdict="rewritten", reason=reason))
        elif name in _KEPT or (name == "format" and value in _FORMATS) or (name == "minItems" and value in (0, 1)):
            out[name] = value
        else:
            words.append(f"{name}: {dumps(value).decode()}")
            reason = f"{name} is outside the structured-output subset; it moved into the description"
            losses.append(Loss(path=f"{path}.{name}", block_type="option", verdict="rewritten", reason=reason))
    if "properties" in out and out.keys().isdisjoint(("enum", "const", "anyOf", "allOf", "$ref")):
        out.setdefault("type", "object")
    if out.get("type") == "object":
        out["additionalProperties"] = False
    if words:
        out["description"] = "; ".join(filter(None, [out.get("description"), *words]))
    return out


def _inner_schema(schema: Any, losses: list[Loss], path: str) -> Any:
    """Return a schema in the subset; true and false are returned unchanged."""
    return to_wire_schema(schema, losses, path) if isinstance(schema, Mapping) else schema


def complete_schema(schema: Any) -> Any:
    """Return a tool's schema with keywords that some models require: `properties` of objects, `items` of arrays."""
    if not isinstance(schema, Mapping):
        return schema
    whole = dict(schema)
    for name, value in schema.items():
        if name in _NAMED and isinstance(value, Mapping):
            whole[name] = {key: complete_schema(child) for key, child in value.items()}
        elif name in _UNIONS and isinstance(value, Sequence):
            whole[name] = [complete_schema(child) for child in value]
        elif name in ("items", "additionalProperties"):
            whole[name] = complete_schema(value)
    kind = schema.get("type")
    kinds = (kind,) if isinstance(kind, str) else kind or ()
    if "object" in kinds:
        whole.setdefault("properties", {})
    if "array" in kinds and whole.get("items", True) is True:
        whole["items"] = {}
    return whole

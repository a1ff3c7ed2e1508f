"""A JSON Schema -> what the service's JSON Schema fields take (sheet gemini §5).

Never changes its input. `tools` and `to_wire` come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.json import dumps
from interlingua.plugins.wire import Loss

_SILENT = ("$schema", "$id")  # they say nothing about the value
_OUTSIDE = ("const", "discriminator", "examples", "exclusiveMinimum", "exclusiveMaximum", "not", "patternProperties")
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")


def to_wire_schema(schema: Mapping[str, Any], losses: list[Loss], path: str, block_type: str) -> dict[str, Any]:
    """Return the schema without the keywords to be left out; they move into the description, one loss each."""
    out: dict[str, Any] = {}
    words: list[str] = []
    for name, value in schema.items():
        at = f"{path}.{name}"
        if name == "const" and isinstance(value, str):
            out |= {"type": "string", "enum": [value]}
            losses.append(_loss(at, block_type, "rewritten", "const became an enum of one value"))
        elif name in _OUTSIDE:
            words.append(f"{name}: {dumps(value).decode()}")
            losses.append(_loss(at, block_type, "rewritten", f"{name} is not taken; it moved into the description"))
        elif name in _SILENT:
            losses.append(_loss(at, block_type, "dropped", f"{name} is not taken and says nothing of the value"))
        elif name in _MAPS and isinstance(value, Mapping):
            out[name] = {key: _inner(item, losses, f"{at}.{key}", block_type) for key, item in value.items()}
        elif name in _LISTS and isinstance(value, (list, tuple)):
            kept = "anyOf" if name == "oneOf" else name
            out[kept] = [_inner(item, losses, f"{at}[{place}]", block_type) for place, item in enumerate(value)]
        elif name in ("items", "additionalProperties"):
            out[name] = _inner(value, losses, at, block_type)
        else:
            out[name] = value
    if words:
        out["description"] = "; ".join(filter(None, [out.get("description"), *words]))
    return out


def _inner(value: Any, losses: list[Loss], path: str, block_type: str) -> Any:
    return to_wire_schema(value, losses, path, block_type) if isinstance(value, Mapping) else value


def _loss(path: str, block_type: str, verdict: Any, reason: str) -> Loss:
    return Loss(path=path, block_type=block_type, verdict=verdict, reason=reason)

"""Whether a schema can be sent as strict, and the copy that can (sheet openai_chat §3, REGRESSIONS case 23).

Never changes its argument, and never forces a schema that means something else when strict.
The tool and option writers come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNIONS = ("anyOf", "allOf", "oneOf")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a copy with `additionalProperties: false` on every object, or None where strict would change meaning.

    An object with optional or open properties is not strict, and the root must be an object.
    """
    if schema.get("type") != "object" or any(key in schema for key in _UNIONS):
        return None
    try:
        closed = _closed(schema)
    except _OpenObjectError:
        return None
    return closed if isinstance(closed, dict) else None


class _OpenObjectError(Exception):
    pass


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    copy = {key: item if key in ("enum", "const", "default", "examples") else _member(key, item)
            for key, item in value.items()}  # fmt: skip
    kinds = value.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        properties = value.get("properties") or {}
        if value.get("additionalProperties", False) is not False or set(value.get("required") or ()) != set(properties):
            raise _OpenObjectError
        copy["additionalProperties"] = False
    return copy


def _member(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
        return {name: _closed(item) for name, item in value.items()}
    return _closed(value)

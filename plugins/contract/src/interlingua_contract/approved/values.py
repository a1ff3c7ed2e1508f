"""Results of hooks as JSON values that are the same on every machine: short, in order, without defaults."""

from __future__ import annotations

import base64
import enum
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua_contract.json_paths import Path

_LONGEST = 60
"""Longer strings keep their beginning, length and digest."""

_SMALL = 40
"""Characters of JSON that are no longer than a digest with its place."""

_ERROR = ("message", "status", "code", "request_id", "retryable", "retry_after", "body", "partial")
_ABSENT: Any = object()


def plain(value: Any) -> Any:
    """Return a value as JSON; fields with their default are left out."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return _of_bytes(value)
    if isinstance(value, (Decimal, date)):
        return str(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, InterlinguaError):
        facts = {name: plain(fact) for name in _ERROR if (fact := getattr(value, name, None)) is not None}
        return {"error": type(value).__name__, **facts}
    if attrs.has(type(value)):
        return _of_fields(value)
    if isinstance(value, (Mapping, Sequence, set, frozenset)):
        return _of_items(value)
    if isinstance(value, Exception):
        return {"error": type(value).__name__, "message": str(value)}
    return getattr(value, "__name__", type(value).__name__)  # a function, a framer


def _of_items(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if hasattr(value, "_asdict"):
        return _of_items(value._asdict())
    items = [plain(item) for item in value]
    return sorted(items) if isinstance(value, (set, frozenset)) else items


def _of_bytes(value: bytes) -> Any:
    if value[:1] in (b"{", b"["):
        try:
            return json.loads(value)
        except ValueError:
            pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def _of_fields(value: Any) -> dict[str, Any]:
    word = getattr(value, "type", None)
    found: dict[str, Any] = {"type": word} if isinstance(word, str) else {}
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        default: Any = field.default
        if isinstance(default, attrs.Factory) and not default.takes_self:  # type: ignore[arg-type]
            default = default.factory()
        if type(item) is not type(default) or item != default:
            found[field.name] = plain(item)
    return found


def digest(value: Any) -> str:
    """Return eight letters that differ for different JSON, its order included."""
    text = value if isinstance(value, str) else json.dumps(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def shorten(value: Any, depth: int) -> Any:
    """Return JSON in which long strings, and what is deeper than `depth` steps and not small, are digests."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST // 2]}... {len(value)} {digest(value)}"
    if not isinstance(value, (dict, list)):
        return value
    if depth <= 0 and len(text := json.dumps(value)) > _SMALL:
        return f"# {digest(text)}"
    if isinstance(value, list):
        return [shorten(item, depth - 1) for item in value]
    return {name: shorten(item, depth - 1) for name, item in value.items()}


def difference(approved: Any, found: Any, path: Path = ()) -> tuple[Path, Any, Any] | None:
    """Return the first place in which two values differ, with both; a value that is not there is `nothing`."""
    if _equal(approved, found):
        return None
    return next(_differences(approved, found, path), (path, approved, found))


def _differences(approved: Any, found: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    steps: Sequence[tuple[Any, Any, Any]] = ()
    if isinstance(approved, dict) and isinstance(found, dict):
        steps = [
            (name, approved.get(name, _ABSENT), found.get(name, _ABSENT)) for name in dict.fromkeys((*approved, *found))
        ]
    elif isinstance(approved, list) and isinstance(found, list):
        steps = [(at, *both) for at, both in enumerate(zip_longest(approved, found, fillvalue=_ABSENT))]
    for step, one, other in steps:
        if one is _ABSENT or other is _ABSENT:
            yield (*path, step), "nothing" if one is _ABSENT else one, "nothing" if other is _ABSENT else other
        elif (deeper := difference(one, other, (*path, step))) is not None:
            yield deeper


def _equal(one: Any, other: Any) -> bool:
    """True for the same JSON: 1 is not 1.0, and members have an order."""
    return one is other or json.dumps(one) == json.dumps(other)

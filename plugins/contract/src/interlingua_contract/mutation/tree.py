"""The values that cross the seam as trees: their leaves by place, and copies with other leaves."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from interlingua.errors import InterlinguaError
from interlingua.plugins import FrozenDict, freeze_object
from interlingua_contract.json_paths import MARK, Path

Place = tuple[str, ...]
"""A path without indexes: an element of a list is `*`, or `*[kind]` with its type, its role or its class."""

DROP: Any = object()
"""Replaces a value that is removed; a field of a class gets its default."""

USER_JSON = "**"
"""The last step of a place that holds JSON of the user: arguments of a call, a schema, opaque data."""

_USER_FIELDS = frozenset({"input", "input_schema", "data", "raw", "response_schema"})
_NAMED_BY_USERS = frozenset({"properties", "$defs", "definitions", "patternProperties"})
_ERROR_FIELDS = ("message", "status", "request_id", "retryable", "retry_after", "body", "code", "partial")


class Several(list[Any]):
    """Replaces an element of a list by these elements."""


class Impossible(Exception):
    """Raised when a value cannot be built with a change, such as a field without default that is dropped."""


@attrs.frozen
class Node:
    """One value in a tree, with the object or list that holds it."""

    path: Path
    place: Place
    value: Any
    holder: Any


def walk(value: Any, user_json: Sequence[Any] = ()) -> Iterator[Node]:
    """Yield a value and every node below it, containers before what they hold.

    Args:
        value: a hook's result.
        user_json: objects of the user; an equal object is one node.
    """
    yield Node((), (), value, None)
    yield from _walk(value, user_json, (), ())


def _walk(value: Any, user_json: Sequence[Any], path: Path, place: Place) -> Iterator[Node]:
    for step, child in children(value):
        below = (*path, step)
        there = (*place, _general(place, step, child))
        if isinstance(child, Mapping) and (child in user_json or (attrs.has(type(value)) and step in _USER_FIELDS)):
            yield Node(below, (*there, USER_JSON), child, value)
            continue
        yield Node(below, there, child, value)
        yield from _walk(child, user_json, below, there)


def _general(place: Place, step: str | int, child: Any) -> str:
    if isinstance(step, int):
        return f"*[{kind}]" if (kind := kind_of(child)) else "*"
    return "*" if place and place[-1] in _NAMED_BY_USERS else step


def kind_of(value: Any) -> str:
    """Return the word by which elements of a list differ: type or role, of a class its own name; else ""."""
    found = _kind_of(value)
    return "" if MARK.search(found) else found  # of a string that a rule made up


def _kind_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return next((word for name in ("type", "role") if isinstance(word := value.get(name), str)), "")
    if hasattr(value, "_fields") and hasattr(value, "event"):
        return value.event or _kind_of(value.data)
    if attrs.has(type(value)):
        word = getattr(value, "type", None) or getattr(value, "role", None)
        return str(word) if isinstance(word, str) else ""
    return ""


def children(value: Any) -> list[tuple[str | int, Any]]:
    """Return what a value holds, each with its step; nothing for a leaf."""
    if isinstance(value, bytes):
        parsed = parse(value)
        return [] if parsed is None else children(parsed)
    if isinstance(value, Mapping):
        return list(value.items())
    if hasattr(value, "_fields"):  # a NamedTuple
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if isinstance(value, InterlinguaError):
        return [("class", type(value)), *((name, getattr(value, name)) for name in _ERROR_FIELDS)]
    if attrs.has(type(value)):
        return [(field.name, getattr(value, field.name)) for field in attrs.fields(type(value)) if field.init]
    return []


def parse(data: bytes) -> Any:
    """Return the JSON object or list that bytes hold, else None."""
    if data[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(data)
    except ValueError:
        return None


_STYLES: tuple[dict[str, Any], ...] = (
    {"ensure_ascii": False, "separators": (",", ":")},
    {"ensure_ascii": True, "separators": (",", ":")},
    {"ensure_ascii": False},
    {"ensure_ascii": True},
)


def write_like(data: bytes, value: Any) -> bytes:
    """Write JSON in the style of other bytes, so that only what is changed differs.

    Raises:
        Impossible: their style is not known, so more than the change would differ.
    """
    before = json.loads(data)
    for style in _STYLES:
        with suppress(UnicodeEncodeError):
            if json.dumps(before, **style).encode() == data:
                return json.dumps(value, **style).encode()
    raise Impossible("the style of the JSON body is not known")


def with_changes(value: Any, changes: Mapping[Path, Any]) -> Any:
    """Return a copy with other values at these paths; a path may lead to a member that is not there yet.

    Raises:
        Impossible: the value refuses one of them.
    """
    if () in changes:
        return changes[()]
    below: dict[str | int, dict[Path, Any]] = {}
    for path, new in changes.items():
        below.setdefault(path[0], {})[path[1:]] = new
    if isinstance(value, bytes):
        return write_like(value, with_changes(json.loads(value), changes))
    held = dict(children(value))
    new = {step: with_changes(held.get(step), inner) for step, inner in below.items()}
    try:
        return _rebuild(value, held, new)
    except Impossible:
        raise
    except Exception as error:  # a checked class refuses a value in its own way
        raise Impossible(str(error)) from error


def _rebuild(value: Any, held: Mapping[str | int, Any], new: Mapping[str | int, Any]) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        items = [item for item in {**held, **new}.values() if item is not DROP]
        kept = [one for item in items for one in (item if isinstance(item, Several) else (item,))]
        return kept if isinstance(value, list) else tuple(kept)
    if isinstance(value, Mapping):
        members = {str(name): item for name, item in {**held, **new}.items() if item is not DROP}
        return freeze_object(members) if isinstance(value, FrozenDict) else members
    fields = {str(name): default_of(value, str(name)) if item is DROP else item for name, item in new.items()}
    if hasattr(value, "_fields"):
        return value._replace(**fields)
    return _with_facts(value, fields) if isinstance(value, InterlinguaError) else attrs.evolve(value, **fields)


def default_of(value: Any, name: str) -> Any:
    """Return the default of a field.

    Raises:
        Impossible: it has none.
    """
    if isinstance(value, InterlinguaError):
        if name in ("class", "message"):
            raise Impossible(name)
        return type(value).default_retryable if name == "retryable" else None
    if hasattr(value, "_fields"):
        defaults: Mapping[str, Any] = value._field_defaults
        found = defaults.get(name, DROP)
    else:
        default: Any = next(field.default for field in attrs.fields(type(value)) if field.name == name)
        found = DROP if default is attrs.NOTHING else default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            found = DROP if default.takes_self else default.factory()
    if found is DROP:
        raise Impossible(f"{name} has no default")
    return found


def _with_facts(error: InterlinguaError, facts: Mapping[str, Any]) -> InterlinguaError:
    made = copy.copy(error)
    for name, fact in facts.items():
        if name == "class":
            made.__class__ = fact
        else:
            setattr(made, name, fact)
    made.args = (made.message,)
    return made


def format_place(place: Place) -> str:
    """Write a place as a pointer."""
    return "/" + "/".join(step.replace("~", "~0").replace("/", "~1") for step in place)

"""JSON bodies as trees: leaves with their paths, changed copies, and the form in which a leaf is written."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

Path = tuple[str | int, ...]
Shape = tuple[str, ...]

_SHORTEST = 2
"""Letters of a string that other strings may contain by accident."""

MARK = re.compile(r"mk[a-z]\d+q")
"""A mark that appears nowhere else in a generated conversation."""


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar with its path, in document order."""
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        items = _items(path, value)
        if items is None:
            yield path, value
        else:
            waiting += items


def _items(path: Path, value: Any) -> list[tuple[Path, Any]] | None:
    """Return what an object or a list holds, each with its path, the last one first; None for a scalar."""
    if isinstance(value, dict):
        return [((*path, key), item) for key, item in reversed(value.items())]
    if isinstance(value, list):
        return [((*path, at), value[at]) for at in range(len(value) - 1, -1, -1)]
    return None


def texts(value: Any) -> list[str]:
    """Return every string leaf in document order; one that holds JSON is followed by the strings inside it."""
    found: list[str] = []
    for _, leaf in strings(value):
        found.append(leaf)
        if leaf[:1] in ("{", "["):
            with suppress(ValueError):
                found += texts(json.loads(leaf))
    return found


_NAMES = ("type", "id", "role", "object", "event", "name", "kind", "status", "model")


def append_to_texts(value: Any, words: str, within: str, before: str = "") -> Any:
    """Return JSON with words around each string that `within` contains, `words` behind it; names and types stay."""
    for path, leaf in list(strings(value)):
        if len(leaf.strip()) > _SHORTEST and leaf in within and not (path and path[-1] in _NAMES):
            value = with_value(value, path, before + leaf + words)
    return value


def strings(value: Any) -> Iterator[tuple[Path, str]]:
    """Yield every string leaf with its path, in document order."""
    return ((path, leaf) for path, leaf in leaves(value) if isinstance(leaf, str))


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every container with its path, the outermost first."""
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        items = _items(path, value)
        if items is not None:
            yield path, value
            waiting += items


def find_growing_array(short: Any, long: Any) -> Path | None:
    """Return the path of the array that is longer in a second body than in a first one, the outermost; or None."""
    before = dict(nodes(short))
    for path, node in nodes(long):
        was = before.get(path)
        if isinstance(node, list) and isinstance(was, list) and len(node) > len(was):
            return path
    return None


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


def leads_somewhere(value: Any, path: Path) -> bool:
    """True when a value exists at a path of field names."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def with_value(value: Any, path: Path, new: Any) -> Any:
    """Return a copy with another value at a path; what is beside the path is shared."""
    changed = _copy_along(value, path)
    value_at(changed, path[:-1])[path[-1]] = new
    return changed


def without(value: Any, path: Path) -> Any:
    """Return a copy without the value at a path; what is beside the path is shared."""
    changed = _copy_along(value, path)
    del value_at(changed, path[:-1])[path[-1]]
    return changed


def _copy_along(value: Any, path: Path) -> Any:
    """Copy each object and list that the path leads through."""
    changed = copy.copy(value)
    here = changed
    for key in path[:-1]:
        here[key] = copy.copy(here[key])
        here = here[key]
    return changed


def format_path(path: Path) -> str:
    """Write a path for a person."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def shape(body: Any, path: Path) -> Shape:
    """Return a path without indexes, each object's `type` and `role` in it, and what kind of address a URL is."""
    steps: list[str] = []
    value = body
    for key in path:
        if isinstance(value, dict):
            words = [str(value[name]) for name in ("type", "role") if isinstance(value.get(name), str)]
            steps.append("|".join([str(key), *words]))
        value = value[key]
    if isinstance(value, str) and value[:5] in ("data:", "https", "http:"):
        steps.append(value[:4])
    return tuple(steps)


def form(body: Any, path: Path) -> Shape:
    """Return the shape of a leaf and the keys beside it."""
    holder = value_at(body, path[:-1])
    return (*shape(body, path), *(sorted(holder) if isinstance(holder, dict) else ()))


def forms_of(body: Any, word: str) -> set[Shape]:
    """Return the forms of every leaf that contains a word."""
    return {form(body, path) for path, leaf in strings(body) if word in leaf}


def marks_in(body: Any) -> list[str]:
    """Return the marks of generated conversations in every leaf, in order."""
    return [mark for _, leaf in strings(body) for mark in MARK.findall(leaf)]


def find_path(body: Any, text: str) -> Path | None:
    """Return the path of the first leaf that equals this string, else of the first that contains it."""
    exact = (path for path, leaf in strings(body) if leaf == text)
    containing = (path for path, leaf in strings(body) if text in leaf)
    return next(chain(exact, containing), None)


def stands_after(one: Path, other: Path) -> bool:
    """True when the first follows the second in a list that holds both; fields of an object have no order."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return isinstance(left, int) and isinstance(right, int) and left > right
    return False


def words_beside(body: Any, word: str, wanted: Collection[str]) -> set[str]:
    """Return which of the wanted words are in the smallest part of a body that has both `word` and one of them."""
    place = next((path for path, leaf in strings(body) if word in leaf), ())
    for depth in range(len(place) - 1, -1, -1):
        leaves_there = texts(value_at(body, place[:depth]))
        if found := {one for one in wanted if any(one in leaf for leaf in leaves_there)}:
            return found
    return set()

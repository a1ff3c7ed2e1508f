"""JSON bodies as trees: their leaves in order, with paths, and changed copies of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar with its path, in document order."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
        return
    for key, item in items:
        yield from leaves(item, (*path, key))


def texts(value: Any) -> list[str]:
    """Return every string leaf in document order; one that holds JSON is followed by the strings inside it."""
    found: list[str] = []
    for _, leaf in leaves(value):
        if isinstance(leaf, str):
            found.append(leaf)
            if leaf[:1] in ("{", "["):
                found += _inside(leaf)
    return found


def _inside(text: str) -> list[str]:
    try:
        inner = json.loads(text)
    except ValueError:
        return []
    return texts(inner) if isinstance(inner, (dict, list)) else []


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every container with its path, the outermost first."""
    if isinstance(value, (dict, list)):
        yield path, value
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(item, (*path, key))


def grown_path(short: Any, long: Any) -> Path | None:
    """Return the path of the array that is longer in a second body than in a first one, the outermost; or None."""
    before = dict(nodes(short))
    for path, node in nodes(long):
        was = before.get(path)
        if isinstance(node, list) and isinstance(was, list) and len(node) > len(was):
            return path
    return None


def at(value: Any, path: Path) -> Any:
    """Return what stands at a path."""
    for key in path:
        value = value[key]
    return value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Return a copy with another value at a path."""
    changed = copy.deepcopy(value)
    at(changed, path[:-1])[path[-1]] = new
    return changed


def removed(value: Any, path: Path) -> Any:
    """Return a copy without what stands at a path."""
    changed = copy.deepcopy(value)
    del at(changed, path[:-1])[path[-1]]
    return changed


def shown(path: Path) -> str:
    """Write a path for a person."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")

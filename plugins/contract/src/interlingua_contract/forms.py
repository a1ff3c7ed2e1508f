"""The form in which something stands in a request: where, in an object of which type and role, beside which keys.

Never knows a wire: two leaves of one form are told apart only by their order.
The rules come in.
"""

from __future__ import annotations

from typing import Any

from interlingua_contract.json_paths import Path, at, leaves
from interlingua_contract.strategies.conversations import MARK

Shape = tuple[str, ...]


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
    holder = at(body, path[:-1])
    return (*shape(body, path), *(sorted(holder) if isinstance(holder, dict) else ()))


def forms_of(body: Any, word: str) -> set[Shape]:
    """Return the forms of every leaf that contains a word."""
    return {form(body, path) for path, leaf in leaves(body) if isinstance(leaf, str) and word in leaf}


def marks_in(body: Any) -> list[str]:
    """Return the marks of generated conversations in every leaf, in the order in which they stand."""
    return [mark for _, leaf in leaves(body) if isinstance(leaf, str) for mark in MARK.findall(leaf)]


def place_of(body: Any, text: str) -> Path | None:
    """Return the path of the first leaf that is this text or, where none is, contains it."""
    found = [path for path, leaf in leaves(body) if leaf == text]
    found = found or [path for path, leaf in leaves(body) if isinstance(leaf, str) and text in leaf]
    return found[0] if found else None


def overtakes(one: Path, other: Path) -> bool:
    """True when the first stands behind the second in a list that holds both; fields of an object have no order."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return isinstance(left, int) and isinstance(right, int) and left > right
    return False

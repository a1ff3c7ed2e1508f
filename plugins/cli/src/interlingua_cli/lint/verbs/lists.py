"""Verbs on several values: how many, whether two are the same, and in which order elements stand.

Never pairs calls with results (`calls` does). An element is judged by a filter path such as `[role=user]`.
The table of verbs comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from interlingua_cli.lint.paths import Hit, below, parse_path
from interlingua_cli.lint.rule import Check, Fault, Seen
from interlingua_cli.lint.verbs.table import bounds, shown, texts, verb


@verb("count")
def count(given: Any) -> Check:
    """So many values are selected in all."""
    least, most = bounds(given)

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        found = [hit for hit in hits if hit.value is not None]
        if not least <= len(found) <= most:
            place = found[int(most)].path if len(found) > most else ""
            yield Fault(place, f"there are {len(found)}")

    return check


@verb("unique")
def unique(given: Any) -> Check:
    """No two of the values that this path leads to, from one place, are the same."""
    inside = parse_path(given)

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            first: dict[str, str] = {}
            for found in inside.select(hit.value, hit.path):
                same = first.setdefault(repr(found.value), found.path)
                if same != found.path:
                    yield Fault(found.path, f"{shown(found.value)} is at {same} already")

    return check


@verb("body_bytes")
def body_bytes(given: Any) -> Check:
    """The body as it is sent has so many bytes."""
    least, most = bounds(given)

    def check(_hits: Sequence[Hit], seen: Seen) -> Iterator[Fault]:
        if not least <= seen.size <= most:
            yield Fault("", f"it has {seen.size}")

    return check


@verb("first")
def first(given: Any) -> Check:
    """The list's first element passes the filter."""
    return _end(given, 0)


@verb("last")
def last(given: Any) -> Check:
    """The list's last element passes the filter."""
    return _end(given, -1)


def _end(given: Any, at: int) -> Check:
    fits = parse_path(given)

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, list) and hit.value and not fits.found(hit.value[at]):
                yield Fault(below(hit.path, at % len(hit.value)), f"it is {_sketch(hit.value[at])}")

    return check


@verb("leading")
def leading(given: Any) -> Check:
    """In the list, elements that pass the filter stand before all that do not."""
    fits = parse_path(given)

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            passed = [fits.found(element) for element in hit.value] if isinstance(hit.value, list) else []
            late = next((at for at, (before, after) in enumerate(pairwise(passed), 1) if after and not before), None)
            if late is not None:
                yield Fault(below(hit.path, late), f"it stands behind {_sketch(hit.value[late - 1])}")

    return check


@verb("followed_by")
def followed_by(given: Any) -> Check:
    """In the list, after `each` element that passes the first filter comes one that passes `by`, or the end.

    `by` may be several filters, of which one is enough.
    """
    if not isinstance(given, dict) or given.keys() != {"each", "by"}:
        raise ValueError('expected {each = "[…]", by = "[…]"}')
    each, by = parse_path(given["each"]), [parse_path(text) for text in texts(given["by"])]

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            for at, (one, after) in enumerate(pairwise(hit.value if isinstance(hit.value, list) else [])):
                if each.found(one) and not any(path.found(after) for path in by):
                    yield Fault(below(hit.path, at + 1), f"{_sketch(after)} follows {_sketch(one)}")

    return check


def _sketch(element: Any) -> str:
    """Name an element by what such elements are known by."""
    if isinstance(element, dict):
        for key in ("role", "type"):
            if key in element:
                return f"{key} {element[key]}"
    return shown(element)

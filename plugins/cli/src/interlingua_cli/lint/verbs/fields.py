"""Verbs on an object's fields: which must be there, which may not, which exclude each other.

Never looks at what a field holds; null counts as absence, as the services read it.
The table of verbs comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interlingua_cli.lint.paths import Hit, below
from interlingua_cli.lint.rule import Check, Fault, Seen
from interlingua_cli.lint.verbs.table import texts, verb


def _each(faults: Callable[[str, dict[str, Any]], Iterator[Fault]]) -> Check:
    """Make a check of one that looks at an object and the names of its fields that are not null."""

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, dict):
                yield from faults(hit.path, {name: value for name, value in hit.value.items() if value is not None})

    return check


@verb("requires")
def requires(given: Any) -> Check:
    """Every one of these fields is there."""
    names = texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in names:
            if name not in there:
                yield Fault(below(path, name), f"{name} is missing")

    return _each(faults)


@verb("forbids")
def forbids(given: Any) -> Check:
    """None of these fields is there."""
    names = texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in names:
            if name in there:
                yield Fault(below(path, name), f"{name} is there")

    return _each(faults)


@verb("allows")
def allows(given: Any) -> Check:
    """No field but these is there."""
    names = frozenset(texts(given))

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in there:
            if name not in names:
                yield Fault(below(path, name), f"{name} is not a field of it")

    return _each(faults)


@verb("exactly_one_of")
def exactly_one_of(given: Any) -> Check:
    """One of these fields is there, and no second one."""
    names = texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        found = [name for name in names if name in there]
        if len(found) != 1:
            yield Fault(path, f"there is {' and '.join(found) or 'none'}")

    return _each(faults)


@verb("at_most_one_of")
def at_most_one_of(given: Any) -> Check:
    """No two of these fields are there."""
    names = texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        found = [name for name in names if name in there]
        if len(found) > 1:
            yield Fault(path, f"there are {' and '.join(found)}")

    return _each(faults)

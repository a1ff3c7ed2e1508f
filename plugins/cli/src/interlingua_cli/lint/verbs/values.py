"""Verbs on one value: its type, the words and numbers it may be, its length, its pattern.

Never looks at another value, but for the two that hold one against what another path leads to.
The table of verbs comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from interlingua_cli.lint.paths import Hit, parse_path
from interlingua_cli.lint.rule import Check, Fault, Seen
from interlingua_cli.lint.verbs.table import bounds, expression, shown, texts, verb

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _each(wrong: Callable[[Any], str | None]) -> Check:
    """Make a check of a function that says what is wrong with one value, or nothing."""

    def check(hits: Sequence[Hit], _seen: Seen) -> Iterator[Fault]:
        for hit in hits:
            found = wrong(hit.value)
            if found is not None:
                yield Fault(hit.path, found)

    return check


@verb("is")
def is_type(given: Any) -> Check:
    """The value has one of these types."""
    names = texts(given)
    unknown = [name for name in names if name not in _TYPES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a type; types are {', '.join(_TYPES)}")
    return _each(lambda value: None if any(_TYPES[name](value) for name in names) else f"it is {shown(value)}")


@verb("one_of")
def one_of(given: Any) -> Check:
    """The value is one of these."""
    if not isinstance(given, list) or not given:
        raise ValueError("expected a list of values")
    return _each(lambda value: None if value is None or value in given else f"it is {shown(value)}")


@verb("between")
def between(given: Any) -> Check:
    """The number is not below the first and not above the second."""
    least, most = bounds(given)
    return _each(lambda value: f"it is {value}" if _TYPES["number"](value) and not least <= value <= most else None)


@verb("strictly_between")
def strictly_between(given: Any) -> Check:
    """The number is above the first and below the second."""
    low, high = bounds(given)
    return _each(lambda value: f"it is {value}" if _TYPES["number"](value) and not low < value < high else None)


@verb("length")
def length(given: Any) -> Check:
    """The text, list or object is so long: characters, elements, fields."""
    least, most = bounds(given)

    def wrong(value: Any) -> str | None:
        if not isinstance(value, (str, list, dict)) or least <= len(value) <= most:
            return None
        return f"it has {len(value)}"

    return _each(wrong)


@verb("matches")
def matches(given: Any) -> Check:
    """The whole text fits the expression."""
    pattern = expression(given)
    return _each(
        lambda value: f"it is {shown(value)}" if isinstance(value, str) and not pattern.fullmatch(value) else None
    )


@verb("lacks_match")
def lacks_match(given: Any) -> Check:
    """The expression is found nowhere in the text."""
    pattern = expression(given)

    def wrong(value: Any) -> str | None:
        found = pattern.search(value) if isinstance(value, str) else None
        return f"there is {shown(found[0])}" if found else None

    return _each(wrong)


@verb("among")
def among(given: Any) -> Check:
    """The value is one of those this path leads to."""
    others = parse_path(given)

    def check(hits: Sequence[Hit], seen: Seen) -> Iterator[Fault]:
        known = [hit.value for hit in others.select(seen.body)]
        for hit in hits:
            if hit.value not in known:
                yield Fault(hit.path, f"it is {shown(hit.value)}")

    return check


@verb("less_than")
def less_than(given: Any) -> Check:
    """The number is smaller than the one this path leads to, where there is one."""
    other = parse_path(given)

    def check(hits: Sequence[Hit], seen: Seen) -> Iterator[Fault]:
        limits = [hit for hit in other.select(seen.body) if _TYPES["number"](hit.value)]
        for hit in hits:
            for limit in limits:
                if _TYPES["number"](hit.value) and hit.value >= limit.value:
                    yield Fault(hit.path, f"it is {hit.value} and {limit.path} is {limit.value}")

    return check

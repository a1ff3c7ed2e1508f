"""The checks that rules use, by verb: on a value, an object's fields, lists, and calls with their results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from interlingua_cli.lint.rules import Check, Fault, Hit, Path, RequestFacts, join_path, parse_path

CheckMaker = Callable[[Any], Check]
_Maker = TypeVar("_Maker", bound=CheckMaker)
VERBS: dict[str, CheckMaker] = {}


def verb(name: str) -> Callable[[_Maker], _Maker]:
    """Register a function that makes a check of a verb's parameter; it raises ValueError for one it cannot use."""

    def register(make: _Maker) -> _Maker:
        VERBS[name] = make
        return make

    return register


def read_texts(given: Any) -> tuple[str, ...]:
    """Return a parameter that is one text or a list of texts."""
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not found or not all(isinstance(item, str) for item in found):
        raise ValueError("expected a text or a list of texts")
    return tuple(found)


def read_bounds(given: Any) -> tuple[float, float]:
    """Return a parameter `[least, most]`."""
    if (
        not isinstance(given, list)
        or len(given) != 2
        or not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in given)
        or given[0] > given[1]
    ):
        raise ValueError("expected two numbers, [least, most]; inf is allowed")
    return given[0], given[1]


def read_pattern(given: Any) -> re.Pattern[str]:
    """Return a parameter that is a regular expression."""
    if not isinstance(given, str):
        raise ValueError("expected a regular expression")
    try:
        return re.compile(given)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def shorten(value: Any) -> str:
    """Write a value for a finding, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _check_values(wrong: Callable[[Any], str | None]) -> Check:
    """Make a check of a function that returns what is wrong with one value, or None."""

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            found = wrong(hit.value)
            if found is not None:
                yield Fault(hit.path, found)

    return check


@verb("is")
def is_type(given: Any) -> Check:
    """The value has one of these types."""
    names = read_texts(given)
    unknown = [name for name in names if name not in _TYPES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a type; types are {', '.join(_TYPES)}")
    return _check_values(
        lambda value: None if any(_TYPES[name](value) for name in names) else f"it is {shorten(value)}"
    )


@verb("one_of")
def one_of(given: Any) -> Check:
    """The value is one of these."""
    if not isinstance(given, list) or not given:
        raise ValueError("expected a list of values")
    return _check_values(lambda value: None if value is None or value in given else f"it is {shorten(value)}")


@verb("between")
def between(given: Any) -> Check:
    """The number is not below the first and not above the second."""
    least, most = read_bounds(given)
    return _check_values(
        lambda value: f"it is {value}" if _TYPES["number"](value) and not least <= value <= most else None
    )


@verb("strictly_between")
def strictly_between(given: Any) -> Check:
    """The number is above the first and below the second."""
    low, high = read_bounds(given)
    return _check_values(lambda value: f"it is {value}" if _TYPES["number"](value) and not low < value < high else None)


@verb("length")
def length(given: Any) -> Check:
    """The text, list or object is so long: characters, elements, fields."""
    least, most = read_bounds(given)

    def wrong(value: Any) -> str | None:
        if not isinstance(value, (str, list, dict)) or least <= len(value) <= most:
            return None
        return f"it has {len(value)}"

    return _check_values(wrong)


@verb("matches")
def matches(given: Any) -> Check:
    """The whole text fits the expression."""
    pattern = read_pattern(given)
    return _check_values(
        lambda value: f"it is {shorten(value)}" if isinstance(value, str) and not pattern.fullmatch(value) else None
    )


@verb("lacks_match")
def lacks_match(given: Any) -> Check:
    """The expression is found nowhere in the text."""
    pattern = read_pattern(given)

    def wrong(value: Any) -> str | None:
        found = pattern.search(value) if isinstance(value, str) else None
        return f"there is {shorten(found[0])}" if found else None

    return _check_values(wrong)


@verb("among")
def among(given: Any) -> Check:
    """The value is one of those this path leads to."""
    others = parse_path(given)

    def check(hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
        known = [hit.value for hit in others.select(request.body)]
        for hit in hits:
            if hit.value not in known:
                yield Fault(hit.path, f"it is {shorten(hit.value)}")

    return check


@verb("less_than")
def less_than(given: Any) -> Check:
    """The number is smaller than the one this path leads to, where there is one."""
    other = parse_path(given)

    def check(hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
        limits = [hit for hit in other.select(request.body) if _TYPES["number"](hit.value)]
        for hit in hits:
            for limit in limits:
                if _TYPES["number"](hit.value) and hit.value >= limit.value:
                    yield Fault(hit.path, f"it is {hit.value} and {limit.path} is {limit.value}")

    return check


def _check_fields(faults: Callable[[str, dict[str, Any]], Iterator[Fault]]) -> Check:
    """Make a check of a function that looks at an object's fields that are not null; services read null as absence."""

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, dict):
                yield from faults(hit.path, {name: value for name, value in hit.value.items() if value is not None})

    return check


@verb("requires")
def requires(given: Any) -> Check:
    """Every one of these fields is there."""
    names = read_texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in names:
            if name not in there:
                yield Fault(join_path(path, name), f"{name} is missing")

    return _check_fields(faults)


@verb("forbids")
def forbids(given: Any) -> Check:
    """None of these fields is there."""
    names = read_texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in names:
            if name in there:
                yield Fault(join_path(path, name), f"{name} is there")

    return _check_fields(faults)


@verb("allows")
def allows(given: Any) -> Check:
    """No field but these is there."""
    names = frozenset(read_texts(given))

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        for name in there:
            if name not in names:
                yield Fault(join_path(path, name), f"{name} is not a field of it")

    return _check_fields(faults)


@verb("exactly_one_of")
def exactly_one_of(given: Any) -> Check:
    """One of these fields is there, and no second one."""
    names = read_texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        found = [name for name in names if name in there]
        if len(found) != 1:
            yield Fault(path, f"there is {' and '.join(found) or 'none'}")

    return _check_fields(faults)


@verb("at_most_one_of")
def at_most_one_of(given: Any) -> Check:
    """No two of these fields are there."""
    names = read_texts(given)

    def faults(path: str, there: dict[str, Any]) -> Iterator[Fault]:
        found = [name for name in names if name in there]
        if len(found) > 1:
            yield Fault(path, f"there are {' and '.join(found)}")

    return _check_fields(faults)


@verb("count")
def count(given: Any) -> Check:
    """So many values are selected in all."""
    least, most = read_bounds(given)

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        found = [hit for hit in hits if hit.value is not None]
        if not least <= len(found) <= most:
            place = found[int(most)].path if len(found) > most else ""
            yield Fault(place, f"there are {len(found)}")

    return check


@verb("unique")
def unique(given: Any) -> Check:
    """No two of the values that this path leads to, from one place, are the same."""
    inside = parse_path(given)

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            first: dict[str, str] = {}
            for found in inside.select(hit.value, hit.path):
                same = first.setdefault(repr(found.value), found.path)
                if same != found.path:
                    yield Fault(found.path, f"{shorten(found.value)} is at {same} already")

    return check


@verb("body_bytes")
def body_bytes(given: Any) -> Check:
    """The body as it is sent has so many bytes."""
    least, most = read_bounds(given)

    def check(_hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
        if not least <= request.size <= most:
            yield Fault("", f"it has {request.size}")

    return check


@verb("first")
def first(given: Any) -> Check:
    """The list's first element passes the filter."""
    return _check_end(given, 0)


@verb("last")
def last(given: Any) -> Check:
    """The list's last element passes the filter."""
    return _check_end(given, -1)


def _check_end(given: Any, at: int) -> Check:
    fits = parse_path(given)

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, list) and hit.value and not fits.found(hit.value[at]):
                yield Fault(join_path(hit.path, at % len(hit.value)), f"it is {_describe(hit.value[at])}")

    return check


@verb("leading")
def leading(given: Any) -> Check:
    """In the list, elements that pass the filter stand before all that do not."""
    fits = parse_path(given)

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            passed = [fits.found(element) for element in hit.value] if isinstance(hit.value, list) else []
            late = next((at for at, (before, after) in enumerate(pairwise(passed), 1) if after and not before), None)
            if late is not None:
                yield Fault(join_path(hit.path, late), f"it stands behind {_describe(hit.value[late - 1])}")

    return check


@verb("followed_by")
def followed_by(given: Any) -> Check:
    """In the list, after `each` element that passes the first filter comes one that passes `by`, or the end.

    `by` may be several filters, of which one is enough.
    """
    if not isinstance(given, dict) or given.keys() != {"each", "by"}:
        raise ValueError('expected {each = "[…]", by = "[…]"}')
    each, by = parse_path(given["each"]), [parse_path(text) for text in read_texts(given["by"])]

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            for at, (one, after) in enumerate(pairwise(hit.value if isinstance(hit.value, list) else [])):
                if each.found(one) and not any(path.found(after) for path in by):
                    yield Fault(join_path(hit.path, at + 1), f"{_describe(after)} follows {_describe(one)}")

    return check


def _describe(element: Any) -> str:
    """Name an element by what such elements are known by."""
    if isinstance(element, dict):
        for key in ("role", "type"):
            if key in element:
                return f"{key} {element[key]}"
    return shorten(element)


_REQUIRED = {"calls", "results"}


@verb("answered")
def answered(given: Any) -> Check:
    """In the list, every call has its result and every result its call.

    `calls` and `results` lead from an element to the ids. With `within`, the results stand in the elements right
    behind the call that pass this filter; without it anywhere behind the call. With `merges`, elements that hold calls
    and stand side by side count as one.
    """
    if not isinstance(given, dict) or not _REQUIRED <= given.keys() <= _REQUIRED | {"within", "merges"}:
        raise ValueError('expected {calls = "…", results = "…"} and perhaps within = "[…]" and merges = true')
    calls, results = parse_path(given["calls"]), parse_path(given["results"])
    within = parse_path(given["within"]) if "within" in given else None
    merges = bool(given.get("merges"))

    def check(hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
        for hit in hits:
            if isinstance(hit.value, list):
                for turn in _split_turns(hit, within, merges):
                    yield from _find_unpaired(turn, calls, results)

    return check


def _split_turns(hit: Hit, within: Path | None, merges: bool) -> Iterator[list[Hit]]:
    """Cut the list into turns: an element with all that pass `within` behind it; the whole list without it."""
    turn: list[Hit] = []
    for at, element in enumerate(hit.value):
        behind = within is None or within.found(element) or (merges and turn and not within.found(turn[-1].value))
        if turn and not behind:
            yield turn
            turn = []
        turn.append(Hit(join_path(hit.path, at), element))
    yield turn


def _find_unpaired(turn: Sequence[Hit], calls: Path, results: Path) -> Iterator[Fault]:
    """Yield results without a call before them, then calls without a result behind them."""
    waiting: Counter[str] = Counter()
    places: dict[str, str] = {}
    for element in turn:
        for result in _select_ids(results, element):
            if not waiting[str(result.value)]:
                yield Fault(result.path, f"{shorten(result.value)} answers no call")
            else:
                waiting[str(result.value)] -= 1
        for call in _select_ids(calls, element):
            waiting[str(call.value)] += 1
            places[str(call.value)] = call.path
    for name in +waiting:
        yield Fault(places[name], f"{name!r} has no result")


def _select_ids(path: Path, element: Hit) -> Iterator[Hit]:
    """Yield the ids of an element; calls that the service makes and answers by itself have none."""
    return (hit for hit in path.select(element.value, element.path) if hit.value is not None)

"""The checks that rules use, by verb: on a value, an object's fields, lists, calls with their results, and schemas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import attrs

from interlingua.types import follow_pointer
from interlingua_cli.lint.rules import Check, Fault, Hit, Path, RequestFacts, join_path, parse_path

_Parameter = TypeVar("_Parameter")
_VerbCheck = Callable[[_Parameter, Sequence[Hit], RequestFacts], Iterator[Fault]]
_HitCheck = Callable[[_Parameter, Hit], Iterator[Fault]]
VERBS: dict[str, Callable[[Any], Check]] = {}


def verb(name: str, read: Callable[[Any], _Parameter]) -> Callable[[_VerbCheck[_Parameter]], _VerbCheck[_Parameter]]:
    """Register a check of all selected values; `read` reads its parameter, or raises ValueError."""

    def register(check: _VerbCheck[_Parameter]) -> _VerbCheck[_Parameter]:
        def make(given: Any) -> Check:
            return partial(check, read(given))

        make.__doc__ = check.__doc__
        VERBS[name] = make
        return check

    return register


def hit_verb(
    name: str, read: Callable[[Any], _Parameter], kinds: type | tuple[type, ...] = object
) -> Callable[[_HitCheck[_Parameter]], _HitCheck[_Parameter]]:
    """Register a check of one value at a time; values of other kinds pass."""

    def register(check: _HitCheck[_Parameter]) -> _HitCheck[_Parameter]:
        @wraps(check)
        def check_hits(given: _Parameter, hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
            for hit in hits:
                if isinstance(hit.value, kinds):
                    yield from check(given, hit)

        verb(name, read)(check_hits)
        return check

    return register


def read_texts(given: Any) -> tuple[str, ...]:
    """Return a parameter that is one string or a list of strings."""
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not found or not all(isinstance(item, str) for item in found):
        raise ValueError("expected a string or a list of strings")
    return tuple(found)


def read_bounds(given: Any) -> tuple[float, float]:
    """Return a parameter `[least, most]`."""
    if not isinstance(given, list) or len(given) != 2 or not all(map(is_number, given)) or given[0] > given[1]:
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


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _read_types(given: Any) -> tuple[str, ...]:
    names = read_texts(given)
    unknown = [name for name in names if name not in _TYPES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a type; types are {', '.join(_TYPES)}")
    return names


@hit_verb("is", _read_types)
def is_type(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The value has one of these types."""
    if not any(_TYPES[name](hit.value) for name in names):
        yield Fault(hit.path, f"it is {shorten(hit.value)}")


def _read_values(given: Any) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise ValueError("expected a list of values")
    return given


@hit_verb("one_of", _read_values)
def one_of(values: Sequence[Any], hit: Hit) -> Iterator[Fault]:
    """The value is one of these."""
    if hit.value is not None and hit.value not in values:
        yield Fault(hit.path, f"it is {shorten(hit.value)}")


@hit_verb("between", read_bounds)
def between(bounds: tuple[float, float], hit: Hit) -> Iterator[Fault]:
    """The number is not below the first and not above the second."""
    if is_number(hit.value) and not bounds[0] <= hit.value <= bounds[1]:
        yield Fault(hit.path, f"it is {hit.value}")


@hit_verb("strictly_between", read_bounds)
def strictly_between(bounds: tuple[float, float], hit: Hit) -> Iterator[Fault]:
    """The number is above the first and below the second."""
    if is_number(hit.value) and not bounds[0] < hit.value < bounds[1]:
        yield Fault(hit.path, f"it is {hit.value}")


@hit_verb("length", read_bounds, (str, list, dict))
def length(bounds: tuple[float, float], hit: Hit) -> Iterator[Fault]:
    """The text, list or object is so long: characters, elements, fields."""
    if not bounds[0] <= len(hit.value) <= bounds[1]:
        yield Fault(hit.path, f"it has {len(hit.value)}")


@hit_verb("matches", read_pattern, str)
def matches(pattern: re.Pattern[str], hit: Hit) -> Iterator[Fault]:
    """The whole string matches the expression."""
    if not pattern.fullmatch(hit.value):
        yield Fault(hit.path, f"it is {shorten(hit.value)}")


@hit_verb("lacks_match", read_pattern, str)
def lacks_match(pattern: re.Pattern[str], hit: Hit) -> Iterator[Fault]:
    """The expression matches nowhere in the string."""
    if found := pattern.search(hit.value):
        yield Fault(hit.path, f"there is {shorten(found[0])}")


@verb("among", parse_path)
def among(others: Path, hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
    """The value is one of the values at this path."""
    values = [hit.value for hit in request.select(others)]
    for hit in hits:
        if hit.value not in values:
            yield Fault(hit.path, f"it is {shorten(hit.value)}")


@verb("less_than", parse_path)
def less_than(other: Path, hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
    """The number is smaller than the number at this path, if there is one."""
    limits = [hit for hit in request.select(other) if is_number(hit.value)]
    for hit in hits:
        for limit in limits:
            if is_number(hit.value) and hit.value >= limit.value:
                yield Fault(hit.path, f"it is {hit.value} and {limit.path} is {limit.value}")


# Fields: services read null as absence.


@hit_verb("requires", read_texts, dict)
def requires(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The object has all of these fields."""
    for name in names:
        if hit.value.get(name) is None:
            yield Fault(join_path(hit.path, name), f"{name} is missing")


@hit_verb("forbids", read_texts, dict)
def forbids(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The object has no field of these names."""
    for name in names:
        if hit.value.get(name) is not None:
            yield Fault(join_path(hit.path, name), f"{name} is there")


@hit_verb("allows", read_texts, dict)
def allows(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The object has no other fields."""
    for name, value in hit.value.items():
        if value is not None and name not in names:
            yield Fault(join_path(hit.path, name), f"{name} is not a field of it")


@hit_verb("exactly_one_of", read_texts, dict)
def exactly_one_of(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The object has exactly one of these fields."""
    found = [name for name in names if hit.value.get(name) is not None]
    if len(found) != 1:
        yield Fault(hit.path, f"there is {' and '.join(found) or 'none'}")


@hit_verb("at_most_one_of", read_texts, dict)
def at_most_one_of(names: Sequence[str], hit: Hit) -> Iterator[Fault]:
    """The object has at most one of these fields."""
    found = [name for name in names if hit.value.get(name) is not None]
    if len(found) > 1:
        yield Fault(hit.path, f"there are {' and '.join(found)}")


@verb("count", read_bounds)
def count(bounds: tuple[float, float], hits: Sequence[Hit], _request: RequestFacts) -> Iterator[Fault]:
    """So many values are selected in all."""
    least, most = bounds
    found = [hit for hit in hits if hit.value is not None]
    if not least <= len(found) <= most:
        yield Fault(found[int(most)].path if len(found) > most else "", f"there are {len(found)}")


@hit_verb("unique", parse_path)
def unique(inside: Path, hit: Hit) -> Iterator[Fault]:
    """No two of the values that this path leads to, from one place, are the same."""
    places: dict[str, str] = {}
    for found in inside.select(hit.value, hit.path):
        same = places.setdefault(repr(found.value), found.path)
        if same != found.path:
            yield Fault(found.path, f"{shorten(found.value)} is at {same} already")


@verb("body_bytes", read_bounds)
def body_bytes(bounds: tuple[float, float], _hits: Sequence[Hit], request: RequestFacts) -> Iterator[Fault]:
    """The size of the body as sent, in bytes, is within these bounds."""
    if not bounds[0] <= request.size <= bounds[1]:
        yield Fault("", f"it has {request.size}")


@hit_verb("first", parse_path, list)
def first(fits: Path, hit: Hit) -> Iterator[Fault]:
    """The list's first element passes the filter."""
    if hit.value and not fits.found(hit.value[0]):
        yield Fault(join_path(hit.path, 0), f"it is {_describe(hit.value[0])}")


@hit_verb("last", parse_path, list)
def last(fits: Path, hit: Hit) -> Iterator[Fault]:
    """The list's last element passes the filter."""
    if hit.value and not fits.found(hit.value[-1]):
        yield Fault(join_path(hit.path, len(hit.value) - 1), f"it is {_describe(hit.value[-1])}")


@hit_verb("leading", parse_path, list)
def leading(fits: Path, hit: Hit) -> Iterator[Fault]:
    """In the list, elements that pass the filter precede all others."""
    passed = [fits.found(element) for element in hit.value]
    late = next((at for at, (before, after) in enumerate(pairwise(passed), 1) if after and not before), None)
    if late is not None:
        yield Fault(join_path(hit.path, late), f"it follows {_describe(hit.value[late - 1])}")


def _read_sequence(given: Any) -> tuple[Path, list[Path]]:
    if not isinstance(given, dict) or given.keys() != {"each", "by"}:
        raise ValueError('expected {each = "[…]", by = "[…]"}')
    return parse_path(given["each"]), [parse_path(text) for text in read_texts(given["by"])]


@hit_verb("followed_by", _read_sequence, list)
def followed_by(sequence: tuple[Path, list[Path]], hit: Hit) -> Iterator[Fault]:
    """In the list, after `each` element that passes the first filter comes one that passes `by`, or the end.

    `by` may be several filters, of which one is enough.
    """
    each, by = sequence
    for at, (one, after) in enumerate(pairwise(hit.value), 1):
        if each.found(one) and not any(path.found(after) for path in by):
            yield Fault(join_path(hit.path, at), f"{_describe(after)} follows {_describe(one)}")


def _describe(element: Any) -> str:
    """Describe an element by its role or type, if it has one."""
    if isinstance(element, dict):
        for key in ("role", "type"):
            if key in element:
                return f"{key} {element[key]}"
    return shorten(element)


class _Pairing(NamedTuple):
    """The parameter of `answered`."""

    calls: Path
    results: Path
    within: Path | None
    merges: bool


def _read_pairing(given: Any) -> _Pairing:
    required = {"calls", "results"}
    if not isinstance(given, dict) or not required <= given.keys() <= required | {"within", "merges"}:
        raise ValueError('expected {calls = "…", results = "…"} and perhaps within = "[…]" and merges = true')
    within = parse_path(given["within"]) if "within" in given else None
    return _Pairing(parse_path(given["calls"]), parse_path(given["results"]), within, bool(given.get("merges")))


@hit_verb("answered", _read_pairing, list)
def answered(pairing: _Pairing, hit: Hit) -> Iterator[Fault]:
    """In the list, every call has its result and every result its call.

    `calls` and `results` lead from an element to the ids. With `within`, the results are in the elements directly after
    the call that pass this filter; without it, anywhere after the call. With `merges`, adjacent elements with calls
    count as one.
    """
    for turn in _split_turns(hit, pairing.within, pairing.merges):
        yield from _find_unpaired(turn, pairing.calls, pairing.results)


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


_DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", *_DEFINITIONS, "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_ONES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


@attrs.frozen(kw_only=True)
class Subset:
    """The part of JSON Schema that a service accepts in the schemas of tools and answers."""

    root: str | None = None  # type that the root must have
    # the only ones allowed, where named
    keywords: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    never: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)  # keywords that are refused
    # the only values of `format` allowed, where named
    formats: frozenset[str] | None = attrs.field(default=None, converter=attrs.converters.optional(frozenset))
    closed: bool = False  # every object has `additionalProperties: false`
    all_required: bool = False  # every property is in `required`
    complete: bool = False  # every object has `properties` and every array `items`
    acyclic: bool = False  # no definition leads back to itself
    resolved: bool = False  # every reference leads to a part of the schema itself
    booleans: bool = True  # `true` and `false` may stand for a schema
    # keywords that are refused at the root
    root_never: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)
    # expression for the whole name of every property
    names: re.Pattern[str] | None = attrs.field(default=None, converter=attrs.converters.optional(re.compile))


def _read_subset(given: Any) -> Subset:
    names = {field.name for field in attrs.fields(Subset)}
    if not isinstance(given, dict) or not given or given.keys() - names:
        raise ValueError(f"expected a table with some of {', '.join(sorted(names))}")
    for name in given.keys() & {"keywords", "never", "formats", "root_never"}:
        read_texts(given[name])
    if "names" in given:
        read_pattern(given["names"])
    return Subset(**given)


@hit_verb("schema", _read_subset)
def schema(subset: Subset, hit: Hit) -> Iterator[Fault]:
    """The schema keeps to this subset."""
    yield from _check_root(hit, subset)
    for place, node in _walk(hit.path, hit.value):
        yield from _check_node(place, node, subset)


def _check_root(hit: Hit, subset: Subset) -> Iterator[Fault]:
    if not isinstance(hit.value, dict):
        if subset.root or not subset.booleans:
            yield Fault(hit.path, f"it is {shorten(hit.value)}")
        return
    if subset.root and hit.value.get("type") != subset.root:
        yield Fault(join_path(hit.path, "type"), f"the root's type is {shorten(hit.value.get('type'))}")
    for keyword in sorted(subset.root_never & hit.value.keys()):
        yield Fault(join_path(hit.path, keyword), f"there is {keyword} at the root")
    if subset.acyclic and (cycle := _find_cycle(hit.value)):
        yield Fault(hit.path, f"{cycle} leads back to itself")
    if subset.resolved:
        for reference in sorted(_find_references(hit.value)):
            if not reference.startswith("#") or follow_pointer(hit.value, reference[1:]) is None:
                yield Fault(hit.path, f"{reference} leads nowhere in it")


def _walk(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    yield path, node
    if not isinstance(node, dict):
        return
    for keyword in _MAPS:
        if isinstance(node.get(keyword), dict):
            for name, child in node[keyword].items():
                yield from _walk(join_path(join_path(path, keyword), name), child)
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list):
            for at, child in enumerate(node[keyword]):
                yield from _walk(join_path(join_path(path, keyword), at), child)
    for keyword in _ONES:
        if isinstance(node.get(keyword), dict):
            yield from _walk(join_path(path, keyword), node[keyword])


def _check_node(path: str, node: Any, subset: Subset) -> Iterator[Fault]:
    if not isinstance(node, dict):
        if not subset.booleans:
            yield Fault(path, f"it is {shorten(node)}")
        return
    for keyword in node:
        if keyword in subset.never or (subset.keywords is not None and keyword not in subset.keywords):
            yield Fault(join_path(path, keyword), f"there is {keyword}")
    if subset.formats is not None and node.get("format") not in {None, *subset.formats}:
        yield Fault(join_path(path, "format"), f"it is {shorten(node['format'])}")
    if subset.complete:
        for kind, keyword in (("object", "properties"), ("array", "items")):
            if _has_type(node, kind) and not isinstance(node.get(keyword), dict):
                yield Fault(join_path(path, keyword), f"it is {shorten(node.get(keyword))}")
    if _has_type(node, "object") or "properties" in node:
        yield from _check_object(path, node, subset)


def _check_object(path: str, node: Mapping[str, Any], subset: Subset) -> Iterator[Fault]:
    if subset.closed and node.get("additionalProperties") is not False:
        yield Fault(join_path(path, "additionalProperties"), f"it is {shorten(node.get('additionalProperties'))}")
    if subset.names is not None:
        for name in node.get("properties") or ():
            if not subset.names.fullmatch(name):
                yield Fault(join_path(path, "properties"), f"there is {shorten(name)}")
    if subset.all_required:
        required, properties = node.get("required"), node.get("properties")
        named = required if isinstance(required, list) else ()
        for name in properties if isinstance(properties, dict) else ():
            if name not in named:
                yield Fault(join_path(path, "required"), f"{name!r} is not in it")


def _has_type(node: Mapping[str, Any], kind: str) -> bool:
    types = node.get("type")
    return types == kind or (isinstance(types, list) and kind in types)


def _find_cycle(root: Mapping[str, Any]) -> str | None:
    """Return a reference that is reached again from what it names, if there is one."""
    leads = {"#": _find_references({name: child for name, child in root.items() if name not in _DEFINITIONS})}
    for keyword in _DEFINITIONS:
        if isinstance(root.get(keyword), dict):
            leads |= {f"#/{keyword}/{name}": _find_references(child) for name, child in root[keyword].items()}
    return next((name for name in leads if name in _reachable(name, leads)), None)


def _find_references(node: Any) -> set[str]:
    return {
        child["$ref"] for _, child in _walk("", node) if isinstance(child, dict) and isinstance(child.get("$ref"), str)
    }


def _reachable(start: str, leads: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    todo = list(leads[start])
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(leads.get(name, ()))
    return reached

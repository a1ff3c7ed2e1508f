"""The parts of lint rules: paths into a request, conditions, checks and findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import attrs

from interlingua._json import loads
from interlingua.plugins import WireRequest


class Hit(NamedTuple):
    """A selected value and its place, such as `messages[3].content[1].id`."""

    path: str
    value: Any


Step = Callable[[Hit], Iterator[Hit]]
_PART = re.compile(r"\.?(?:(?P<deep>\*\*)|(?P<any>\*)|(?P<name>[^.\[\]*]+)|\[(?P<inside>[^\]]*)\])")
_FILTER = re.compile(r"(?P<not>!)?(?P<key>[\w.$-]+)(?:(?P<op>!?=)(?P<words>.*))?")


@attrs.frozen
class Path:
    """A parsed path."""

    text: str
    steps: Mapping[str, Step]  # each with the part of the text that ends with it

    def select(self, value: Any, start: str = "") -> Iterator[Hit]:
        """Yield the values at the path; missing fields are skipped."""
        hits: Iterator[Hit] = iter((Hit(start, value),))
        for step in self.steps.values():
            hits = chain.from_iterable(map(step, hits))
        return hits

    def found(self, value: Any) -> bool:
        """Tell whether the path leads to anything but null."""
        return any(hit.value is not None for hit in self.select(value))


def parse_path(text: Any) -> Path:
    """Read a path: steps joined by dots, from the body, such as `messages[role=assistant].content[type=tool_use].id`.

    ::

        name         that field of an object            *        every field of an object
        [*]          every element of a list            [0] [-1]  that element
        [key]        has the field (null is absence)    [!key]   does not have it
        [key=a|b]    the field is one of these words    [key!=a] it is not one of them
        [key=]       the field is an empty string, list or object
        **           every object below, itself included

    A filter keeps the elements of a list, or the object itself. The empty path is the whole body.

    Raises:
        ValueError: not a path; the message says where.
    """
    if not isinstance(text, str):
        raise ValueError("a path is a string such as messages[*].role")
    steps: dict[str, Step] = {}
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part.end() == at:
            raise ValueError(f"cannot parse the path {text!r} from {text[at:]!r} on")
        at = part.end()
        steps[text[:at]] = _make_step(part, text)
    return Path(text, steps)


def join_path(path: str, name: str | int) -> str:
    """Return the path of a field or element of the value at `path`."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _make_step(part: re.Match[str], text: str) -> Step:
    if part["deep"]:
        return _step_objects
    if part["any"]:
        return _step_fields
    if part["name"]:
        return _step_field(part["name"])
    inside = part["inside"]
    if inside == "*":
        return _step_elements
    if re.fullmatch(r"-?\d+", inside):
        return _step_element(int(inside))
    chosen = _FILTER.fullmatch(inside)
    if chosen is None or (chosen["not"] and chosen["op"]):
        raise ValueError(f"cannot parse the filter [{inside}] of the path {text!r}")
    return _step_filter(chosen)


def _step_field(name: str) -> Step:
    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, dict) and name in hit.value:
            yield Hit(join_path(hit.path, name), hit.value[name])

    return step


def _step_fields(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, dict):
        for name, value in hit.value.items():
            yield Hit(join_path(hit.path, name), value)


def _step_elements(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, list):
        for at, value in enumerate(hit.value):
            yield Hit(join_path(hit.path, at), value)


def _step_element(at: int) -> Step:
    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, list) and -len(hit.value) <= at < len(hit.value):
            yield Hit(join_path(hit.path, at % len(hit.value)), hit.value[at])

    return step


def _step_objects(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, dict):
        yield hit
    for child in (*_step_fields(hit), *_step_elements(hit)):
        yield from _step_objects(child)


def _step_filter(chosen: re.Match[str]) -> Step:
    key = parse_path(chosen["key"])
    name = key.text if len(key.steps) == 1 else None
    words = frozenset(chosen["words"].split("|")) if chosen["op"] else None
    wanted = not chosen["not"] and chosen["op"] != "!="

    def keep(value: Any) -> bool:
        if name is not None:  # most filters
            found = [value.get(name)] if isinstance(value, dict) else []
        else:
            found = [hit.value for hit in key.select(value)]
        here = {_spell(one) for one in found if one is not None}
        return bool(here if words is None else here & words) is wanted

    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, list):
            yield from (element for element in _step_elements(hit) if keep(element.value))
        elif isinstance(hit.value, dict) and keep(hit.value):
            yield hit

    return step


def _spell(value: Any) -> str:
    """Write a value as filters do: true, 3, tool_use; an empty list or object is the empty word."""
    if isinstance(value, (list, dict)) and not value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Fault(NamedTuple):
    """A finding of a check: a place, and the fault there as the end of a sentence."""

    path: str
    found: str


@attrs.frozen(kw_only=True)
class RequestFacts:
    """The parts of one request that rules read."""

    body: Any  # the parsed body
    size: int  # size of the body in bytes
    model: str  # name of the model, from the body or the path
    headers: Mapping[str, str]  # names in lower case
    _selected: dict[str, list[Hit]] = attrs.field(factory=dict, init=False, repr=False, eq=False)

    def select(self, path: Path) -> list[Hit]:
        """Return the values at a path of the body; rules whose paths begin alike share the beginning."""
        hits = [Hit("", self.body)]
        for text, step in path.steps.items():
            if text not in self._selected:
                self._selected[text] = list(chain.from_iterable(map(step, hits)))
            hits = self._selected[text]
        return hits

    def has(self, path: Path) -> bool:
        """Tell whether a path leads to anything but null."""
        return any(hit.value is not None for hit in self.select(path))


Check = Callable[[Sequence[Hit], RequestFacts], Iterator[Fault]]


@attrs.frozen(kw_only=True)
class LintFinding:
    """One place in a request that the service is known to reject."""

    rule: str  # id of the rule
    path: str  # place in the body, `messages[3].content[1].id`; empty for the body itself
    message: str  # the rule's statement and what was found instead
    citation: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.path or 'body'}: {self.message} [{self.citation}]"


@attrs.frozen(kw_only=True)
class LintCondition:
    """The requests that a rule applies to; without conditions, all."""

    model: re.Pattern[str] | None = None  # expression for the whole model name
    # expression for the whole value of each header; a missing header counts as an empty string
    headers: Mapping[str, re.Pattern[str]] = attrs.field(factory=dict)
    has: tuple[Path, ...] = ()  # paths that must all exist
    lacks: tuple[Path, ...] = ()  # paths that must all be missing

    def holds(self, request: RequestFacts) -> bool:
        """Tell whether the rule applies to this request."""
        return (
            (self.model is None or self.model.fullmatch(request.model) is not None)
            and all(pattern.fullmatch(request.headers.get(name, "")) for name, pattern in self.headers.items())
            and all(map(request.has, self.has))
            and not any(map(request.has, self.lacks))
        )


@attrs.frozen(kw_only=True)
class LintRule:
    """One rule of a file."""

    id: str  # in words joined by hyphens, unique in its file
    says: str  # one sentence for the user
    citation: str  # the document and section it is from, or `recorded 400`
    at: tuple[Path, ...]  # the parts of the body it checks
    when: LintCondition  # the requests it applies to
    check: Check = attrs.field(repr=False, eq=False)  # the check with its parameter

    def findings(self, request: RequestFacts) -> Iterator[LintFinding]:
        """Yield the violations of the rule in a request."""
        if self.when.holds(request):
            hits = [hit for path in self.at for hit in request.select(path)]
            for fault in self.check(hits, request):
                yield LintFinding(
                    rule=self.id, path=fault.path, message=f"{self.says} Here {fault.found}.", citation=self.citation
                )


@attrs.frozen(kw_only=True)
class LintRules:
    """The rules of one rule file."""

    title: str  # the service and its API
    endpoint: re.Pattern[str]  # expression for the end of the paths whose requests it covers
    # expression whose group finds the model in the path, if the body does not have it
    model_in_path: re.Pattern[str] | None = None
    rules: tuple[LintRule, ...]  # in the file's order

    def covers(self, request: WireRequest) -> bool:
        """Tell whether the file covers a request, by its method and path."""
        return request.method == "POST" and self.endpoint.search(_without_query(request.path)) is not None

    def lint(self, request: WireRequest) -> tuple[LintFinding, ...]:
        """Apply every rule to a request, which the file should cover."""
        body = loads(request.body)
        in_path = self.model_in_path and self.model_in_path.search(_without_query(request.path))
        named = in_path[1] if in_path else body.get("model") if isinstance(body, dict) else None
        headers = {name.lower(): value for name, value in request.headers.items()}
        facts = RequestFacts(body=body, size=len(request.body), model=str(named or ""), headers=headers)
        return tuple(finding for rule in self.rules for finding in rule.findings(facts))


def _without_query(path: str) -> str:
    return path.partition("?")[0].rstrip("/")

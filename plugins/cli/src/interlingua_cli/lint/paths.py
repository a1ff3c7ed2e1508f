"""Paths: how a rule says which parts of a request it is about, and how a finding says where it was.

Never judges what it finds and never changes the value it walks.
The reader, the conditions and the verbs come in.

A path is steps joined by dots, walked from the body::

    messages[role=assistant].content[type=tool_use].id

    name         that field of an object            *        every field of an object
    [*]          every element of a list            [0] [-1]  that element
    [key]        has the field (null is absence)    [!key]   has it not
    [key=a|b]    the field is one of these words    [key!=a] it is none of them
    [key=]       the field is an empty text, list or object
    **           every object below, itself included

A filter keeps the elements of a list, or the object itself. The empty path is the whole body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import attrs


class Hit(NamedTuple):
    """One selected value and its place, such as `messages[3].content[1].id`."""

    path: str
    value: Any


Step = Callable[[Hit], Iterator[Hit]]


_PART = re.compile(r"\.?(?:(?P<deep>\*\*)|(?P<any>\*)|(?P<name>[^.\[\]*]+)|\[(?P<inside>[^\]]*)\])")


_FILTER = re.compile(r"(?P<not>!)?(?P<key>[\w.$-]+)(?:(?P<op>!?=)(?P<words>.*))?")


@attrs.frozen
class Path:
    """A parsed path."""

    text: str
    steps: tuple[Step, ...]

    def select(self, value: Any, start: str = "") -> Iterator[Hit]:
        """Yield what the path leads to; what is not there is not yielded.

        Args:
            value: plain JSON.
            start: where `value` itself stands, for the places of the hits.
        """
        hits: Iterator[Hit] = iter((Hit(start, value),))
        for step in self.steps:
            hits = _walked(step, hits)
        return hits

    def found(self, value: Any) -> bool:
        """Tell whether the path leads to anything but null."""
        return any(hit.value is not None for hit in self.select(value))


def parse_path(text: Any) -> Path:
    """Read a path.

    Raises:
        ValueError: not a text in the form above; names the place.
    """
    if not isinstance(text, str):
        raise ValueError("a path is a text such as messages[*].role")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part.end() == at:
            raise ValueError(f"the path {text!r} cannot be read from {text[at:]!r} on")
        steps.append(_step(part, text))
        at = part.end()
    return Path(text, tuple(steps))


def below(path: str, name: str | int) -> str:
    """Return the place of a field or element of what stands at `path`."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _walked(step: Step, hits: Iterator[Hit]) -> Iterator[Hit]:
    for hit in hits:
        yield from step(hit)


def _step(part: re.Match[str], text: str) -> Step:
    if part["deep"]:
        return _objects
    if part["any"]:
        return _fields
    if part["name"]:
        return _field(part["name"])
    inside = part["inside"]
    if inside == "*":
        return _elements
    if re.fullmatch(r"-?\d+", inside):
        return _element(int(inside))
    chosen = _FILTER.fullmatch(inside)
    if chosen is None or (chosen["not"] and chosen["op"]):
        raise ValueError(f"the path {text!r} has a filter that cannot be read: [{inside}]")
    return _kept(chosen)


def _field(name: str) -> Step:
    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, dict) and name in hit.value:
            yield Hit(below(hit.path, name), hit.value[name])

    return step


def _fields(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, dict):
        for name, value in hit.value.items():
            yield Hit(below(hit.path, name), value)


def _elements(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, list):
        for at, value in enumerate(hit.value):
            yield Hit(below(hit.path, at), value)


def _element(at: int) -> Step:
    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, list) and -len(hit.value) <= at < len(hit.value):
            yield Hit(below(hit.path, at % len(hit.value)), hit.value[at])

    return step


def _objects(hit: Hit) -> Iterator[Hit]:
    if isinstance(hit.value, dict):
        yield hit
    for child in (*_fields(hit), *_elements(hit)):
        yield from _objects(child)


def _kept(chosen: re.Match[str]) -> Step:
    key = parse_path(chosen["key"])
    words = frozenset(chosen["words"].split("|")) if chosen["op"] else None
    wanted = not chosen["not"] and chosen["op"] != "!="

    def keep(value: Any) -> bool:
        here = {_word(hit.value) for hit in key.select(value) if hit.value is not None}
        return bool(here if words is None else here & words) is wanted

    def step(hit: Hit) -> Iterator[Hit]:
        if isinstance(hit.value, list):
            yield from (element for element in _elements(hit) if keep(element.value))
        elif isinstance(hit.value, dict) and keep(hit.value):
            yield hit

    return step


def _word(value: Any) -> str:
    """Spell a value as a filter does: true, 3, tool_use; an empty list or object is the empty word."""
    if isinstance(value, (list, dict)) and not value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Read the types of an SDK: the members of an object, the kinds of a union, and a value of any type.

TypedDicts, pydantic models, dataclasses of unions and botocore's shapes are read alike.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from botocore.model import ListShape, MapShape, Shape, StructureShape
from pydantic import BaseModel
from typing_extensions import ReadOnly, TypeAliasType, is_typeddict

_MARKS = (Required, NotRequired, ReadOnly, Annotated)
_DEPTH = 5
# a value's text says what it is where any text will not do
_TEXTS = {"url": "https://example.invalid/", "uri": "https://example.invalid/", "image_url": "https://example.invalid/"}


def bare(hint: Any) -> Any:
    """Return a type without the marks around it, and what an alias or a new type stands for."""
    while True:
        origin = get_origin(hint)
        if origin in _MARKS:
            hint = get_args(hint)[0]
        elif isinstance(hint, TypeAliasType):
            hint = hint.__value__
        elif isinstance(origin, TypeAliasType):
            hint = origin.__value__[get_args(hint)]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif origin in (Union, types.UnionType) and len(some := [a for a in get_args(hint) if not _is_nothing(a)]) == 1:
            hint = some[0]
        else:
            return hint


def _is_nothing(hint: Any) -> bool:
    return hint in (None, type(None)) or getattr(hint, "__name__", "") in ("Unset", "UnrecognizedStr", "Omit")


def is_object(hint: Any) -> bool:
    """Return whether a type has named members."""
    hint = bare(hint)
    if isinstance(hint, Shape):
        return isinstance(hint, StructureShape)
    return is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, BaseModel))


def members(hint: Any) -> dict[str, Any]:
    """Return the members of an object type by their names on the wire; empty for another type."""
    hint = bare(hint)
    if isinstance(hint, Shape):
        return dict(hint.members) if isinstance(hint, StructureShape) else {}
    if is_typeddict(hint):
        found = typing.get_type_hints(hint, include_extras=True)
        return {_alias(one) or name: one for name, one in found.items()}
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        hint.model_rebuild()
        make = hint.model_config.get("alias_generator")
        return {
            field.alias or _alias(field) or (make(name) if callable(make) else name): field.annotation
            for name, field in hint.model_fields.items()
            if not field.exclude
        }
    return {}


def _alias(hint: Any) -> str | None:
    """Return the name on the wire that an annotation states."""
    marks = getattr(hint, "metadata", None) or getattr(hint, "__metadata__", ())
    if get_origin(hint) in (Required, NotRequired):
        return _alias(get_args(hint)[0])
    return next((str(alias) for mark in marks if isinstance(alias := getattr(mark, "alias", None), str)), None)


def required(hint: Any) -> set[str]:
    """Return the members that an object must have."""
    hint = bare(hint)
    if isinstance(hint, StructureShape):
        return set(hint.required_members)
    if is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        total = hint.__required_keys__
        return {
            name for name, one in hints.items()
            if get_origin(one) is Required or (name in total and get_origin(one) is not NotRequired)
        }  # fmt: skip
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        names = zip(members(hint), (field for field in hint.model_fields.values() if not field.exclude), strict=True)
        return {name for name, field in names if field.is_required() or _is_word(field.annotation)}
    return set()


def _is_word(hint: Any) -> bool:
    return get_origin(bare(hint)) is Literal and len(get_args(bare(hint))) == 1


def options(hint: Any) -> list[Any]:
    """Return the types of a union, within lists and unions too."""
    hint = bare(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return [one for each in get_args(hint) if not _is_nothing(each) for one in options(each)]
    return [hint]


def item(hint: Any) -> Any:
    """Return the type of a list's items, whichever of a union is a list."""
    for one in options(hint):
        if isinstance(one, ListShape):
            return one.member
        origin = get_origin(one)
        if isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping):
            return get_args(one)[0]
    raise TypeError(f"{hint} is no list")


def words(hint: Any) -> list[Any]:
    """Return the literals of a type."""
    hint = bare(hint)
    if get_origin(hint) is Literal:
        return [getattr(one, "value", one) for one in get_args(hint)]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [one.value for one in hint]
    return [word for one in get_args(hint) if not isinstance(one, list) for word in words(one)]


def kinds(union: Any, name: str = "type") -> dict[str, Any]:
    """Return the object types of a union by the word in their member `name`; those without one are left out."""
    found: dict[str, Any] = {}
    for one in options(union):
        named = members(one)
        for word in words(named[name]) if name in named else ():
            if isinstance(word, str) and word.casefold() != "unknown":
                found.setdefault(word, one)
    return found


class Maker:
    """Makes values of types, each text and number of which occurs nowhere else."""

    def __init__(self) -> None:
        self._numbers = count(70001)

    def make(self, hint: Any, *, full: bool = True, tag: tuple[str, str] | None = None, depth: int = 0) -> Any:
        """Return a value.

        Args:
            hint: its type.
            full: with the optional members of the outermost object.
            tag: a member's name and word, for an object that serves several kinds.
            depth: how deep the value is; deep ones have the required members only.
        """
        choices = options(hint)
        hint = next((one for one in choices if is_object(one)), choices[0] if choices else str)
        if isinstance(hint, Shape):
            return self._shape(hint, full, depth)
        if is_object(hint):
            return self._object(hint, full, tag, depth)
        origin = get_origin(hint)
        if found := words(hint) if origin is Literal or isinstance(hint, type) else []:
            return found[-1]
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {self._text(): self.make(get_args(hint)[1], full=False, depth=depth + 1)}
        if isinstance(origin, type) and issubclass(origin, Iterable):
            return [self.make(get_args(hint)[0], full=depth < 1, depth=depth + 1)]
        return self._leaf(hint)

    def _object(self, hint: Any, full: bool, tag: tuple[str, str] | None, depth: int) -> dict[str, Any]:
        named, needed = members(hint), required(hint)
        chosen = named if full and depth < _DEPTH else {name: one for name, one in named.items() if name in needed}
        chosen = chosen or (dict(list(named.items())[:2]) if depth < _DEPTH else {})
        made: dict[str, Any] = {}
        for name, one in chosen.items():
            text = _TEXTS.get(name) if bare(one) is str else None
            made[name] = text + self._text() if text else self.make(one, full=False, depth=depth + 1)
            if name == "type" and bare(one) is str:
                made[name] = "function"  # of calls, where a type says only "text"
        return {**made, tag[0]: tag[1]} if tag else made

    def _shape(self, shape: Shape, full: bool, depth: int) -> Any:
        if isinstance(shape, StructureShape):
            if getattr(shape, "is_tagged_union", False) and not getattr(shape, "is_document_type", False):
                name, one = next(iter(shape.members.items()))
                return {name: self._shape(one, False, depth + 1)}
            if getattr(shape, "is_document_type", False):
                return {self._text(): self._text()}
            chosen = shape.members if full else {name: shape.members[name] for name in shape.required_members}
            chosen = chosen or (dict(list(shape.members.items())[:2]) if depth < _DEPTH else {})
            return {name: self._shape(one, False, depth + 1) for name, one in chosen.items()}
        if isinstance(shape, ListShape):
            return [self._shape(shape.member, depth < 1, depth + 1)]
        if isinstance(shape, MapShape):
            return {self._text(): self._shape(shape.value, False, depth + 1)}
        if getattr(shape, "enum", None):
            return shape.enum[-1]
        numbers = {"integer": int, "long": int, "float": float, "double": float, "boolean": bool}
        return "eno=" if shape.type_name == "blob" else self._leaf(numbers.get(shape.type_name, str))

    def _leaf(self, hint: Any) -> Any:
        if hint is bool:
            return True
        if hint is int:
            return next(self._numbers)
        if hint is float:
            return float(next(self._numbers))
        if hint in (dict, Any, object) or get_origin(hint) is dict:
            return {self._text(): self._text()}
        return [self._text()] if hint is list else self._text()

    def _text(self) -> str:
        return f"zq{next(self._numbers)}"


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the strings and numbers of a value that occur nowhere else, by their path."""
    if isinstance(value, Mapping):
        return {at: leaf for name, one in value.items() for at, leaf in leaves(one, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {at: leaf for place, one in enumerate(value) for at, leaf in leaves(one, f"{path}[{place}]").items()}
    made = (isinstance(value, str) and "zq7" in value) or (type(value) in (int, float) and value > 70000)
    whole = int(value) if made and type(value) is float else value
    return {path.lstrip("."): whole} if made else {}

"""Frozen attrs classes whose `__init__` checks each field by its type; `replace` copies a value with other fields.

A value that a constructor accepts can be written and read again, equal. One of another type is converted if it can mean
one thing only (the word of an enum, a whole number as a decimal one), else rejected.

The `__init__` and the copier of a class are one generated source, which `inspect.getsource` and debuggers show. attrs
stores each field of a frozen value by a call of `object.__setattr__`; the generated `__init__` calls the slots' own
`__set__`, which costs a third. That pays for the checks; those of strings, enums and blocks are expressions in the
generated code (docs/explanation/performance.md).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import EnumMeta
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import attrs

from interlingua._json import (
    MAX_INT,
    MIN_INT,
    FieldError,
    FrozenDict,
    as_tuple,
    freeze,
    raise_field_error,
    strip_surrogates,
)
from interlingua.errors import CallerError

T = TypeVar("T")
Convert = Callable[[Any], Any]
_copiers: dict[type, tuple[Callable[[Any], Any], dict[str, Convert]]] = {}  # a changeable copy; the fields' checks
KEEP_SURROGATES = {"piece": True}
"""The metadata of a string field that may end within a character: half of a surrogate pair is kept."""
CONVERT_ALWAYS = {"always": True}
"""The metadata of a field whose converter gets every value; other converters get only values of another type."""


def replace(value: T, **changes: Any) -> T:
    """Copy a value with some fields changed, as `attrs.evolve` does; fields that stay are not checked again.

    Raises:
        TypeError: the class has no such field.
        CallerError: a value does not fit its field.
    """
    cls = value.__class__
    if cls not in _copiers:
        return attrs.evolve(value, **changes)  # type: ignore[misc]
    copied, fields = _copiers[cls]
    new: T = copied(value)
    try:
        for name, item in changes.items():
            setattr(new, name, fields[name](item))
    except KeyError:
        if unknown := changes.keys() - fields.keys():
            raise TypeError(f"{cls.__name__} has no field {min(unknown)!r}") from None
        raise
    new.__class__ = cls  # frozen from here on
    return new


def validated(cls: type[T]) -> type[T]:
    """Set an `__init__` that checks the fields of a frozen attrs class, and a short `__repr__`.

    The `__init__` is written when the first value is made: the types of the fields may be defined after the class.
    Values that are not of a field's type pass through the field's converter before the check. A subclass keeps the
    `__init__` that attrs writes.
    """
    for field in attrs.fields(cls):  # type: ignore[arg-type]
        if field.validator is not None or (field.init and field.alias not in (field.name, None)):
            raise TypeError(f"{field.name}: a validated class has no validators or aliases")
    attrs_init = cls.__init__

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
        if cls.__init__ is __init__:
            _write_init(cls, attrs_init)
        cls.__init__(self, *args, **given)

    __init__.__wrapped__ = attrs_init  # type: ignore[attr-defined]  # the signature
    cls.__init__ = __init__  # type: ignore[method-assign]
    cls.__repr__ = _repr  # type: ignore[method-assign]
    return cls


def _repr(self: Any) -> str:
    """Show the fields that differ from their defaults, long ones cut."""
    from interlingua._display import short_repr  # noqa: PLC0415  only for values that are shown

    return short_repr(self)


def _write_init(cls: type, attrs_init: Any) -> None:
    """Write the `__init__` and the copier of a class; a subclass gets the `__init__` of attrs.

    A copy is an instance of a changeable twin class until `replace` has stored its last field, and no other code has it
    before: 17 plain stores cost a fifth of 17 calls of `__set__`.
    """
    attrs.resolve_types(cls)
    fields = attrs.fields(cls)
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}  # both, or Python calls neither fast
    names: dict[str, Any] = {
        "_cls": cls,
        "_attrs_init": attrs_init,
        "_kind": type,  # a field may be called `type`
        "_new": object.__new__,
        "_twin": type(cls.__name__, (cls,), {"__slots__": (), **plain}),
        **globals(),  # what the tests name
    }
    parameters, stored, copied, changeable = [], [], [], []
    for field in fields:
        name, default, value = field.name, field.default, f"_default_{field.name}"
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            names[f"_make_{name}"], default = default.factory, attrs.NOTHING
            value = f"_make_{name}()"
        names[f"_default_{name}"] = default
        names[f"_store_{name}"] = getattr(cls, name).__set__
        old = value
        if field.init:
            names[f"_convert_{name}"] = _converter(cls, field)
            required = field.default is attrs.NOTHING
            parameters.append(name if required else f"{name}=_default_{name}")
            made = f"_convert_{name}({name})"
            if kept := _kept(field, names):
                made = f"{name} if {kept} else {made}"
            changeable.append(f"    '{name}': lambda {name}: {made},")
            value = made if required else f"{value} if {name} is _default_{name} else {made}"
            old = f"old.{name}"
        stored.append(f"    _store_{name}(self, {value})")
        copied.append(f"    self.{name} = {old}")
    if "_attrs_cached_hash" in getattr(cls, "__slots__", ()):
        names["_store_hash"] = vars(cls)["_attrs_cached_hash"].__set__
        stored.append("    _store_hash(self, None)")
        copied.append("    self._attrs_cached_hash = None")
    if hasattr(cls, "__attrs_post_init__"):  # attrs calls it in subclasses
        stored.append("    self.__attrs_post_init__()")
    given = ", ".join(f"{field.name}={field.name}" for field in fields if field.init)
    star = "*, " if parameters and all(field.kw_only for field in fields) else ""
    lines = (
        f"def __init__(self, {star}{', '.join(parameters)}):",
        f"    if self.__class__ is not _cls: return _attrs_init(self, {given})",
        *stored,
        "",
        "def copied(old):",
        "    self = _new(_twin)",
        *copied,
        "    return self",
        "",
        "changeable = {",
        *changeable,
        "}",
    )
    source, place = "\n".join(lines) + "\n", f"<interlingua generated {cls.__module__}.{cls.__qualname__}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)  # for debuggers
    exec(compile(source, place, "exec"), names)  # noqa: S102  as attrs does itself
    names["__init__"].__annotations__ = attrs_init.__annotations__
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = names["__init__"]  # type: ignore[misc]
    _copiers[cls] = (names["copied"], names["changeable"])


def _kept(field: attrs.Attribute[Any], names: dict[str, Any]) -> str:
    """Return a test, as a Python expression; a value that passes it is stored unchanged, without a call."""
    name, arms = field.name, _arms(field.type)
    if field.metadata.get("always"):
        return ""
    plain = {kind: test.format(name) for kind, test in _TESTS.items()}
    if field.metadata.get("piece"):
        plain[str] = "True"
    tests = [f"_kind({name}) is {kind.__name__} and {test}" for kind, test in plain.items() if kind in arms]
    for kind in arms:
        items = frozenset(_arms(get_args(kind)[0])) if get_origin(kind) is tuple else ()
        if items and all(map(_is_closed, items)):
            names[f"_items_{name}"] = items
            tests.append(f"_kind({name}) is tuple and _items_{name}.issuperset(map(_kind, {name}))")
    if closed := frozenset(filter(_is_closed, arms)):
        names[f"_kinds_{name}"] = closed
        tests.append(f"_kind({name}) in _kinds_{name}")
    return " or ".join(tests)


def _converter(cls: type, field: attrs.Attribute[Any]) -> Convert:
    """Make the function that returns a field's value for whatever was given, or refuses it."""
    first: Any = None if isinstance(field.converter, EnumMeta) else field.converter
    fit = _fit_piece if field.metadata.get("piece") else _fit(field.type)

    def convert(value: Any) -> Any:
        try:
            return fit(value if first is None else first(value))
        except FieldError as problem:  # the codec reads it from the context
            problem.path = f".{field.name}{problem.path}"
            raise CallerError(f"{cls.__name__}{problem.path}: {problem}") from None

    return convert


def _arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _words(kind: Any) -> dict[str, Any]:
    """Return the words of an enum, or of a Literal of strings, each with its value; nothing for other types."""
    if get_origin(kind) is Literal:
        return {word: word for word in get_args(kind)}
    return {word.value: word for word in cast("Iterable[Any]", kind)} if isinstance(kind, EnumMeta) else {}


def _fit(kind: Any) -> Convert:
    """Make the function that returns the value of a type for whatever was given, or raises FieldError."""
    arms = [arm for arm in _arms(kind) if arm is not NoneType]
    cls = get_origin(arms[0]) or arms[0]
    if len(arms) > 1 or _words(arms[0]):
        return _fit_one_of(kind, arms)
    fit = _fit_items(get_args(arms[0])[0]) if cls is tuple else _FITS.get(cls) or _exact(cls)
    return fit if arms[0] is kind else lambda value: None if value is None else fit(value)


def _fit_one_of(kind: Any, arms: list[Any]) -> Convert:
    words = {word: value for arm in arms for word, value in _words(arm).items()}
    classes = frozenset(get_origin(arm) or arm for arm in _arms(kind))
    names = [*words, *(arm.__name__ for arm in arms if not _words(arm))]
    wanted = "content block" if all(map(attrs.has, arms)) else f"one of {', '.join(names)}"

    def fit(value: Any) -> Any:
        if type(value) in classes:
            return value
        if words and isinstance(value, str):
            if value in words:
                return words[value]
            raise FieldError(f"expected {wanted}; got {value!r:.40}")
        return raise_field_error(wanted, value)

    return fit


def _fit_items(kind: Any) -> Convert:
    fit_item = _fit(kind)

    def fit(value: Any) -> Any:
        items = []
        for index, item in enumerate(as_tuple(value)):
            try:
                items.append(fit_item(item))
            except FieldError as problem:
                problem.path = f"[{index}]{problem.path}"
                raise
        return tuple(items)

    return fit


def _exact(cls: Any) -> Convert:
    """Make the check of a class: attrs classes and frozen JSON are not subclassed, others may be."""
    wanted = "object" if cls is FrozenDict else cls.__name__
    closed = _is_closed(cls)

    def fit(value: Any) -> Any:
        fits = type(value) is cls or (not closed and isinstance(value, cls))
        return value if fits else raise_field_error(wanted, value)

    return fit


def _is_closed(kind: Any) -> bool:
    """Return whether a class has no subclasses here: every value of it is exactly of it."""
    return isinstance(kind, type) and (attrs.has(kind) or isinstance(kind, EnumMeta) or kind in (bool, FrozenDict))


def _fit_text(value: Any) -> str:
    return strip_surrogates(value) if isinstance(value, str) else raise_field_error("str", value)


def _fit_piece(value: Any) -> str:
    return str.__str__(value) if isinstance(value, str) else raise_field_error("str", value)


def _fit_integer(value: Any) -> int:
    if isinstance(value, int) and type(value) is not bool and MIN_INT < value < MAX_INT:
        return int(value)
    return raise_field_error("int", value)


def _fit_number(value: Any) -> float:
    if isinstance(value, (int, float)) and type(value) is not bool and MIN_INT < value < MAX_INT:
        return value if type(value) in (int, float) else int(value) if isinstance(value, int) else float(value)
    return raise_field_error("number", value)


def _fit_decimal(value: Any) -> Decimal:
    try:
        if isinstance(value, (int, float, str, Decimal)) and type(value) is not bool:
            number = Decimal(repr(value) if isinstance(value, float) else value)  # a float: as it is shown
            if number.is_finite():
                return number
    except InvalidOperation:
        pass
    return raise_field_error("a decimal number", value)


def _fit_time(value: Any) -> datetime:
    try:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value if value.tzinfo is UTC else value.astimezone(UTC)
    except OverflowError:
        pass
    return raise_field_error("a time with a time zone", value)


_FITS: dict[Any, Convert] = {
    Any: freeze,
    str: _fit_text,
    int: _fit_integer,
    float: _fit_number,
    Decimal: _fit_decimal,
    datetime: _fit_time,
}

# what a value of the class fulfils that needs no converter
_TESTS = {
    str: "{0}.isascii()",
    int: "MIN_INT < {0} < MAX_INT",
    Decimal: "{0}.is_finite()",
    datetime: "{0}.tzinfo is UTC",
}

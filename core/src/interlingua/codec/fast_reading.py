"""The fast path in: a written-out function for each value class, which takes data of the usual shape or nothing.

Never says what is wrong and never keeps an unknown field: at the first surprise it raises, and the general path
(`reading`) decides. Whatever it does take, it takes as the general path would; a test holds them together.
`stored` and `fast_writing` come in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import attrs

from interlingua.codec.misfit import Misfit, as_decimal, as_float, as_object
from interlingua.codec.shapes import BLOCKS, VALUES, default_of, fields_of, is_always_written
from interlingua.codec.sharing import Read, sharing
from interlingua.frozen import maker
from interlingua.json import FrozenDict
from interlingua.types.blocks import ContentBlock
from interlingua.types.messages import SCHEMA_VERSION, Message


class Unusual(LookupError):
    """Not what is usually stored; so is a KeyError."""


FALLBACK_ERRORS = (LookupError, TypeError, ValueError, Misfit, RecursionError)


"""What the fast path may raise: each sends the value to the general path, and nobody else hears of it."""


class _Readers(dict[Any, Read]):
    """The function of each class, or each `type` of a block, made when it is first asked for."""

    def __missing__(self, kind: Any) -> Read:
        if kind in BLOCKS:
            made = self[BLOCKS[kind]]
        elif kind in VALUES:
            made = sharing(kind, _Shapes(kind).read)
        else:
            raise Unusual
        self[kind] = made
        return made


_readers = _Readers()


def read_message(data: Any) -> Message:
    """Read a message of the usual shape.

    Raises:
        FALLBACK_ERRORS: the general path must look at it.
    """
    message: Message = _readers[Message](data)
    if message.schema_version > SCHEMA_VERSION:
        raise Unusual
    return message


class _Shapes(dict[tuple[str, ...], Read]):
    """The functions of one class: one for each set of keys, in the order in which they are written.

    Other orders are unusual. So there are few, however data is made, and each takes all its values at once.
    """

    def __init__(self, cls: type) -> None:
        super().__init__()
        self._cls = cls

    def read(self, data: Any) -> Any:
        if type(data) is not dict:
            raise Unusual
        return self[tuple(data)](data)

    def __missing__(self, keys: tuple[str, ...]) -> Read:
        cls, fields = self._cls, fields_of(self._cls)
        tag = ("type",) if cls in BLOCKS.values() else ()
        if keys != (*tag, *(field.name for field in fields if field.name in keys or is_always_written(cls, field))):
            raise Unusual
        made = self[keys] = _reader(cls, keys)
        return made


def _reader(cls: type, keys: tuple[str, ...]) -> Read:
    """Write and compile the function of one class for data of these keys."""
    names: dict[str, Any] = {"Unusual": Unusual}
    lines = [f"{''.join(f'its_{key}, ' for key in keys)} = data.values()"]  # a field may be called `type` or `data`
    for field in fields_of(cls):
        if field.name in keys:
            lines += _field(field, names)
        else:
            names[f"its_{field.name}"] = default_of(field)
    source = "\n    ".join(("def read(data):", *lines, f"return {_call(cls, names)}"))
    exec(compile(source, f"<fast reader of {cls.__name__}>", "exec"), names)  # noqa: S102  as attrs makes classes
    made: Read = names["read"]
    return made


def _call(cls: type, names: dict[str, Any]) -> str:
    """Write the call that makes the value."""
    read = [field.name for field in fields_of(cls)]
    try:
        names["_make"] = maker(cls)
    except KeyError:
        names["_make"] = cls
        return f"_make({', '.join(f'{name}=its_{name}' for name in read)})"
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    initial = [field for field in fields if field.init]
    names |= {f"its_{field.name}": field.default for field in initial if field.name not in read}
    return f"_make({', '.join(f'its_{field.name}' for field in initial)})"


def _field(field: attrs.Attribute[Any], names: dict[str, Any]) -> list[str]:
    """Write the lines that check a field's value, in a variable named after it, and convert it where need be."""
    name, kinds = f"its_{field.name}", get_args(field.type)
    optional = len(kinds) == 2 and NoneType in kinds
    checks = _checks(name, next(kind for kind in kinds if kind is not NoneType) if optional else field.type, names)
    return [f"if {name} is not None:", *[f"    {line}" for line in checks]] if optional else checks


def _checks(name: str, kind: Any, names: dict[str, Any]) -> list[str]:
    """Write the lines that check, and where need be convert, a variable."""
    if kind in (str, int, bool):
        return [f"if type({name}) is not {kind.__name__}: raise Unusual"]
    if kind is Any:
        return ["pass"]
    names[f"_read_{name}"] = _converter(kind)
    return [f"{name} = _read_{name}({name})"]


def _time(data: Any) -> datetime:
    time = data if type(data) is datetime else datetime.fromisoformat(data)
    if time.tzinfo is not UTC:
        raise Unusual
    return time


_SCALARS: dict[Any, Read] = {float: as_float, Decimal: as_decimal, datetime: _time, FrozenDict: as_object}


def _converter(kind: Any) -> Read:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return _blocks if item == ContentBlock else _items(item)
    if get_origin(kind) is Literal:
        return {word: word for word in get_args(kind)}.__getitem__
    if issubclass(kind, StrEnum):
        return {member.value: member for member in kind}.__getitem__
    return _readers[kind]


def _blocks(data: Any) -> tuple[Any, ...]:
    if type(data) is not list:
        raise Unusual
    return tuple([_readers[block["type"]](block) for block in data])


def _items(kind: Any) -> Read:
    def read(data: Any) -> tuple[Any, ...]:
        if type(data) is not list:
            raise Unusual
        return tuple([each(item) for item in data])

    each = _plain(kind) if kind in (str, int) else _converter(kind)
    return read


def _plain(kind: type) -> Read:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise Unusual
        return data

    return read

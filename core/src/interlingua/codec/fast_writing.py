"""The fast path out: a written-out function for each value class, for values that hold what their types say.

Never writes what a newer version wrote beside the known fields, and no class it does not know: it raises there, and
the general path (`writing`) decides. What it does write is what the general path would; a test holds them together.
`stored` comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Any

import attrs

from interlingua.codec.fast_reading import Unusual
from interlingua.codec.shapes import BLOCKS, VALUES, fields_of, is_always_written
from interlingua.codec.writing import time_text
from interlingua.json import FrozenDict, FrozenList
from interlingua.types.messages import NO_METADATA, Message, MessageMetadata

Write = Callable[[Any], Any]


class _Writers(dict[type, Write]):
    """The function of each class that a value may hold, made when it is first asked for."""

    def __missing__(self, kind: type) -> Write:
        if kind in VALUES:
            made = _metadata(_writer(kind)) if kind is MessageMetadata else _writer(kind)
        elif issubclass(kind, StrEnum):
            made = attrgetter("_value_")
        else:
            raise Unusual
        self[kind] = made
        return made


def _same(value: Any) -> Any:
    return value


def _array(items: tuple[Any, ...]) -> list[Any]:
    return [_writers[type(item)](item) for item in items]


_PLAIN: frozenset[type] = frozenset({str, int, float, bool, type(None)})


_writers = _Writers({FrozenDict: _same, FrozenList: _same, tuple: _array, Decimal: str, datetime: time_text})


_writers |= dict.fromkeys(_PLAIN, _same)


def write_message(message: Message) -> dict[str, Any]:
    """Write a message of the usual shape.

    Raises:
        Unusual: the general path must look at it.
        CallerError: as `encode_message`.
    """
    data: dict[str, Any] = _writers[type(message)](message)
    return data


def _writer(cls: type) -> Write:
    """Write and compile the function of one class."""
    names: dict[str, Any] = {"_plain": _PLAIN, "_writers": _writers}
    kind = next((name for name, block in BLOCKS.items() if block is cls), None)
    lines = ["data = {}" if kind is None else f"data = {{'type': {kind!r}}}"]
    for field in fields_of(cls):
        name = field.name
        put = f"data[{name!r}] = item if type(item) in _plain else _writers[type(item)](item)"
        if not is_always_written(cls, field):
            default: Any = field.default
            names[f"_{name}"] = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
            given = "item is not None" if default is None else f"item is not _{name} and item != _{name}"
            put = f"if {given}: {put}"
        lines += [f"item = value.{name}", put]
    source = "\n    ".join(("def write(value):", *lines, "return data"))
    exec(compile(source, f"<fast writer of {cls.__name__}>", "exec"), names)  # noqa: S102  as attrs makes classes
    made: Write = names["write"]
    return made


def _metadata(write: Write) -> Write:
    nothing = write(NO_METADATA)

    def write_metadata(metadata: MessageMetadata) -> dict[str, Any]:
        if metadata is NO_METADATA:
            return dict(nothing)
        if metadata.extra:
            raise Unusual
        data: dict[str, Any] = write(metadata)
        return data

    return write_metadata

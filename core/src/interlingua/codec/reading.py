"""The structure hooks: JSON data in, canonical values out, strictly.

Never drops an unknown block (it becomes an UnknownBlock) and never looks at unknown fields (unknown.py keeps them).
The converter module comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from types import NoneType
from typing import Any, NoReturn, get_args

from cattrs import Converter

from interlingua.codec.misfit import Misfit, as_object, as_str, misfit
from interlingua.codec.shapes import BLOCKS, fields_of, is_required
from interlingua.errors import CallerError, UnsupportedSchemaError
from interlingua.types.blocks import UnknownBlock

Hook = Callable[[Any, Any], Any]


def value_hook(cls: type, converter: Converter) -> Hook:
    """Make the hook of one value class: every field by its own hook, a field with a default may be absent."""
    rows = [
        (field.name, f".{field.name}", converter.get_structure_hook(field.type), field.type,
         is_required(field))
        for field in fields_of(cls)
    ]  # fmt: skip

    def structure(data: Any, _type: Any = None) -> Any:
        if not isinstance(data, dict):
            misfit("object", data)
        values = {}
        for name, step, hook, kind, required in rows:
            if name in data:
                try:
                    values[name] = hook(data[name], kind)
                except Misfit as error:
                    error.steps.append(step)
                    raise
            elif required:
                raise Misfit("missing", step)
        try:
            return cls(**values)
        except UnsupportedSchemaError as error:
            raise Misfit(error.message, f".input_schema{error.path}") from error
        except CallerError as error:  # the only other field that checks itself is a tool's name
            raise Misfit(error.message, ".name") from error

    return structure


def block_hook(_union: Any, converter: Converter) -> Hook:
    """Make the hook of the block union; a type not known here is kept whole."""
    hooks = {name: (cls, converter.get_structure_hook(cls)) for name, cls in BLOCKS.items() if name != "tool_result"}

    def structure(data: Any, _type: Any = None) -> Any:
        if not isinstance(data, dict):
            misfit("object", data)
        if "type" not in data:
            raise Misfit("missing", ".type")
        kind = data["type"]
        found = hooks.get(kind) if type(kind) is str else None
        if found is not None:
            return found[1](data, found[0])
        if kind == "tool_result":  # it holds blocks itself, so its hook can only be made after this one
            hooks[kind] = (BLOCKS[kind], converter.get_structure_hook(BLOCKS[kind]))
            return hooks[kind][1](data, hooks[kind][0])
        try:
            as_str(kind)
        except Misfit as error:
            error.steps.append(".type")
            raise
        return UnknownBlock(raw=as_object(data))

    return structure


def tuple_hook(kind: Any, converter: Converter) -> Hook:
    """Make the hook of `tuple[X, ...]`: an array."""
    item = get_args(kind)[0]
    hook = converter.get_structure_hook(item)

    def structure(data: Any, _type: Any = None) -> tuple[Any, ...]:
        if not isinstance(data, (list, tuple)):
            misfit("array", data)
        values = []
        for index, each in enumerate(data):
            try:
                values.append(hook(each, item))
            except Misfit as error:
                error.steps.append(f"[{index}]")
                raise
        return tuple(values)

    return structure


def optional_hook(kind: Any, converter: Converter) -> Hook:
    """Make the hook of `X | None`."""
    item = next(arg for arg in get_args(kind) if arg is not NoneType)
    hook = converter.get_structure_hook(item)

    def structure(data: Any, _type: Any = None) -> Any:
        return None if data is None else hook(data, item)

    return structure


def literal_hook(kind: Any, _converter: Converter) -> Hook:
    """Make the hook of a Literal of strings."""
    names = get_args(kind)

    def structure(data: Any, _type: Any = None) -> Any:
        if as_str(data) not in names:
            _not_among(names, data)
        return data

    return structure


def as_enum(data: Any, kind: type[StrEnum]) -> StrEnum:
    """Take a member of an enum by its value."""
    try:
        return kind(as_str(data))
    except ValueError:
        _not_among([member.value for member in kind], data)


def _not_among(names: Iterable[str], data: str) -> NoReturn:
    raise Misfit(f"expected one of {', '.join(names)}; got {data[:40]!r}") from None

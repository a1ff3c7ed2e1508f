"""The cattrs converter of canonical values, as a strategy that anybody's converter can be configured with.

Never loaded before the first value is read or written: cattrs is not free to import.
The codec's front door comes in, and plugins that store values of their own around messages.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from cattrs import Converter

from interlingua.codec import reading, writing
from interlingua.codec.misfit import as_bool, as_decimal, as_float, as_int, as_object, as_str, as_time
from interlingua.codec.shapes import VALUES
from interlingua.json import FrozenDict, FrozenList
from interlingua.types.blocks import ContentBlock, UnknownBlock
from interlingua.types.messages import MessageMetadata


def make_converter() -> Converter:
    """Return a converter that reads and writes every canonical value."""
    converter = Converter(detailed_validation=False)
    configure_converter(converter)
    return converter


def configure_converter(converter: Converter) -> None:
    """Teach a converter the canonical values.

    It becomes strict for everything it structures: scalars are checked and never coerced. A converter so configured
    may structure classes of its own that hold messages; unknown fields beside known ones are kept only by
    `decode_message` and its like, which see the whole message.

    Args:
        converter: changed in place.
    """
    _configure_reading(converter)
    _configure_writing(converter)


def _configure_reading(converter: Converter) -> None:
    for kind, hook in (
        (str, as_str),
        (int, as_int),
        (float, as_float),
        (bool, as_bool),
        (Decimal, as_decimal),
        (datetime, as_time),
        (FrozenDict, as_object),
        (StrEnum, reading.as_enum),  # nearer than str for every enum of strings
    ):
        converter.register_structure_hook(kind, hook)
    # the one registered last is asked first
    converter.register_structure_hook_factory(_is_optional, reading.optional_hook)
    converter.register_structure_hook_factory(_is_array, reading.tuple_hook)
    converter.register_structure_hook_factory(_is_literal, reading.literal_hook)
    converter.register_structure_hook_factory(_is_block, reading.block_hook)
    converter.register_structure_hook_factory(_is_value, reading.value_hook)


def _configure_writing(converter: Converter) -> None:
    write = converter.unstructure
    for kind in (FrozenDict, FrozenList):  # they cannot change, so they need no copy
        converter.register_unstructure_hook(kind, _same)
    converter.register_unstructure_hook(tuple, lambda items: [write(item) for item in items])
    converter.register_unstructure_hook(Decimal, str)
    converter.register_unstructure_hook(datetime, writing.time_text)
    converter.register_unstructure_hook(StrEnum, _value)
    converter.register_unstructure_hook_factory(_is_value, lambda cls: writing.value_writer(cls, write))
    converter.register_unstructure_hook(MessageMetadata, writing.metadata_writer(MessageMetadata, write))
    converter.register_unstructure_hook(UnknownBlock, writing.unknown_block)


def _same(value: Any) -> Any:
    return value


def _value(member: Any) -> Any:
    return member.value


def _is_value(kind: Any) -> bool:
    return isinstance(kind, type) and kind in VALUES


def _is_block(kind: Any) -> bool:
    return bool(kind == ContentBlock)


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal and all(isinstance(arg, str) for arg in get_args(kind))


def _is_array(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[1:] == (...,)


def _is_optional(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and len(get_args(kind)) == 2 and NoneType in get_args(kind)

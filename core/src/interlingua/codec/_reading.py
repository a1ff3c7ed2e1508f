"""Read canonical values from JSON data: strictly, naming the place of an error, keeping what a newer version wrote.

cattrs generates a function for each class. Data with fields that no class here has is read without them, and they are
kept beside the message, to be written back in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar, get_args

import attrs
from cattrs import BaseValidationError, Converter
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from cattrs.fns import identity
from cattrs.gen import make_dict_structure_fn_from_attrs

from interlingua._json import FieldError, raise_field_error, thaw
from interlingua.codec._writing import (
    BLOCKS,
    NEWER_WORDS,
    UNKNOWN_FIELDS,
    VALUES,
    WORDS,
    holder_of,
    object_fields,
    place_of,
    stored_fields,
    stored_names,
    stored_objects,
    write_message,
)
from interlingua.errors import CallerError, DecodeError, UnsupportedSchemaError
from interlingua.types.blocks import ContentBlock, ToolResultBlock, UnknownBlock
from interlingua.types.messages import NO_METADATA, SCHEMA_VERSION, Message, MessageMetadata, RoutingDecision
from interlingua.types.tools import ToolDefinition, WireTool

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]


def _read_text(value: Any) -> str:
    return value if type(value) is str else raise_field_error("str", value)


def _read_decimal(value: Any, _type: Any) -> Decimal:
    """Read a decimal number written as a string, so that no digit is lost."""
    try:
        number = Decimal(_read_text(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise FieldError(f"expected a decimal number, got {value[:40]!r}")
    return number


def _read_time(value: Any, _type: Any) -> datetime:
    """Read an ISO-8601 time with an offset, or take a datetime with one; the result is in UTC."""
    try:
        time = value if type(value) is datetime else datetime.fromisoformat(_read_text(value))
        if time.tzinfo is UTC:
            return time
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise FieldError(f"expected an ISO-8601 time with an offset, got {str(value)[:40]!r}")


def _array_hook(kind: Any, converter: Converter) -> Hook:
    """Make the hook of `tuple[X, ...]`."""
    read = homogenous_tuple_structure_factory(kind, converter)

    def structure(data: Any, _type: Any) -> Any:
        return read(data, kind) if isinstance(data, (list, tuple)) else raise_field_error("array", data)

    return structure


def _block_hook(_union: Any, converter: Converter) -> Hook:
    """Make the hook of the block union; a block whose type is not known here is kept whole."""
    hooks: dict[str, Hook] = {}  # made when a block of that type is first met

    def structure(data: Any, _type: Any) -> Any:
        if not isinstance(data, dict):
            raise_field_error("object", data)
        name = data.get("type")
        if type(name) is not str:
            if "type" not in data:
                raise FieldError("missing", ".type")
            raise_field_error("str", name, ".type")
        hook = hooks.get(name)
        if hook is None:
            if name not in BLOCKS:
                return UnknownBlock(raw=data)
            hook = hooks[name] = converter.get_structure_hook(BLOCKS[name])
        return hook(data, BLOCKS[name])

    return structure


def _value_hook(cls: type, converter: Converter) -> Hook:
    """Make the hook of a class; a field with a default may be absent. Plain fields are checked by the class itself."""
    stored, others = stored_fields(cls), {Decimal, datetime, *object_fields(cls)}  # stored in another form
    plain = {field.name for field in stored if others.isdisjoint((field.name, field.type, *get_args(field.type)))}
    fields = [field.evolve(converter=identity if field.name in plain else None) for field in stored]
    read: Any = make_dict_structure_fn_from_attrs(fields, cls, converter, _cattrs_prefer_attrib_converters=True)
    names = stored_names(cls)

    def structure(data: Any, _type: Any) -> Any:
        if not isinstance(data, dict):
            raise_field_error("object", data)
        if not data.keys() <= names:
            raise FieldError("unknown fields")  # seen by `_read` alone
        return read(data)

    return _sharing(cls, structure)


def _sharing(cls: type, read: Hook) -> Hook:
    """Let equal data of some classes share one value: metadata of authored messages, and routing decisions.

    That saves a third of the time of reading an authored message, and a fifth of a generated one's.
    """
    last: tuple[Any, Any] = (None, None)

    def read_metadata(data: Any, kind: Any) -> Any:
        return NO_METADATA if data == _EMPTY_METADATA else read(data, kind)

    def read_routing(data: Any, kind: Any) -> Any:
        nonlocal last
        known, record = last
        if data != known:
            record = read(data, kind)
            if record.confidence is None:  # as a number it might be equal and yet another: 1, 1.0, True
                last = data, record
        return record

    return {MessageMetadata: read_metadata, RoutingDecision: read_routing}.get(cls, read)


_EMPTY_METADATA = dict.fromkeys(
    ("model", "provider", "routing", "usage", "parent_tool_use_id", "provider_raw", "user_id", "team_id")
) | {"status": "complete"}


@cache
def _hook(cls: Any) -> Hook:
    return _converter().get_structure_hook(cls)


@cache
def _converter() -> Converter:
    converter = Converter(detailed_validation=True)  # which costs nothing while all is well
    converter.register_structure_hook(Decimal, _read_decimal)
    converter.register_structure_hook(datetime, _read_time)
    converter.register_structure_hook(ToolDefinition | WireTool, _read_any_tool)
    # the one registered last is asked first
    converter.register_structure_hook_factory(lambda kind: get_args(kind)[1:] == (...,), _array_hook)
    converter.register_structure_hook_factory(lambda kind: kind == ContentBlock, _block_hook)
    converter.register_structure_hook_factory(lambda kind: isinstance(kind, type) and kind in VALUES, _value_hook)
    return converter


def _read_any_tool(data: Any, _type: Any) -> Any:
    cls = WireTool if isinstance(data, dict) and "api" in data else ToolDefinition
    return _hook(cls)(data, cls)


def _newer_blocks(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        if type(block) is UnknownBlock:
            yield f"block type {block.raw['type']!r}"
        elif type(block) is ToolResultBlock:
            yield from _newer_blocks(block.content)


def log_newer(found: set[str]) -> None:
    """Log the fields and blocks of a newer version, in one record for a whole load."""
    if found:
        _log("written by a newer version, kept unchanged: %s", ", ".join(sorted(found)), lost=False)


def _log(text: str, *facts: object, lost: bool) -> None:
    import logging  # noqa: PLC0415  only what a newer version wrote needs it

    logging.getLogger("interlingua").log(logging.WARNING if lost else logging.INFO, text, *facts)


def read_message(data: Any, newer: set[str], *, index: int | None = None, line: int | None = None) -> Message:
    """Read a message; unknown fields are kept in its `metadata.extra`, and `newer` gets what a newer version wrote.

    `index` in an array and `line` of a file are for errors. Raises a DecodeError if the data is not a message.
    """
    try:
        message, unknown = _read(data, Message)
        if unknown:
            message = _with_unknown_fields(message, unknown)
    except FieldError as problem:
        place = problem.path if index is None else f"messages[{index}]{problem.path}"
        text = str(problem) if line is None else f"line {line}: {problem}"
        raise DecodeError(text, path=place.removeprefix(".")) from None
    if message.schema_version > SCHEMA_VERSION:
        newer.add(f"schema_version {message.schema_version}")
    newer.update(_newer_blocks(message.content))
    newer.update(f"{field} {word!r}" for field, word in message.metadata.extra.get(NEWER_WORDS, {}).items())
    return message


def read_tool(data: Any) -> ToolDefinition:
    """Read a tool definition, or raise a DecodeError; unknown fields are dropped, with a warning."""
    try:
        tool, unknown = _read(data, ToolDefinition)
    except FieldError as problem:
        raise DecodeError(str(problem), path=problem.path.removeprefix(".")) from None
    if unknown:
        names = ", ".join(sorted(map(str, unknown[""])))
        _log("tool %s: fields of a newer version were dropped: %s", tool.name, names, lost=True)
    return tool


def _read(data: Any, cls: type[T]) -> tuple[T, dict[str, dict[Any, Any]]]:
    """Return the value, and the unknown fields of every object in it by path, or raise a FieldError."""
    structure = _hook(cls)  # type: ignore[arg-type]
    try:
        try:
            return structure(data, cls), {}
        except Exception:  # perhaps only because there are unknown fields
            if not isinstance(data, dict):
                raise
            known = thaw(data)
            unknown = _take_unknown_fields(known, cls)
            unknown.get("metadata", {}).pop(NEWER_WORDS, None)
            if cls is Message and (words := _take_newer_words(known.get("metadata"))):
                unknown.setdefault("metadata", {})[NEWER_WORDS] = words
            if not unknown:
                raise
            return structure(known, cls), unknown
    except (BaseValidationError, RecursionError) as error:
        raise _explain(error) from None


def _explain(error: Exception) -> Exception:
    """Return the first problem of the groups that cattrs raises, with its path."""
    path = ""
    while isinstance(error, BaseValidationError):
        error = error.exceptions[0]
        for note in getattr(error, "__notes__", ()):
            if isinstance(note, AttributeValidationNote):
                path += f".{note.name}"
            elif isinstance(note, IterableValidationNote):
                path += f"[{note.index}]"
    if isinstance(error, CallerError) and isinstance(error.__context__, FieldError):  # of a constructor
        error = error.__context__
    if isinstance(error, FieldError):
        return FieldError(str(error), path + error.path)
    if isinstance(error, KeyError):
        return FieldError("missing", path)
    if isinstance(error, UnsupportedSchemaError):
        return FieldError(error.message, f"{path}.input_schema{error.path}")
    if isinstance(error, CallerError):  # the only other field that checks itself is a tool's name
        return FieldError(error.message, f"{path}.name")
    return FieldError("nested too deeply") if isinstance(error, RecursionError) else error


def _take_unknown_fields(data: dict[Any, Any], cls: type) -> dict[str, dict[Any, Any]]:
    """Take the fields that no class here has out of a stored value, and return them by the path of their object."""
    found = {}
    for path, part, part_cls in stored_objects(data, cls):
        if unknown := part.keys() - stored_names(part_cls):
            found[path] = {name: part.pop(name) for name in [*part] if name in unknown}
    return found


def _take_newer_words(metadata: Any) -> dict[str, str]:
    """Replace words of the metadata that no enum here has by `other`, and return them by their field."""
    found: dict[str, str] = {}
    for path, kind in WORDS.items():
        holder, name = holder_of(metadata, path)
        word = holder.get(name)
        if type(word) is str and word not in [*kind]:
            found[path], holder[name] = word, "other"
    return found


def _with_unknown_fields(message: Message, unknown: dict[str, dict[Any, Any]]) -> Message:
    """Keep unknown fields in `metadata.extra`; they are written back."""
    extra = unknown.pop("metadata", {})
    if unknown:
        earlier = extra.get(UNKNOWN_FIELDS, {})
        if not isinstance(earlier, dict):
            raise FieldError("expected object", f".metadata.{UNKNOWN_FIELDS}")
        written = {path: part for path, part, _ in stored_objects(write_message(message))}
        taken = {place_of(path, written[path]): fields for path, fields in unknown.items()}
        extra[UNKNOWN_FIELDS] = {**earlier, **taken}
    try:
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, extra=extra))
    except CallerError as error:
        raise FieldError(error.message, ".metadata") from None

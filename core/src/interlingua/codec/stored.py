"""Messages and tools to their stored form and back: as plain JSON data, and as one line of JSON text.

Never mints and never repairs; what a newer version wrote is kept, and said once per load.
The codec's front door comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from interlingua.codec.fast_reading import FALLBACK_ERRORS, read_message
from interlingua.codec.fast_writing import write_message
from interlingua.codec.misfit import Misfit, misfit
from interlingua.codec.shapes import names_of
from interlingua.codec.unknown import UNKNOWN_FIELDS, put_back, take_unknown, unknown_metadata
from interlingua.errors import CallerError, DecodeError
from interlingua.json import dumps, freeze_object, line_fault, loads
from interlingua.types.blocks import ToolResultBlock, UnknownBlock
from interlingua.types.messages import SCHEMA_VERSION, Message
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from cattrs import Converter


T = TypeVar("T")


@cache
def _converter() -> Converter:
    from interlingua.codec.converter import make_converter  # noqa: PLC0415  cattrs loads with the first value

    return make_converter()


def encode_message(message: Message) -> dict[str, Any]:
    """Return the stored form of a message; frozen JSON inside is shared with it.

    Raises:
        CallerError: it holds what cannot be stored (a time without zone, a hand-made block that would not come back).
    """
    data: dict[str, Any] = _encoded(message, write_message)
    if UNKNOWN_FIELDS in message.metadata.extra:
        put_back(data)
    return data


def decode_message(data: Any) -> Message:
    """Return the message of a stored form; a field that has a default may be absent, a time may be a datetime.

    Raises:
        DecodeError: with the exact `path`, such as `content[0].text`.
    """
    newer = _Newer()
    message = _message(data, newer)
    newer.warn()
    return message


def encode_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the stored forms of a conversation; raises as `encode_message`."""
    return [encode_message(message) for message in messages]


def decode_messages(data: Any) -> list[Message]:
    """Return the conversation of a stored array, or of an iterator over what would stand in one.

    Raises:
        DecodeError: with the exact `path`, such as `messages[3].content[0].text`.
    """
    if not isinstance(data, (list, tuple, Iterator)):
        _decoded(lambda: misfit("array", data), "messages")
    newer = _Newer()
    messages: list[Message] = []
    for each in data:
        try:
            messages.append(read_message(each))
        except FALLBACK_ERRORS:  # the general path says what is wrong, or what is new
            messages.append(_odd_message(each, newer, f"messages[{len(messages)}]"))
    newer.warn()
    return messages


def dumps_message(message: Message) -> str:
    """Write a message as one line of JSON; lone surrogates become U+FFFD (REGRESSIONS case 22).

    Raises:
        CallerError: as `encode_message`, or something inside is not JSON.
    """
    try:
        return dumps(encode_message(message)).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError(f"message {message.id} holds what JSON cannot say: {error}") from error


def loads_message(text: str | bytes) -> Message:
    """Read a message from JSON text.

    Raises:
        DecodeError: not JSON, or as `decode_message`.
    """
    newer = _Newer()
    message = _read(text, newer)
    newer.warn()
    return message


def read_jsonl(lines: Iterable[str | bytes]) -> Iterator[Message]:
    """Read messages from lines of JSON one by one; blank lines are passed over.

    Raises:
        DecodeError: as `loads_message`, and its message says which line, from 1.
    """
    newer = _Newer()
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _read(line, newer, number)
    finally:
        newer.warn()


def encode_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return the stored form of a tool definition."""
    data: dict[str, Any] = _encoded(tool)
    return data


def decode_tool(data: Any) -> ToolDefinition:
    """Return the tool definition of a stored form; fields of a newer version are let go, with a WARN.

    Raises:
        DecodeError: with the exact `path`, such as `input_schema/properties/a/oneOf`.
    """
    tool = _decoded(lambda: _converter().structure(data, ToolDefinition))
    unknown = sorted(map(str, data.keys() - names_of(ToolDefinition)))
    if unknown:
        _warn("tool %s: fields of a newer version were let go: %s", tool.name, ", ".join(unknown))
    return tool


def _encoded(value: Any, fast: Callable[[Any], Any] | None = None) -> Any:
    try:
        if fast is not None:
            try:
                return fast(value)
            except LookupError:  # an unusual one
                pass
        return _converter().unstructure(value)
    except RecursionError as error:
        raise CallerError("the value is nested too deeply to be stored") from error


def _decoded(make: Callable[[], T], prefix: str = "", line: int | None = None) -> T:
    try:
        return make()
    except Misfit as error:
        raise error.decode_error(prefix, line) from error
    except RecursionError as error:
        raise Misfit("nested too deeply").decode_error(prefix, line) from error


def _message(data: Any, newer: _Newer, prefix: str = "", line: int | None = None) -> Message:
    try:
        return read_message(data)
    except FALLBACK_ERRORS:  # the general path says what is wrong, or what is new
        return _odd_message(data, newer, prefix, line)


def _odd_message(data: Any, newer: _Newer, prefix: str = "", line: int | None = None) -> Message:
    message = _decoded(lambda: _exactly(data), prefix, line)
    newer.look(message)
    return message


def _exactly(data: Any) -> Message:
    message: Message = _converter().structure(data, Message)
    extra = unknown_metadata(data)
    taken = take_unknown(data, lambda: _converter().unstructure(message))
    if taken:
        earlier = extra.get(UNKNOWN_FIELDS, {})
        if not isinstance(earlier, dict):
            raise Misfit("expected object", f".metadata.{UNKNOWN_FIELDS}")
        extra[UNKNOWN_FIELDS] = {**earlier, **taken}
    if not extra:
        return message
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, extra=freeze_object(extra)))


def _read(text: str | bytes, newer: _Newer, line: int | None = None) -> Message:
    try:
        data = loads(text)
    except ValueError as error:
        text = f"not JSON: {error}" if line is None else f"line {line}: not JSON: {line_fault(error)}"
        raise DecodeError(text) from error
    return _message(data, newer, "", line)


class _Newer:
    """What a load met that a newer version wrote; one WARN says it all (seed 003 §10)."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.versions: set[int] = set()

    def look(self, message: Message) -> None:
        if message.schema_version > SCHEMA_VERSION:
            self.versions.add(message.schema_version)
        self._look_into(message.content)

    def _look_into(self, content: Iterable[Any]) -> None:
        for block in content:
            if type(block) is UnknownBlock:
                self.types.add(block.raw["type"])
            elif type(block) is ToolResultBlock:
                self._look_into(block.content)

    def warn(self) -> None:
        found = [f"block type {name!r}" for name in sorted(self.types)]
        found += [f"schema_version {number}" for number in sorted(self.versions)]
        if found:
            _warn("written by a newer version, kept as it is: %s", ", ".join(found))


def _warn(text: str, *facts: object) -> None:
    import logging  # noqa: PLC0415  a fifth of what reading a message loads, for what newer versions wrote

    logging.getLogger("interlingua").warning(text, *facts)

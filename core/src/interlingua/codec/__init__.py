"""Canonical JSON: messages and tools as plain JSON data, as one line of JSON text, as lines of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from interlingua._json import describe_json_error, dumps, loads
from interlingua.errors import CallerError, DecodeError
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition

__all__ = [
    "decode_message", "decode_messages", "decode_tool", "dumps_message", "encode_message", "encode_messages",
    "encode_tool", "loads_message", "read_jsonl",
]  # fmt: skip


@cache
def _load(name: str) -> ModuleType:
    """Import `reading` or `writing` with the first value that is read or written: they load cattrs."""
    return import_module(f"interlingua.codec._{name}")


def encode_message(message: Message) -> dict[str, Any]:
    """Return the stored form of a message; frozen JSON inside is shared with it.

    Raises:
        CallerError: it is nested too deeply.
    """
    try:
        data: dict[str, Any] = _load("writing").write_message(message)
    except RecursionError as error:
        raise CallerError("the message is nested too deeply to be stored") from error
    return data


def decode_message(data: Any) -> Message:
    """Return the message of a stored form; a field that has a default may be absent, a time may be a datetime.

    Fields and blocks of a newer version are kept, with one warning in the log.

    Raises:
        DecodeError: with the exact `path`, such as `content[0].text`.
    """
    newer: set[str] = set()
    message: Message = _load("reading").read_message(data, newer)
    _load("reading").log_newer(newer)
    return message


def encode_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return the stored forms of a conversation; raises as `encode_message`."""
    return [encode_message(message) for message in messages]


def decode_messages(data: Any) -> list[Message]:
    """Return the conversation of a stored array, or of an iterator over its items.

    Raises:
        DecodeError: with the exact `path`, such as `messages[3].content[0].text`.
    """
    if not isinstance(data, (list, tuple, Iterator)):
        raise DecodeError(f"expected array, got {type(data).__name__}", path="messages")
    newer: set[str] = set()
    read = _load("reading").read_message
    messages = [read(each, newer, index=index) for index, each in enumerate(data)]
    _load("reading").log_newer(newer)
    return messages


def dumps_message(message: Message) -> str:
    """Write a message as one line of JSON; lone surrogates become U+FFFD.

    Raises:
        CallerError: as `encode_message`, or something inside is not JSON.
    """
    try:
        return dumps(encode_message(message)).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError(f"message {message.id} holds a value that JSON cannot express: {error}") from error


def loads_message(text: str | bytes) -> Message:
    """Read a message from JSON text.

    Raises:
        DecodeError: not JSON, or as `decode_message`.
    """
    try:
        data = loads(text)
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}") from error
    return decode_message(data)


def read_jsonl(lines: Iterable[str | bytes]) -> Iterator[Message]:
    """Read messages from lines of JSON one by one; blank lines are passed over.

    Raises:
        DecodeError: as `loads_message`; its message has the number of the line, from 1.
    """
    newer: set[str] = set()
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    data = loads(line)
                except ValueError as error:
                    raise DecodeError(f"line {number}: not JSON: {describe_json_error(error)}") from error
                yield _load("reading").read_message(data, newer, line=number)
    finally:
        _load("reading").log_newer(newer)


def encode_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return the stored form of a tool definition."""
    return dict(_load("writing").write_value(tool))


def decode_tool(data: Any) -> ToolDefinition:
    """Return the tool definition of a stored form; fields of a newer version are dropped, with a warning in the log.

    Raises:
        DecodeError: with the exact `path`, such as `input_schema/properties/a/oneOf`.
    """
    tool: ToolDefinition = _load("reading").read_tool(data)
    return tool

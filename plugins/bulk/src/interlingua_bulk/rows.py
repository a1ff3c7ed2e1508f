"""The input: rows of JSON Lines, each read as one request."""

from __future__ import annotations

import hashlib
import json
from array import array
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua.codec import decode_messages, decode_tool, encode_message, encode_tool
from interlingua.errors import CallerError, DecodeError, InterlinguaError
from interlingua.types import (
    Message,
    RequestKwargs,
    RequestOptions,
    SideEffects,
    ToolChoice,
    ToolDefinition,
    assistant,
    from_wire_tool,
    system,
    user,
)
from interlingua_bulk.answers import BulkInput, part_file

_BLOCK = 1 << 20
_LINES = 1 << 10  # read between two questions whether the run was stopped
_BUCKETS = 1024
_LONGEST = 20  # digits of an integer of 64 bits
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_FACTORIES = {"user": user, "system": system, "assistant": assistant}
ROW_FIELDS = frozenset({"id", "prompt", "system", "messages", "tools", "options", "output_schema", "model", "metadata"})

_KINDS: dict[str, tuple[type, str]] = {
    "prompt": (str, "a string"),
    "system": (str, "a string"),
    "model": (str, "a string"),
    "messages": (list, "a list"),
    "tools": (list, "a list"),
    "options": (dict, "an object"),
    "metadata": (dict, "an object"),
    "body": (dict, "an object"),
}

ReadWire = Callable[[Mapping[str, Any], str | None], tuple[Sequence[Message], Sequence[ToolDefinition], dict[str, Any]]]
"""Reads a row in a provider's own request format; see `wire_rows.py`."""

Stopped = Callable[[], bool]
"""Asked again and again while files are read: True ends the reading."""


def is_never_stopped() -> bool:
    """Return False."""
    return False


@attrs.define
class BulkRow:
    """One request.

    Attributes:
        index: place in the input, from 0.
        id: its own, or its line number as a string.
        messages: the conversation; a string is one user message.
        tools: tools that the model may call.
        options: options of this row, named as in `RequestKwargs`.
        model: instead of the run's model.
        metadata: comes back in the row's line of the output.
    """

    index: int
    id: str
    messages: str | Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    model: str | None = None
    metadata: Mapping[str, Any] | None = None


class InspectionStoppedError(Exception):
    """Raised when an input is not read to its end, because the run was stopped."""


def inspect_input(
    path: Path,
    known_sha256: str | None = None,
    model: str | None = None,
    stopped: Stopped = is_never_stopped,
) -> BulkInput:
    """Read the whole input once, and reject it if a row has a wrong field or rows could be confused.

    Args:
        path: JSON Lines.
        known_sha256: hash of an input that was inspected before; the same bytes are not inspected again.
        model: model of rows without a model.
        stopped: asked again and again; reading ends when it returns True.

    Raises:
        DecodeError: a line is not a JSON object, a field has another type, a row has no model, or two rows share an id;
            the message has the row.
        InspectionStoppedError: `stopped` returned True.
    """
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            check_stop(stopped)
            digest.update(block)
            size += len(block)
    known = BulkInput(path, 0, size, digest.hexdigest())
    if known.sha256 == known_sha256:
        return attrs.evolve(known, rows=sum(1 for _ in _lines(known, stopped)))
    return attrs.evolve(known, rows=_check_rows(known, model, stopped))


def check_stop(stopped: Stopped) -> None:
    """Raise `InspectionStoppedError` if a run was stopped."""
    if stopped():
        raise InspectionStoppedError


def iterate_rows(
    source: BulkInput, wanted: Callable[[int], bool] = lambda _: True, stopped: Stopped = is_never_stopped
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the index and the JSON object of each wanted row, without empty lines and without what was added later.

    Raises:
        DecodeError: a line is not a JSON object, or the file was changed after its inspection.
        InspectionStoppedError: `stopped` returned True.
    """
    for index, (number, line) in enumerate(_lines(source, stopped)):
        if wanted(index):
            yield index, load_row(line, str(source.path), number)


def split_input(source: BulkInput, rows: int, stopped: Stopped = is_never_stopped) -> Iterator[BulkInput]:
    """Yield an input in parts of at most so many rows.

    Raises:
        DecodeError: the file was changed after its inspection.
        InspectionStoppedError: `stopped` returned True.
    """
    start, size, first, count, digest = 0, 0, 1, 0, hashlib.sha256()
    for number, line in _all_lines(source, stopped):
        if count == rows and line.strip():
            yield BulkInput(source.path, count, size, digest.hexdigest(), start, first)
            start, size, first, count, digest = start + size, 0, number, 0, hashlib.sha256()
        digest.update(line)
        size += len(line)
        count += bool(line.strip())
    if count:
        yield BulkInput(source.path, count, size, digest.hexdigest(), start, first)


def _lines(source: BulkInput, stopped: Stopped) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line that is not empty."""
    return ((number, line) for number, line in _all_lines(source, stopped) if line.strip())


def _all_lines(source: BulkInput, stopped: Stopped) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line, up to the size at the inspection."""
    digest, left = hashlib.sha256(), source.size
    with source.path.open("rb", buffering=_BLOCK) as file:
        file.seek(source.start)
        for number, line in enumerate(file, source.line):
            line = line[:left]  # noqa: PLW2901  the last line may have been continued
            digest.update(line)
            left -= len(line)
            if number % _LINES == 0:
                check_stop(stopped)
            yield number, line
            if not left:
                break
    if digest.hexdigest() != source.sha256:
        raise DecodeError(f"{source.path} was changed while it was read: its answers may be those of other rows")


def read_row(
    index: int, data: Mapping[str, Any], read_wire: ReadWire | None = None, default_model: str | None = None
) -> BulkRow:
    """Read one row.

    Args:
        index: its place in the input.
        data: `{"id", "prompt"}`, `{"id", "messages"}` or a line of a batch file, `{"custom_id", "url", "body"}`.
        read_wire: reads the body of a batch file's line.
        default_model: the run's, for rows that name none.

    Raises:
        CallerError: the row has another form, or part of it cannot be read.
    """
    name, metadata = row_id(index, data), data.get("metadata")
    if "body" in data:
        if read_wire is None:
            raise CallerError("this row has a body, as in a batch file: write a prompt or messages")
        messages, tools, options = read_wire(data, default_model)
        return BulkRow(index, name, messages, tools, options, options.pop("model", None), metadata)
    if unknown := data.keys() - ROW_FIELDS:
        raise CallerError(_unknown_field(unknown))
    options = read_options(data.get("options") or {})
    if (schema := data.get("output_schema")) is not None:
        options["response_schema"] = schema
    tools = [_tool(tool) for tool in data.get("tools") or ()]
    return BulkRow(index, name, _conversation(data), tools, options, data.get("model"), metadata)


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that were given as JSON: names as in `RequestKwargs`; the one tool to call is `{"name": …}`."""
    if not isinstance(given, Mapping):
        raise CallerError("a row's options are an object of names and values")
    options = dict(given)
    choice = options.get("tool_choice")
    if isinstance(choice, Mapping) and choice.keys() == {"name"}:
        options["tool_choice"] = ToolChoice(choice["name"])
    return options


def write_asked(model: str | None, options: Mapping[str, Any], tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Return a run's arguments as JSON, with options in the form that `read_options` reads."""
    choice = options.get("tool_choice")
    named = {"tool_choice": {"name": choice.name}} if isinstance(choice, ToolChoice) else {}
    return {"model": model, "options": {**options, **named}, "tools": [encode_tool(tool) for tool in tools]}


def unread_row(index: int, data: Mapping[str, Any]) -> BulkRow:
    """Return a row without its request; the line of its answer or error needs no more."""
    return BulkRow(index, row_id(index, data), "", metadata=data.get("metadata"))


def row_id(index: int, data: Mapping[str, Any]) -> str:
    """Return a row's id: its own, or its number from 1."""
    found = _own_id(data)
    return str(index + 1) if found is None else str(found)


def _own_id(data: Mapping[str, Any]) -> Any:
    """Return the id in a row, or None."""
    found = data.get("id")
    return data.get("custom_id") if found is None else found


def content_key(row: BulkRow, model: str | None, options: Mapping[str, Any]) -> str:
    """Return a digest of a row's request: model, messages, tools and options, without ids and times."""
    messages: Any = row.messages
    if not isinstance(messages, str):
        encoded = map(encode_message, messages)
        messages = [[message["role"], message["content"]] for message in encoded]
    elif messages:
        messages = [["user", [{"type": "text", "text": messages}]]]
    content = [row.model or model, messages, [encode_tool(tool) for tool in row.tools], {**options, **row.options}]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:32]


def spool_rows(
    rows: Iterable[Mapping[str, Any]],
    path: Path,
    known_sha256: str | None = None,
    stopped: Stopped = is_never_stopped,
) -> Path:
    """Write rows as JSON Lines, so that a run over them can be resumed; return the path.

    A run that reads an earlier file of this name keeps reading that one. Other rows than those of the output that was
    started, of this hash, get a name with their own hash: the output may be continued with its own.

    Raises:
        CallerError: the disk is full, or the folder cannot be written.
        InspectionStoppedError: `stopped` returned True.
    """
    with part_file(path) as part:
        digest = hashlib.sha256()
        with part.open("wb") as file:
            for row in rows:
                check_stop(stopped)
                line = orjson.dumps(row, default=str) + b"\n"
                digest.update(line)
                file.write(line)
        if known_sha256 not in (None, digest.hexdigest()):
            path = path.with_name(f"{path.stem}.{digest.hexdigest()[:8]}{path.suffix}")
        part.replace(path)
    return path


def _conversation(data: Mapping[str, Any]) -> str | Sequence[Message]:
    prompt, messages = data.get("prompt"), data.get("messages")
    if (prompt is None) == (messages is None):
        raise CallerError("a row has either a prompt or messages")
    if prompt is not None:
        if not isinstance(prompt, str):
            raise CallerError("a row's prompt must be a string; write a conversation as messages")
        before = data.get("system")
        return prompt if before is None else (system(str(before)), user(prompt))
    if not isinstance(messages, list):
        raise CallerError("a row's messages are a list")
    if any(isinstance(one, Mapping) and one.keys() == {"role", "content"} for one in messages):
        return [_message(one) for one in messages]
    return decode_messages(messages)


def _message(data: Any) -> Message:
    """Read a message of only a role and a string, or a canonical one."""
    plain = isinstance(data, Mapping) and data.keys() == {"role", "content"} and isinstance(data["content"], str)
    if not plain:
        return decode_messages([data])[0]
    role = data["role"]
    if not isinstance(role, str) or role not in _FACTORIES:
        raise CallerError(f"a row's message has the role {role!r}; the roles are {', '.join(_FACTORIES)}")
    return _FACTORIES[role](data["content"])


def _tool(data: Any) -> ToolDefinition:
    if isinstance(data, Mapping) and "side_effects" in data:
        return decode_tool(data)
    return from_wire_tool(data, side_effects=SideEffects.EXECUTE)


def load_row(line: bytes, name: str, number: int) -> Mapping[str, Any]:
    """Return the JSON object of a line.

    Raises:
        DecodeError: it holds none; the message has the file's name and the line.
    """
    try:
        data = orjson.loads(line.removeprefix(BOM_UTF8) if number == 1 else line)
        if _LONG_NUMBER in line.translate(_ZEROS):  # orjson reads a longer integer as a rounded float
            json.loads(line, parse_int=_read_integer)
    except ValueError as error:
        raise DecodeError(f"{name}, line {number} is not JSON: {error}") from None
    except OverflowError as error:
        raise DecodeError(f"{name}, line {number}: {error}") from None
    if not isinstance(data, dict):
        raise DecodeError(f"{name}, line {number} is not a JSON object")
    return data


def _read_integer(digits: str) -> int:
    if len(digits) > _LONGEST or not -(1 << 63) <= (value := int(digits)) < 1 << 64:
        raise OverflowError(f"an integer has more than 64 bits, write it as a string: {digits[:40]}")
    return value


def _check_rows(source: BulkInput, model: str | None, stopped: Stopped) -> int:
    """Check the fields and ids of all rows, and return how many there are; 8 bytes of memory a row."""
    hashes = [array("q") for _ in range(_BUCKETS)]  # of the ids, compared bucket by bucket
    path, count, named = source.path, 0, 0
    for index, data in iterate_rows(source, stopped=stopped):
        count = index + 1
        if wrong := find_wrong_field(data):
            raise DecodeError(f"{path}, row {count}: {wrong}")
        if not (model or data.get("model") or "body" in data):
            raise DecodeError(f"{path}, row {count} has no model: name one for all rows (-m, model=), or in each row")
        own = _own_id(data)
        if own is not None:
            if not isinstance(own, (str, int)) or own == "":
                raise DecodeError(f"{path}, row {count}: id must be a string or an integer, not {own!r}")
            named += 1
            value = hash(str(own))
            hashes[value % _BUCKETS].append(value)
        if named not in (0, count):
            has = "has no id, but other rows have" if own is None else "has an id, but rows before it have none"
            raise DecodeError(f"{path}, row {count} {has}: write ids in all rows or in no row")
    if not count:
        raise DecodeError(f"{path} holds no row")
    if repeated := {value for bucket in hashes for value in _find_repeated(bucket)}:
        _refuse_repeated(source, repeated)
    return count


def _find_repeated(values: array[int]) -> list[int]:
    counts = Counter(values) if len(set(values)) < len(values) else {}
    return [value for value, count in counts.items() if count > 1]


def _refuse_repeated(source: BulkInput, hashes: set[int]) -> None:
    """Raise the error of the first id that two rows have; only ids with these hashes may be equal."""
    rows: dict[str, int] = {}
    for index, data in iterate_rows(source):
        own = _own_id(data)
        if hash(str(own)) in hashes and (first := rows.setdefault(str(own), index)) != index:
            raise DecodeError(f"{source.path}, row {index + 1}: {own!r} is the id of row {first + 1} too")


def find_wrong_field(data: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a row's fields, or None; messages and tools are read later, row by row."""
    if "body" not in data and (unknown := data.keys() - ROW_FIELDS):
        return _unknown_field(unknown)
    for name, (kind, word) in _KINDS.items():
        if (value := data.get(name)) is not None and not isinstance(value, kind):
            return f"{name} must be {word}, not {type(value).__name__}"
    if "body" not in data and (data.get("prompt") is None) == (data.get("messages") is None):
        return "a row has either a prompt or messages"
    return _find_wrong_option(orjson.dumps(data["options"])) if data.get("options") else None


@lru_cache(maxsize=256)  # most rows have the same
def _find_wrong_option(given: bytes) -> str | None:
    options = read_options(orjson.loads(given))
    if unknown := options.keys() - RequestKwargs.__annotations__.keys():
        return f"unknown option {min(unknown)!r}"
    known = attrs.fields_dict(RequestOptions).keys() - {"model"}
    try:
        RequestOptions(
            model="", **{name: value for name, value in options.items() if name in known and value is not None}
        )
    except CallerError as error:
        return error.message.replace("RequestOptions.", "option ", 1)
    return None


def _unknown_field(unknown: Iterable[str]) -> str:
    return (f"a row has no field {min(unknown)!r}; there are {', '.join(sorted(ROW_FIELDS))};"
            " other data goes into metadata, or into a prompt with --prompt")  # fmt: skip


def explain_row(error: Exception, row: str) -> InterlinguaError:
    """Return an error with the row's id and the part that could not be read."""
    if isinstance(error, InterlinguaError):
        return error
    return CallerError(f"row {row!r} cannot be read: {type(error).__name__}: {error}")

"""The input: rows of JSON Lines or Parquet, each read as one request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua.codec import decode_messages, decode_tool, encode_message, encode_tool
from interlingua.errors import CallerError, DecodeError, InterlinguaError
from interlingua.types import Message, SideEffects, ToolChoice, ToolDefinition, assistant, from_wire_tool, system, user
from interlingua_bulk.answers import BulkInput

_BLOCK = 1 << 20
_FACTORIES = {"user": user, "system": system, "assistant": assistant}
_FIELDS = frozenset({"id", "prompt", "system", "messages", "tools", "options", "output_schema", "model", "metadata"})

ReadWire = Callable[[Mapping[str, Any], str | None], tuple[Sequence[Message], Sequence[ToolDefinition], dict[str, Any]]]
"""Reads a row in a provider's own request format; see `wire_rows.py`."""


@attrs.define
class BulkRow:
    """One request.

    Attributes:
        index: place in the input, from 0.
        id: its own, or its line number as text.
        messages: the conversation; a string is one user message.
        tools: what the model may call.
        options: of this row, names as in `RequestKwargs`.
        model: instead of the run's model.
    """

    index: int
    id: str
    messages: str | Sequence[Message]
    tools: Sequence[ToolDefinition] = ()
    options: Mapping[str, Any] = attrs.field(factory=dict)
    model: str | None = None


def inspect_input(path: Path, known_sha256: str | None = None) -> BulkInput:
    """Read the whole input once, and reject it if rows could be confused.

    Args:
        path: JSON Lines, or Parquet by its suffix `.parquet`.
        known_sha256: hash of an input that was inspected before; the same bytes are not inspected again.

    Raises:
        DecodeError: a line is not a JSON object, or two rows share an id; the message has the line.
    """
    if path.suffix == ".parquet":
        from interlingua_bulk.parquet import count_rows  # noqa: PLC0415  needs the extra

        digest, size = _digest(path)
        rows = count_rows(path)
        if digest != known_sha256:
            _check_ids(path, (data for _, data in iterate_rows(path)))
        return BulkInput(path, rows, size, digest)
    digest, size = _digest(path)
    if digest != known_sha256:
        return BulkInput(path, _check_ids(path, (data for _, data in iterate_rows(path))), size, digest)
    with path.open("rb") as file:
        return BulkInput(path, sum(1 for line in file if line.strip()), size, digest)


def iterate_rows(path: Path, wanted: Callable[[int], bool] = lambda _: True) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the index and the JSON object of each wanted row, without empty lines.

    Raises:
        DecodeError: a line is no JSON object.
    """
    if path.suffix == ".parquet":
        from interlingua_bulk.parquet import read_objects  # noqa: PLC0415  needs the extra

        yield from ((index, data) for index, data in enumerate(read_objects(path)) if wanted(index))
        return
    index = 0
    with path.open("rb", buffering=_BLOCK) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            if wanted(index):
                yield index, _load(line, path, number)
            index += 1


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
    name = row_id(index, data)
    if "body" in data:
        if read_wire is None:
            raise CallerError("this row has a body, as in a batch file: write a prompt or messages")
        messages, tools, options = read_wire(data, default_model)
        return BulkRow(index, name, messages, tools, options, options.pop("model", None))
    if unknown := data.keys() - _FIELDS:
        raise CallerError(f"a row has no field {sorted(unknown)[0]!r}; there are {', '.join(sorted(_FIELDS))}")
    options = read_options(data.get("options") or {})
    if (schema := data.get("output_schema")) is not None:
        options["response_schema"] = schema
    tools = [_tool(tool) for tool in data.get("tools") or ()]
    return BulkRow(index, name, _conversation(data), tools, options, data.get("model"))


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


def row_id(index: int, data: Mapping[str, Any]) -> str:
    """Return a row's id: its own, or its number from 1."""
    found = data.get("id")
    if found is None:
        found = data.get("custom_id")
    return str(index + 1) if found is None else str(found)


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


def spool_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """Write rows as JSON Lines, so that a run over them can be resumed; return the path."""
    with path.open("wb") as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)
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
    if plain and data["role"] in _FACTORIES:
        return _FACTORIES[data["role"]](data["content"])
    return decode_messages([data])[0]


def _tool(data: Any) -> ToolDefinition:
    if isinstance(data, Mapping) and "side_effects" in data:
        return decode_tool(data)
    return from_wire_tool(data, side_effects=SideEffects.EXECUTE)


def _load(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    try:
        data = orjson.loads(line)
    except ValueError as error:
        raise DecodeError(f"{path}, line {number} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise DecodeError(f"{path}, line {number} is no JSON object")
    return data


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()


def _check_ids(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of rows; 8 bytes of each id's digest are kept."""
    seen: set[int] = set()
    count = 0
    for count, data in enumerate(rows, 1):
        own = data.get("id") if data.get("id") is not None else data.get("custom_id")
        if own is not None:
            if not isinstance(own, (str, int)) or own == "":
                raise DecodeError(f"{path}, row {count}: id must be a string or an integer, not {own!r}")
            seen.add(int.from_bytes(hashlib.blake2b(str(own).encode(), digest_size=8).digest(), "big"))
            if len(seen) < count:
                raise DecodeError(f"{path}, row {count}: {own!r} is another row's id too, or rows before it have none")
        elif seen:
            raise DecodeError(f"{path}, row {count} has no id, but other rows have: write ids in all rows or in no row")
    if not count:
        raise DecodeError(f"{path} holds no row")
    return count


def explain_row(error: Exception, row: str) -> InterlinguaError:
    """Return an error with the row's id and the part that could not be read."""
    if isinstance(error, InterlinguaError):
        return error
    return CallerError(f"row {row!r} cannot be read: {type(error).__name__}: {error}")

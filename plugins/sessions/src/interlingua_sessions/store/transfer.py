"""Sessions as lines of JSON: a header, the messages, then the other records (docs/sessions/store.md)."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua import CallerError
from interlingua.codec import dumps_message, loads_message
from interlingua.errors import DecodeError
from interlingua.types import (
    ContentBlock,
    Message,
    ToolResultBlock,
    ToolUseBlock,
    new_tool_use_id,
    new_ulid,
    split_tool_results,
)
from interlingua_sessions.store.maintenance import INSERT_PRICE
from interlingua_sessions.store.schema import Database, EntryKind, Row, ToolCallStatus
from interlingua_sessions.store.statements import (
    PAGE,
    UNKNOWN,
    Statements,
    column_text,
    exact_json,
    id_after,
    message_row,
    now_stamp,
    read_line,
    stamp_of,
    time_of,
)

FORMAT_VERSION = 1  # of the canonical format, if a header says nothing
FORMAT = 1

_SESSION_LINE = """
    SELECT id, workspace_path, active_model, routing_policy_json, schema_version, created_at, updated_at
    FROM sessions WHERE id = ?"""

_CALL_LINES = """
    SELECT c.id, c.status, c.completed_at, r.started_at, r.error
    FROM tool_calls c LEFT JOIN tool_runs r ON r.tool_call_id = c.id
    WHERE c.session_id = ? ORDER BY c.message_id, c.id"""

_RESULT_LINES = """
    SELECT k.result_json FROM kept_results k JOIN tool_calls c ON c.id = k.tool_call_id
    WHERE c.session_id = ? ORDER BY k.tool_call_id"""

_ENTRY_LINES = """
    SELECT id, kind, custom_type, text, data_json, after_message_id, created_at
    FROM session_entries WHERE session_id = ? ORDER BY id"""

_PRICE_LINES = """
    SELECT r.message_id, r.repriced_at, r.old_usage_json, r.new_usage_json
    FROM repricings r JOIN messages m ON m.id = r.message_id
    WHERE m.session_id = ? ORDER BY r.repriced_at, r.message_id"""


def export_lines(sql: Statements, session_id: str) -> Iterator[str]:
    """Yield a session as lines, header first; raises SessionNotFoundError at once."""
    sql.require_session(session_id)
    rows = sql.database.rows
    return chain(
        _header_lines(rows(_SESSION_LINE, (session_id,))),
        map(_message_line, chain.from_iterable(sql.pages(session_id))),
        _other_lines(sql.database, session_id),
    )


def branch_lines(lines: Iterable[str], at: str) -> Iterator[str]:
    """Yield the lines of a session up to a message, and the other records of what is kept.

    Raises:
        CallerError: the session has no such message; after the last line.
    """
    messages: set[str] = set()
    calls: set[str] = set()
    kept: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "session": lambda _: True,
        "tool_call": lambda data: data["id"] in calls,
        "kept_result": lambda data: data["message"]["content"][0]["tool_use_id"] in calls,
        "session_entry": lambda data: data["after"] is None or data["after"] in messages,
        "repricing": lambda data: data["message_id"] in messages,
    }
    for line in lines:
        data = orjson.loads(line)
        if "role" not in data:
            if kept[data["type"]](data):
                yield line
        elif at not in messages:
            messages.add(data["id"])
            calls.update(block["id"] for block in data["content"] if block["type"] == "tool_use")
            yield line
    if at not in messages:
        raise CallerError(f"the session has no message {at!r} to branch at")


def write_lines(lines: Iterable[str], path: Path, progress: Callable[[int], None] | None) -> int:
    """Write lines to a file and return their number; an incomplete file is never left behind.

    Raises:
        CallerError: the file cannot be written.
    """
    count = 0
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".", delete=False
        ) as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
                if progress is not None and count % PAGE == 0:
                    progress(PAGE)
        os.replace(file.name, path)  # noqa: PTH105  Path.replace says the same and hides that it is atomic
    except OSError as error:
        raise CallerError(f"{path} cannot be written: {error}") from error
    return count


@contextmanager
def read_lines(path: Path, progress: Callable[[int], None] | None) -> Iterator[Iterable[bytes]]:
    """Open a file of lines; errors raised meanwhile name the file.

    Raises:
        CallerError: the file cannot be read.
    """
    try:
        with path.open("rb") as lines:
            yield lines if progress is None else _counted(lines, progress)
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error}") from error
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from error


def import_lines(sql: Statements, lines: Iterable[str | bytes], session_id: str | None) -> str:
    """Create a session from lines in one transaction and return its id; errors as `Store.import_lines`."""
    with sql.database.transaction():
        running: _Import | None = None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                data = _object(line)
                if running is None:
                    running = _Import(sql, data if data.get("type") == "session" else {}, session_id)
                running.take(data, line)
            except (DecodeError, LookupError, TypeError, ValueError) as error:
                why = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise DecodeError(f"line {number}: {why}") from error
        if running is None:
            raise DecodeError("there is nothing to import: no line holds anything")
        running.close()
    return running.session_id


def _header_lines(rows: Iterable[Row]) -> Iterator[str]:
    for name, workspace, model, policy, version, created, updated in rows:
        yield _record_line(
            "session", format=FORMAT, id=name, workspace_path=workspace, active_model=model,
            routing_policy=_json(policy), schema_version=version,
            created_at=_time_text(created), updated_at=_time_text(updated),
        )  # fmt: skip


def _other_lines(database: Database, session_id: str) -> Iterator[str]:
    for call, status, completed, started, error in database.rows(_CALL_LINES, (session_id,)):
        times = {"started_at": _time_text(started), "completed_at": _time_text(completed)}
        yield _record_line("tool_call", id=call, status=status, **times, error=error)
    for (result,) in database.rows(_RESULT_LINES, (session_id,)):
        yield _record_line("kept_result", message=_json(result))
    for name, kind, custom, text, data, after, created in database.rows(_ENTRY_LINES, (session_id,)):
        yield _record_line(
            "session_entry", id=name, kind=kind, custom_type=custom, text=text,
            data=_json(data), after=after, created_at=_time_text(created),
        )  # fmt: skip
    for message, stamp, old, new in database.rows(_PRICE_LINES, (session_id,)):
        yield _record_line(
            "repricing", message_id=message, repriced_at=_time_text(stamp), old=_json(old), new=_json(new)
        )


def _message_line(row: Row) -> str:
    """Return a message's line, with the unknown fields that a newer version wrote."""
    line = read_line(row)
    return dumps_message(loads_message(line)) if UNKNOWN in line else line


def _record_line(record: str, /, **fields: Any) -> str:
    return orjson.dumps({"type": record, **fields}).decode()


def _json(text: str | None) -> Any:
    return None if text is None else orjson.Fragment(text)


def _time_text(stamp: int | None) -> str | None:
    return None if stamp is None else f"{time_of(stamp).isoformat(timespec='microseconds')[:-6]}Z"


class _Import:
    """One import in progress."""

    def __init__(self, sql: Statements, header: Mapping[str, Any], session_id: str | None) -> None:
        self._sql, self._database = sql, sql.database
        self.session_id: str = session_id or header.get("id") or new_ulid()
        now = now_stamp()
        self._updated = _stamp(header.get("updated_at")) or now
        policy = header.get("routing_policy")
        sql.insert_session((
            self.session_id, header.get("workspace_path", ""), header.get("active_model"),
            None if policy is None else exact_json(policy),
            header.get("schema_version", FORMAT_VERSION), _stamp(header.get("created_at")) or now, self._updated,
        ))  # fmt: skip
        self._ids = IdMap(sql.database, self.session_id)
        self._last_entry = ""

    def take(self, data: dict[str, Any], line: str | bytes) -> None:
        """Store the record of one line."""
        kind = None if "role" in data else data.get("type")
        if kind is None:
            for message in split_tool_results(loads_message(line)):
                renamed = self._ids.renamed(message)
                self._ids.message(message.id, self._sql.insert(renamed, message_row(renamed)).id)
        elif kind in _RECORDS:
            _RECORDS[kind](self, data)
        elif kind != "session":
            raise ValueError(f"this version knows no record of type {kind!r}: update interlingua-sessions")

    def close(self) -> None:
        """Restore the time the session was last used, because importing does not count as use."""
        self._database.run("UPDATE sessions SET updated_at = ? WHERE id = ?", (self._updated, self.session_id))

    def _tool_call(self, data: dict[str, Any]) -> None:
        call, status = self._ids.call(data["id"]), ToolCallStatus(data["status"])
        row = (status.value, _stamp(data.get("completed_at")), call, self.session_id)
        if not self._database.run(
            "UPDATE tool_calls SET status = ?, completed_at = ? WHERE id = ? AND session_id = ?", row
        ):
            raise ValueError(f"no message before this line holds call {data['id']!r}")
        started, error = _stamp(data.get("started_at")), data.get("error")
        if started is not None or error is not None:
            self._sql.set_run(column_text(call), started, error)

    def _kept_result(self, data: dict[str, Any]) -> None:
        message = self._ids.renamed(loads_message(exact_json(data["message"])))
        (result,) = message.tool_results
        self._sql.keep_result(column_text(result.tool_use_id), dumps_message(message))

    def _entry(self, data: dict[str, Any]) -> None:
        taken = self._database.rows("SELECT 1 FROM session_entries WHERE id = ?", (data["id"],))
        self._last_entry = id_after(self._last_entry, None if taken else data["id"])
        after = data.get("after")
        self._sql.insert_entry((
            self._last_entry, self.session_id, EntryKind(data["kind"]).value, data.get("custom_type"), data["text"],
            exact_json(data["data"]),
            None if after is None else self._ids.stored(after), _stamp(data["created_at"]),
        ))  # fmt: skip

    def _repricing(self, data: dict[str, Any]) -> None:
        texts = [exact_json(data[name]) for name in ("old", "new")]
        self._database.run(INSERT_PRICE, (self._ids.stored(data["message_id"]), _stamp(data["repriced_at"]), *texts))


_RECORDS = {
    "tool_call": _Import._tool_call,
    "kept_result": _Import._kept_result,
    "session_entry": _Import._entry,
    "repricing": _Import._repricing,
}


def _counted(lines: Iterable[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    for line in lines:
        yield line
        progress(len(line))


def _object(line: str | bytes) -> dict[str, Any]:
    data = json.loads(line)
    if not isinstance(data, dict):
        raise TypeError(f"expected a JSON object, got {line[:40]!r}")
    return data


def _stamp(text: str | None) -> int | None:
    return None if text is None else stamp_of(datetime.fromisoformat(text))


class IdMap:
    """The ids of an imported session: each id is kept, or replaced if the store has it already.

    No two calls get the same id, even if they share one in the file: a result belongs to the last call before it.
    """

    def __init__(self, database: Database, session_id: str) -> None:
        self._db = database
        self._session_id = session_id
        self._messages: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._given: set[str] = set()

    def message(self, old: str, stored: str) -> None:
        """Record the id under which a message was stored."""
        self._messages[old] = stored

    def stored(self, old: str) -> str:
        """Return the id a message was stored under.

        Raises:
            ValueError: the message is not before this line.
        """
        if old not in self._messages:
            raise ValueError(f"no message {old!r} before this line")
        return self._messages[old]

    def call(self, old: str) -> str:
        """Return the new id of the last call with this id in the file."""
        return self._calls.get(old, old)

    def renamed(self, message: Message) -> Message:
        """Return the message as one of the new session."""
        content = tuple(map(self._block, message.content))
        metadata, parent = message.metadata, message.metadata.parent_tool_use_id
        if parent is not None and self.call(parent) != parent:
            metadata = attrs.evolve(metadata, parent_tool_use_id=self.call(parent))
        return attrs.evolve(message, session_id=self._session_id, content=content, metadata=metadata)

    def _block(self, block: ContentBlock) -> ContentBlock:
        if type(block) is ToolUseBlock:
            self._calls[block.id] = self._free(block.id)
            return attrs.evolve(block, id=self._calls[block.id])
        if type(block) is ToolResultBlock:
            return attrs.evolve(block, tool_use_id=self.call(block.tool_use_id))
        return block

    def _free(self, call: str) -> str:
        taken = call in self._given or self._db.rows("SELECT 1 FROM tool_calls WHERE id = ?", (column_text(call),))
        free = new_tool_use_id() if taken else call
        self._given.add(free)
        return free

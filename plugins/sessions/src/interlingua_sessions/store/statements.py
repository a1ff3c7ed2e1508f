"""The statements of the store, for both databases, and how messages become rows and rows messages.

Methods that write run inside a transaction that their caller began. A column's text is what both databases can hold: no
NUL, no lone surrogate; inside JSON those are escaped or replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain
from time import time_ns
from typing import Any

import attrs
import orjson

from interlingua import CallerError
from interlingua.codec import decode_message, decode_messages, dumps_message, encode_message
from interlingua.errors import DecodeError
from interlingua.types import Message, MessageStatus, ToolResultBlock, ToolUseBlock, new_ulid, ulid_before, user
from interlingua_sessions.store.schema import (
    Database,
    EntryKind,
    Row,
    SessionChanges,
    SessionEntry,
    SessionExistsError,
    SessionNotFoundError,
    SessionRecord,
    StoreError,
    ToolCallRecord,
    ToolCallStatus,
)

COLUMNS = "id, session_id, role, content_json, metadata_json, created_at, schema_version"
_FIELDS = frozenset({"id", "session_id", "role", "content", "metadata", "created_at", "schema_version"})

UNKNOWN = "_unknown_fields"
"""Where the codec keeps fields that a newer version wrote."""

EXACT = " "
"""Begins a JSON column that a fast parser would round: it holds integers of more than 64 bits."""

_EXACTLY = (EXACT, EXACT.encode())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

ENTRY_CONTENT = "interlingua.content"
"""Key in an entry's data that its blocks are stored under."""

PAGE = 500
"""Messages that are read at a time."""

_SESSION = "id, workspace_path, active_model, routing_policy_json, schema_version, created_at, updated_at"
_SESSION_WIDTH = _SESSION.count(",") + 1
_ENTRY = "id, session_id, kind, custom_type, text, data_json, after_message_id, created_at"

_CHANGES = """
    SELECT s.id, s.workspace_path, s.active_model, s.routing_policy_json, s.schema_version, s.created_at, s.updated_at,
        (SELECT count(*) FROM session_entries e WHERE e.session_id = s.id), {columns}
    FROM sessions s LEFT JOIN messages m ON m.session_id = s.id AND m.id > ?
    WHERE s.id = ? ORDER BY m.id LIMIT ?"""

_INSERT_LAST = f"""
    INSERT INTO messages ({COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM messages WHERE session_id = ? AND id > ?) ON CONFLICT (id) DO NOTHING"""

_INSERT = f"INSERT INTO messages ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
_LAST = "SELECT id FROM messages WHERE session_id = ? ORDER BY id DESC LIMIT 1"

_REPLACE = """
    UPDATE messages SET role = ?, content_json = ?, metadata_json = ?, created_at = ?, schema_version = ?
    WHERE id = ? AND session_id = ?"""

_REPLACE_PARTIAL = f"{_REPLACE} AND EXISTS (SELECT 1 FROM partial_messages WHERE message_id = ?)"

_CALLS = """
    INSERT INTO tool_calls
        (id, session_id, message_id, name, status, provider_id, provider, created_at, completed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"""

_ANSWER = """
    UPDATE tool_calls SET
        result_message_id = ?,
        status = CASE WHEN status = 'cancelled' THEN status ELSE ? END,
        completed_at = coalesce(completed_at, ?)
    WHERE id = ? AND session_id = ? AND result_message_id IS NULL"""

_END = """
    UPDATE tool_calls SET result_message_id = ?, status = ?, completed_at = ?
    WHERE id = ? AND session_id = ? AND result_message_id IS NULL"""

_RUN = """
    INSERT INTO tool_runs (tool_call_id, started_at, error) SELECT id, ?, ? FROM tool_calls WHERE id = ?
    ON CONFLICT (tool_call_id) DO UPDATE SET
        started_at = coalesce(excluded.started_at, tool_runs.started_at),
        error = coalesce(excluded.error, tool_runs.error)"""

_KEEP = """
    INSERT INTO kept_results (tool_call_id, result_json) SELECT id, ? FROM tool_calls WHERE id = ?
    ON CONFLICT (tool_call_id) DO UPDATE SET result_json = excluded.result_json"""

_CALL = """
    SELECT c.id, c.session_id, c.message_id, c.result_message_id, c.name, c.status, c.provider_id, c.provider,
        c.created_at, c.completed_at, r.started_at, r.error
    FROM tool_calls c LEFT JOIN tool_runs r ON r.tool_call_id = c.id"""

_PENDING, _SUCCEEDED, _FAILED, _CANCELLED = (status.value for status in ToolCallStatus)


@attrs.frozen
class CallEnd:
    """How a call ended, with details that its result block does not have; written with the result's message."""

    status: ToolCallStatus
    completed_at: int
    error: str | None = None
    kept_result: str | None = None


class Statements:
    """Every statement of the store over one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.columns = read_columns(database.as_json)
        self.joined_columns = read_columns(database.as_json, "m.")
        self._changes = _CHANGES.format(columns=self.joined_columns)

    def one(self, sql: str, row: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.database.rows(sql, row)
        return rows[0] if rows else None

    # Sessions

    def touch(self, session_id: str) -> None:
        """Update the time a session was last used, which locks it until the end of the transaction.

        Raises:
            SessionNotFoundError: it is not there.
        """
        if not self.database.run("UPDATE sessions SET updated_at = ? WHERE id = ?", (now_stamp(), session_id)):
            raise not_found(session_id)

    def insert_session(self, row: Row) -> SessionRecord:
        """Store the row of a new session and return its record."""
        sql = f"INSERT INTO sessions ({_SESSION}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
        if not self.database.run(sql, row):
            raise SessionExistsError(f"a session {row[0]!r} already exists; choose another id")
        return read_session(row)

    def update_session(self, session_id: str, values: dict[str, Any]) -> None:
        """Change columns of a session; raises as `touch`."""
        sql = f"UPDATE sessions SET {''.join(f'{name} = ?, ' for name in values)}updated_at = ? WHERE id = ?"
        if not self.database.run(sql, [*values.values(), now_stamp(), session_id]):
            raise not_found(session_id)

    def session(self, session_id: str) -> SessionRecord:
        """Return a session; raises as `touch`."""
        row = self.one(f"SELECT {_SESSION} FROM sessions WHERE id = ?", (session_id,))
        if row is None:
            raise not_found(session_id)
        return read_session(row)

    def sessions(self, workspace_path: str | None, limit: int | None) -> Iterator[SessionRecord]:
        """Yield sessions, the latest used first."""
        where, row = ("", []) if workspace_path is None else ("WHERE workspace_path = ?", [workspace_path])
        top = "" if limit is None else f"LIMIT {int(limit)}"
        sql = f"SELECT {_SESSION} FROM sessions {where} ORDER BY updated_at DESC, id DESC {top}"
        return map(read_session, self.database.rows(sql, row))

    def session_ids(self, session_id: str | None = None) -> list[str]:
        """Return the ids of all sessions in order, or only this one; raises as `touch`."""
        if session_id is not None:
            self.require_session(session_id)
            return [session_id]
        return [row[0] for row in self.database.rows("SELECT id FROM sessions ORDER BY id")]

    def require_session(self, session_id: str) -> None:
        """Raise as `touch` if a session does not exist."""
        if self.one("SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
            raise not_found(session_id)

    def changes(self, session_id: str, after: str) -> SessionChanges:
        """Return what was added to a session after a message, in one statement; raises as `touch`."""
        rows = self.database.rows(self._changes, (after, session_id, PAGE))
        if not rows:
            raise not_found(session_id)
        head, found = rows[0], [row[_SESSION_WIDTH + 1 :] for row in rows if row[_SESSION_WIDTH + 1] is not None]
        pages: Iterable[list[Row]] = [found] if found else []
        if len(found) == PAGE:
            pages = chain(pages, self.pages(session_id, after=found[-1][0]))
        return SessionChanges(
            record=read_session(head[:_SESSION_WIDTH]),
            messages=list(read_pages(pages)),
            entry_count=head[_SESSION_WIDTH],
        )

    # Messages

    def pages(
        self,
        session_id: str,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[list[Row]]:
        """Yield rows of messages (`read_columns`) page by page, no transaction or cursor open between two."""
        low, high, left = after, before, limit
        order = "id DESC" if newest_first else "id"
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            bounds = [(sign, bound) for sign, bound in ((">", low), ("<", high)) if bound is not None]
            where = "".join(f" AND id {sign} ?" for sign, _ in bounds)
            sql = f"SELECT {self.columns} FROM messages WHERE session_id = ?{where} ORDER BY {order} LIMIT ?"
            rows = self.database.rows(sql, [session_id, *(bound for _, bound in bounds), size])
            if rows:
                yield rows
            if len(rows) < PAGE:
                return
            low, high = (low, rows[-1][0]) if newest_first else (rows[-1][0], high)
            left = None if left is None else left - len(rows)

    def message(self, message_id: str) -> Message:
        """Return one message, or raise CallerError."""
        row = self.one(f"SELECT {self.columns} FROM messages WHERE id = ?", (message_id,))
        if row is None:
            raise CallerError(f"there is no message {message_id!r} in this store")
        return read_message(row)

    def first_of_role(self, session_id: str, role: str) -> Message | None:
        """Return the first message of a role in a session, or None."""
        sql = f"SELECT {self.columns} FROM messages WHERE session_id = ? AND role = ? ORDER BY id LIMIT 1"
        row = self.one(sql, (session_id, role))
        return None if row is None else read_message(row)

    def last_id(self, session_id: str) -> str:
        """Return the id of the newest message, or an empty string."""
        row = self.one(_LAST, (session_id,))
        return row[0] if row else ""

    def insert_last(
        self, message: Message, row: list[Any], seen: str | None = None, end: CallEnd | None = None
    ) -> bool:
        """Store a message under its own id, if it is the greatest of its session and no id is greater than `seen`.

        One statement that reads nothing back, and all that nearly every append needs.
        """
        if (seen is not None and message.id <= seen) or not may_be_last(message.id):
            return False
        if not self.database.run(_INSERT_LAST, [*row, message.session_id, message.id if seen is None else seen]):
            return False
        self._insert_related(message, end)
        return True

    def insert(self, message: Message, row: list[Any], end: CallEnd | None = None) -> Message:
        """Store a message under an id greater than every other of its session, and return it as stored."""
        if self.insert_last(message, row, None, end):
            return message
        last = self.last_id(message.session_id)
        final = id_after(last, message.id)
        while not self.database.run(_INSERT, [final, *row[1:]]):  # another session has a message of this id: a copy
            final = id_after(last)
        if final != message.id:
            message = attrs.evolve(message, id=final)
        self._insert_related(message, end)
        return message

    def insert_first(self, message: Message, row: list[Any]) -> Message:
        """Store a message in front of all others of its session, and return it as stored."""
        first = self.one("SELECT id FROM messages WHERE session_id = ? ORDER BY id LIMIT 1", (message.session_id,))
        if first is None:
            return self.insert(message, row)
        final = id_before(first[0])
        while not self.database.run(_INSERT, [final, *row[1:]]):  # another session has a message of this id: a copy
            final = id_before(final)
        return attrs.evolve(message, id=final)

    def replace_partial(self, row: list[Any]) -> bool:
        """Overwrite a PARTIAL message; False if it does not exist."""
        message_id, session_id, *rest = row
        return self.database.run(_REPLACE_PARTIAL, [*rest, message_id, session_id, message_id]) > 0

    def finish_partial(self, message: Message, row: list[Any]) -> bool:
        """Replace a PARTIAL message by its final state; False if it does not exist."""
        if not self.database.run("DELETE FROM partial_messages WHERE message_id = ?", (message.id,)):
            return False
        message_id, session_id, *rest = row
        if not self.database.run(_REPLACE, [*rest, message_id, session_id]):
            raise CallerError(f"message {message_id} belongs to another session than {session_id!r}")
        self._insert_related(message, None)
        return True

    def _insert_related(self, message: Message, end: CallEnd | None) -> None:
        """Store the rows of a message: the note that it is partial, or its calls and its results."""
        if message.metadata.status is MessageStatus.PARTIAL:
            self.database.run("INSERT INTO partial_messages VALUES (?)", (message.id,))
            return
        made = 0
        calls = []
        for block in message.content:
            if type(block) is ToolUseBlock:
                made = made or stamp_of(message.created_at)
                calls.append(_call_row(message, block, made))
            elif type(block) is ToolResultBlock:
                self._answer(message, block, end)
        if calls and self.database.run_many(_CALLS, calls) != len(calls):
            ids = ", ".join(row[0] for row in calls)
            raise CallerError(f"one of these tool-call ids is in this store already: {ids}; import replaces such ids")

    # Tool calls

    def restore_calls(self, message: Message) -> None:
        """Store what is missing of the rows of a message's calls and answers."""
        made = stamp_of(message.created_at)
        self.database.run_many(_CALLS, [_call_row(message, block, made) for block in message.tool_calls])
        for block in message.tool_results:
            self._answer(message, block, None)

    def _answer(self, message: Message, block: ToolResultBlock, end: CallEnd | None) -> None:
        call = column_text(block.tool_use_id)
        if end is None:
            status = _FAILED if block.is_error else _SUCCEEDED
            self.database.run(_ANSWER, (message.id, status, stamp_of(message.created_at), call, message.session_id))
            return
        self.database.run(_END, (message.id, end.status.value, end.completed_at, call, message.session_id))
        if end.error is not None:
            self.set_run(call, None, end.error)
        if end.kept_result is not None:
            self.keep_result(call, end.kept_result)

    def tool_call(self, tool_use_id: str) -> ToolCallRecord:
        """Return one tool call, or raise CallerError."""
        row = self.one(f"{_CALL} WHERE c.id = ?", (column_text(tool_use_id),))
        if row is None:
            raise no_tool_call(tool_use_id)
        return _read_call(row)

    def tool_calls(self, session_id: str, condition: str = "", *values: Any) -> list[ToolCallRecord]:
        """Return the tool calls of a session in order; `condition` is more SQL behind WHERE."""
        sql = f"{_CALL} WHERE c.session_id = ?{condition} ORDER BY c.message_id, c.id"
        return [_read_call(row) for row in self.database.rows(sql, [session_id, *values])]

    def update_call(self, call: str, changes: dict[str, Any]) -> bool:
        """Change columns of a tool call; False if it does not exist."""
        assignments = ", ".join(f"{name} = ?" for name in changes)
        return self.database.run(f"UPDATE tool_calls SET {assignments} WHERE id = ?", [*changes.values(), call]) > 0

    def set_run(self, call: str, started_at: int | None, error: str | None) -> bool:
        """Store when a call's tool started, or why it failed; False if the call does not exist."""
        return self.database.run(_RUN, (started_at, None if error is None else column_text(error), call)) > 0

    def keep_result(self, call: str, result_json: str) -> bool:
        """Store the full result of a call; False if the call does not exist."""
        return self.database.run(_KEEP, (result_json, call)) > 0

    # Session-only entries

    def insert_entry(self, row: Row) -> None:
        """Store a session-only entry."""
        self.database.run(f"INSERT INTO session_entries ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def last_entry_id(self, session_id: str) -> str:
        """Return the id of the newest entry, or an empty string."""
        row = self.one("SELECT max(id) FROM session_entries WHERE session_id = ?", (session_id,))
        return (row and row[0]) or ""

    def entries(self, session_id: str, kind: EntryKind | None = None) -> list[SessionEntry]:
        """Return the entries of a session in order."""
        only, values = ("", []) if kind is None else (" AND kind = ?", [kind.value])
        sql = f"SELECT {_ENTRY} FROM session_entries WHERE session_id = ?{only} ORDER BY id"
        return [read_entry(row) for row in self.database.rows(sql, [session_id, *values])]


def not_found(session_id: str) -> SessionNotFoundError:
    """Return the error for a session that does not exist."""
    return SessionNotFoundError(
        f"there is no session {session_id!r} in this store (`interlingua session list` shows them)"
    )


def no_tool_call(tool_use_id: str) -> CallerError:
    """Return the error for a tool call that does not exist."""
    return CallerError(f"there is no tool call {tool_use_id!r} in this store")


def read_pages(pages: Iterable[list[Row]]) -> Iterator[Message]:
    """Yield the messages of pages, decoding each page in one step.

    Raises:
        StoreError: a message cannot be read.
    """
    for rows in pages:
        try:
            messages = decode_messages(map(row_data, rows))  # one by one: what is parsed dies young
        except (DecodeError, ValueError):
            messages = [read_message(row) for row in rows]  # raises with the message's id
        yield from messages


def read_session(row: Row) -> SessionRecord:
    """Return the record of a row of `sessions`."""
    name, workspace, model, policy, version, created, updated = row
    return SessionRecord(
        id=name, workspace_path=workspace, active_model=model,
        routing_policy=None if policy is None else orjson.loads(policy), schema_version=version,
        created_at=time_of(created), updated_at=time_of(updated),
    )  # fmt: skip


def read_entry(row: Row) -> SessionEntry:
    """Return the entry of a row of `session_entries`."""
    entry, session, kind, custom, text, data_json, after, created = row
    data = orjson.loads(data_json)
    blocks = data.pop(ENTRY_CONTENT, None)
    return SessionEntry(
        id=entry, session_id=session, kind=EntryKind(kind), custom_type=custom, text=text,
        data=data, after=after, created_at=time_of(created),
        content=() if blocks is None else decode_message({**encode_message(user("")), "content": blocks}).content,
    )  # fmt: skip


def _read_call(row: Row) -> ToolCallRecord:
    call, session, message, result, name, status, issued, provider, created, completed, started, error = row
    return ToolCallRecord(
        id=call, session_id=session, message_id=message, result_message_id=result, name=name,
        status=ToolCallStatus(status), provider_id=issued, provider=provider, created_at=time_of(created),
        completed_at=None if completed is None else time_of(completed),
        started_at=None if started is None else time_of(started), error=error,
    )  # fmt: skip


def _call_row(message: Message, block: ToolUseBlock, made: int) -> tuple[Any, ...]:
    metadata = message.metadata
    runs = metadata.status is MessageStatus.COMPLETE
    status, ended = (_PENDING, None) if runs else (_CANCELLED, made)
    issued = None if block.provider_id is None else column_text(block.provider_id)
    call, name = column_text(block.id), column_text(block.name)
    return (call, message.session_id, message.id, name, status, issued, metadata.provider, made, ended)


# Messages and times as columns


def read_columns(as_json: str, table: str = "") -> str:
    """Return the columns of a message as they are selected for `read_message` and `read_line`.

    Args:
        as_json: the database's way to select JSON (`Database.as_json`).
        table: alias of the table, with its dot.
    """
    content, metadata = as_json.format(f"{table}content_json"), as_json.format(f"{table}metadata_json")
    return f"{table}id, {table}session_id, {table}role, {content}, {metadata}, {table}created_at, {table}schema_version"


def stamp_of(time: datetime) -> int:
    """Return microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def time_of(stamp: int) -> datetime:
    """Return the UTC time of a number of microseconds since 1970."""
    return _EPOCH + timedelta(0, 0, stamp)  # by place: half the cost of by name


def now_stamp() -> int:
    """Return the current time in microseconds since 1970."""
    return time_ns() // 1000


def column_text(text: str) -> str:
    """Return a string that both databases accept; lone surrogates are written as the codec writes them."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def message_row(message: Message) -> list[Any]:
    """Return the columns of a message, in the order of COLUMNS.

    Raises:
        CallerError: it holds what cannot be stored.
    """
    data = encode_message(message)
    try:
        content, metadata = orjson.dumps(data["content"]).decode(), orjson.dumps(_metadata(data)).decode()
    except TypeError:  # huge integers or broken text, which the codec's own writer handles
        data = json.loads(dumps_message(message))
        content, metadata = EXACT + exact_json(data["content"]), EXACT + exact_json(_metadata(data))
    made = stamp_of(message.created_at)
    return [message.id, message.session_id, data["role"], content, metadata, made, message.schema_version]


@cache
def _plain_metadata() -> tuple[dict[str, Any], bytes]:
    """Return the metadata of most messages that no model generated, and its JSON; it loads cattrs."""
    metadata = encode_message(user(""))["metadata"]
    return metadata, orjson.dumps(metadata)


def row_data(row: Row) -> dict[str, Any]:
    """Return the stored form of the message in a row (`read_columns`) for the codec; its time is a datetime.

    Raises:
        ValueError: a column is not JSON.
    """
    message_id, session_id, role, content, metadata, made, version = row
    plain, plain_json = _plain_metadata()
    return {
        "id": message_id,
        "session_id": session_id,
        "role": role,
        "content": _parsed(content),
        "metadata": plain if metadata == plain_json else _parsed(metadata),
        "created_at": time_of(made),
        "schema_version": version,
    }


def read_line(row: Row) -> str:
    """Return the canonical JSON of the message in a row (`read_columns`)."""
    message_id, session_id, role, content, metadata, made, version = row
    head = orjson.dumps({"id": message_id, "session_id": session_id, "role": role}).decode()[:-1]
    time = time_of(made).isoformat(timespec="microseconds")[:-6]
    tail = f'"created_at":"{time}Z","schema_version":{version}}}'
    return f'{head},"content":{_text(content)},"metadata":{_text(metadata)},{tail}'


def _metadata(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata, with unknown message fields of a newer version, which have no column."""
    metadata: Mapping[str, Any] = data["metadata"]
    if data.keys() == _FIELDS:
        return metadata
    newer = {name: value for name, value in data.items() if name not in _FIELDS}
    return {**metadata, UNKNOWN: {**metadata.get(UNKNOWN, {}), "": newer}}


def _parsed(column: str | bytes) -> Any:
    return orjson.loads(column) if column[:1] not in _EXACTLY else json.loads(column)


def _text(column: str | bytes) -> str:
    return (column if isinstance(column, str) else column.decode()).lstrip()


def exact_json(value: Any) -> str:
    """Write JSON compactly, with integers of any size."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_message(row: Row) -> Message:
    """Return the message of a row (`read_columns`).

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return decode_message(row_data(row))
    except (DecodeError, ValueError) as error:
        raise StoreError(f"message {row[0]} of the store cannot be read: {error}") from error


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32, the ULID specification
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def id_after(last: str, own: str | None = None) -> str:
    """Return `own` if it is greater than `last` and less than future ids, else a new id that is.

    One session whose clock was ahead does not push the ids of others: the process's own minter is unchanged. An id
    that is not a ULID is kept only when every ULID minted from now on is greater.
    """
    if own is not None and own > last and _ULID.fullmatch(own):
        return own
    minted = new_ulid()
    if own is not None and last < own < minted and own.isascii() and own.isprintable():
        return own
    return minted if minted > last else _successor(last)


def id_before(first: str) -> str:
    """Return an id less than `first`; the next smaller one if it is a ULID."""
    return ulid_before(first) if _ULID.fullmatch(first) else "0" * 10 + new_ulid()[10:]


def _successor(ulid: str) -> str:
    kept = ulid.rstrip("Z")
    return kept[:-1] + _DIGITS[_DIGITS.index(kept[-1]) + 1] + "0" * (len(ulid) - len(kept))


def may_be_last(own: str) -> bool:
    """Tell whether a message may keep this id, provided that no other id of its session is greater."""
    return _ULID.fullmatch(own) is not None or (own < new_ulid() and own.isascii() and own.isprintable())

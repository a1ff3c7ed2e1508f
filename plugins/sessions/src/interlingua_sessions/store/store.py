"""The store: sessions, messages and tool calls in one database, SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeAlias

import orjson

from interlingua import CallerError
from interlingua.codec import dumps_message, encode_message, loads_message
from interlingua.plugins import ModelInfo
from interlingua.types import (
    SCHEMA_VERSION,
    ContentBlock,
    Message,
    MessageStatus,
    Role,
    ToolResultBlock,
    new_ulid,
    user,
)
from interlingua_sessions.store import maintenance, transfer
from interlingua_sessions.store.schema import (
    Database,
    EntryKind,
    Repriced,
    SessionChanges,
    SessionEntry,
    SessionRecord,
    StoreFinding,
    ToolCallRecord,
    ToolCallStatus,
    migrate,
)
from interlingua_sessions.store.search import (
    FoundMessage,
    LoggedTurn,
    index_messages,
    newest_turns,
    search_messages,
)
from interlingua_sessions.store.search import Progress as IndexProgress
from interlingua_sessions.store.statements import (
    ENTRY_CONTENT,
    CallEnd,
    Statements,
    column_text,
    id_after,
    message_row,
    no_tool_call,
    now_stamp,
    read_entry,
    read_pages,
    stamp_of,
)

_CHANGEABLE = ("workspace_path", "active_model", "routing_policy")
_HOLDS = "SELECT 1 FROM messages WHERE id = ? AND session_id = ?"

Progress: TypeAlias = Callable[[int], None]
"""Called from time to time with how many more messages are done."""


class Store:
    """Sessions and their messages on disk. Threads may share one; processes each open their own (`open_store`).

    Every method that writes is one transaction: after it returned, a kill of the process loses nothing of it.
    All may raise `StoreError`; those given a session that is not there raise `SessionNotFoundError`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sql = Statements(database)

    def close(self) -> None:
        """Close the database. A closed store raises on every call."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Sessions

    def create_session(
        self,
        session_id: str | None = None,
        *,
        workspace_path: str = "",
        active_model: str | None = None,
        routing_policy: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """Create a session; without an id it gets a ULID.

        Raises:
            SessionExistsError: there is one of this id.
            CallerError: the id is one that a database cannot hold.
        """
        name = new_ulid() if session_id is None else session_id
        if not name or name != column_text(name):
            raise CallerError(f"{name!r} cannot be the id of a session: write some letters or digits")
        now = now_stamp()
        policy = _json_or_none(routing_policy)
        return self._sql.insert_session(
            (name, column_text(workspace_path), active_model, policy, SCHEMA_VERSION, now, now)
        )

    def session(self, session_id: str) -> SessionRecord:
        """Return a session."""
        return self._sql.session(session_id)

    def sessions(self, *, workspace_path: str | None = None, limit: int | None = None) -> Iterator[SessionRecord]:
        """Yield sessions, the latest used first."""
        return self._sql.sessions(workspace_path, limit)

    def update_session(self, session_id: str, **changes: Any) -> SessionRecord:
        """Change `workspace_path`, `active_model` or `routing_policy`, only those given; None clears the latter two."""
        unknown = sorted(changes.keys() - set(_CHANGEABLE))
        if unknown:
            raise CallerError(f"a session has no {', '.join(unknown)} to change; it has {', '.join(_CHANGEABLE)}")
        values = {name: value for name, value in changes.items() if name != "routing_policy"}
        if "routing_policy" in changes:
            values["routing_policy_json"] = _json_or_none(changes["routing_policy"])
        self._sql.update_session(session_id, values)
        return self._sql.session(session_id)

    def changes(self, session_id: str, *, after: str | None = None) -> SessionChanges:
        """Return what other writers added to a session after a message, read with one statement."""
        return self._sql.changes(session_id, after or "")

    # Messages

    def append(self, message: Message) -> Message:
        """Store a message, its tool calls, and the result in a tool message; return the stored message.

        The returned message has a greater id than every other of its session: its own if that holds already, else
        one minted inside the transaction.

        Raises:
            CallerError: one of its tool-call ids is in this database already.
        """
        row = message_row(message)
        with self._writing(message.session_id):
            return self._sql.insert(message, row)

    def extend(
        self, messages: Iterable[Message], *, opening: Message | None = None, after: str | None = None
    ) -> list[Message]:
        """Append several messages in one transaction, and return them as stored.

        Args:
            messages: the messages to append; possibly of several sessions, unless `after` is given.
            opening: goes in front of the whole session, unless that has a message of its role by then: of two
                processes that begin one conversation with a system prompt, one stores it.
            after: id of the newest message the caller has read, or an empty string; messages that others
                stored after it are returned too, in order, and so is an opening that another process stored.
        """
        rows = [(message, message_row(message)) for message in messages]
        sessions = {message.session_id for message, _ in rows}
        with self.database.transaction():
            for session_id in sorted(sessions if opening is None else {*sessions, opening.session_id}):
                self._sql.touch(session_id)
            front = [] if opening is None else self._put_in_front(opening, after)
            if after is None:
                return front + [self._sql.insert(message, row) for message, row in rows]
            if opening is not None and not rows:
                return front + list(read_pages(self._sql.pages(opening.session_id, after=after)))
            return front + self._insert_behind(rows, after)

    def _put_in_front(self, opening: Message, after: str | None) -> list[Message]:
        """Store an opening if there is none, and return it, unless it is read with the messages after `after`.

        If the caller has read nothing, an opening that existed before is not returned.
        """
        stored = self._sql.first_of_role(opening.session_id, opening.role.value)
        if stored is not None:
            return [stored] if after is not None and stored.id <= after else []
        stored = self._sql.insert_first(opening, message_row(opening))
        return [stored] if after is None or stored.id <= after else []

    def append_result(
        self,
        message: Message,
        *,
        status: ToolCallStatus,
        completed_at: datetime,
        error: str | None = None,
        whole: ToolResultBlock | None = None,
        after: str | None = None,
    ) -> list[Message]:
        """Append the tool message that answers a call, and how the call ended, in one transaction.

        Args:
            message: holds one result.
            status: status of the call; a call with an answer keeps its status.
            completed_at: UTC.
            error: why it failed.
            whole: the result, if the message holds it shortened; `kept_result` returns it.
            after: as for `extend`, and so is what is returned.
        """
        kept = None if whole is None else _result_json(whole, message.session_id)
        end = CallEnd(status, stamp_of(completed_at), error, kept)
        row = message_row(message)
        with self._writing(message.session_id):
            if after is None:
                return [self._sql.insert(message, row, end)]
            return self._insert_behind([(message, row)], after, end)

    def save_partial(self, message: Message) -> Message:
        """Store a PARTIAL message, or its later state; it keeps the id of the first answer.

        Its tool calls get no rows until it is finished.
        """
        if message.metadata.status is not MessageStatus.PARTIAL:
            raise CallerError(f"message {message.id} is {message.metadata.status.value}, not partial: finish it")
        row = message_row(message)
        with self._writing(message.session_id):
            return message if self._sql.replace_partial(row) else self._sql.insert(message, row)

    def finish(self, message: Message) -> Message:
        """Replace the PARTIAL message of this id by its final state, with its tool calls; append it if it is new."""
        if message.metadata.status is MessageStatus.PARTIAL:
            raise CallerError(f"message {message.id} is still partial: save it as such, or say how it ended")
        row = message_row(message)
        with self._writing(message.session_id):
            return message if self._sql.finish_partial(message, row) else self._sql.insert(message, row)

    def message(self, message_id: str) -> Message:
        """Return one message.

        Raises:
            CallerError: the id does not exist.
        """
        return self._sql.message(message_id)

    def messages(
        self,
        session_id: str,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Message]:
        """Yield messages in order, reading some hundreds at a time, with no transaction open in between.

        Args:
            session_id: id of the session.
            after: only messages behind the one of this id.
            before: only messages before the one of this id.
            newest_first: the other way round.
            limit: maximum number of results.
        """
        pages = self._sql.pages(session_id, after=after, before=before, newest_first=newest_first, limit=limit)
        first = next(pages, None)
        if first is None:
            self._sql.require_session(session_id)
        return read_pages(chain([first] if first else [], pages))

    def last(self, session_id: str) -> Message | None:
        """Return the newest message, or None."""
        return next(self.messages(session_id, newest_first=True, limit=1), None)

    def turns(
        self, session_id: str | None = None, *, words: Sequence[str] = (), tools: Iterable[str] = ()
    ) -> Iterator[LoggedTurn]:
        """Yield questions with their answers and tool results, of all sessions or of one, the newest first.

        Words of letters and digits are found by the index that `search` makes: whole or as beginnings of longer ones.

        Args:
            session_id: only of this session.
            words: only those whose question and answers hold all of these, in any case.
            tools: only of sessions in which all of these were called.
        """
        if session_id is not None:
            self._sql.require_session(session_id)
        return newest_turns(self._sql, session_id, words, list(tools))

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        limit: int = 20,
        progress: IndexProgress | None = None,
    ) -> list[FoundMessage]:
        """Return the messages that hold all words of a query, newest sessions first.

        Text, thinking, calls and results are searched, without regard to case and accents. A word of at least three
        letters is also found as the beginning of a longer one; words in double quotes must follow each other. The first
        search makes an index in the database, later ones add what was stored since. An interrupted index continues.
        A store that can only be read is searched without an index, message by message.

        Args:
            query: some words.
            session_id: only of this session.
            limit: maximum number of results.
            progress: called while the index is made, with the number of sessions done and of all.

        Raises:
            CallerError: the query has no word.
        """
        if session_id is not None:
            self._sql.require_session(session_id)
        return search_messages(self._sql, query, session_id, limit, progress)

    def update_index(self, progress: IndexProgress | None = None) -> None:
        """Bring the index of `search` and `turns` up to date, as they do themselves."""
        if not self.database.read_only:
            index_messages(self._sql, progress)

    def count_messages(self, session_id: str) -> int:
        """Return how many messages a session has."""
        row = self._sql.one("SELECT count(*) FROM messages WHERE session_id = ?", (session_id,))
        return int(row[0]) if row else 0

    # Tool calls

    def tool_call(self, tool_use_id: str) -> ToolCallRecord:
        """Return one tool call by its canonical id.

        Raises:
            CallerError: the id does not exist.
        """
        return self._sql.tool_call(tool_use_id)

    def tool_calls(
        self, session_id: str, *, status: ToolCallStatus | None = None, message_id: str | None = None
    ) -> list[ToolCallRecord]:
        """Return the tool calls of a session in order, optionally of one status or one assistant message."""
        wanted = {"status": None if status is None else status.value, "message_id": message_id}
        given = {name: value for name, value in wanted.items() if value is not None}
        return self._sql.tool_calls(session_id, "".join(f" AND c.{name} = ?" for name in given), *given.values())

    def unanswered_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """Return the calls that no tool message answers yet, except cancelled ones."""
        return self._sql.tool_calls(session_id, " AND c.result_message_id IS NULL AND c.status <> 'cancelled'")

    def failed_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """Return the calls that failed."""
        return self.tool_calls(session_id, status=ToolCallStatus.FAILED)

    def count_failed_tool_calls(self) -> dict[str, int]:
        """Return the number of failed calls by session id; sessions without failed calls are omitted."""
        sql = "SELECT session_id, count(*) FROM tool_calls WHERE status = 'failed' GROUP BY session_id"
        return dict(self.database.rows(sql))

    def update_tool_call(
        self,
        tool_use_id: str,
        *,
        status: ToolCallStatus | None = None,
        started_at: datetime | None = None,
        completed_at: datetime | None = None,
        error: str | None = None,
    ) -> None:
        """Change the fields that are passed. A status other than PENDING without `completed_at` is completed now.

        Appending the tool message sets result, status (failed when the result is an error; a cancelled call stays
        cancelled) and `completed_at` by itself.

        Raises:
            CallerError: there is no call of this id.
        """
        call = column_text(tool_use_id)
        changes: dict[str, Any] = {}
        if status is not None:
            changes["status"] = status.value
        if completed_at is not None or status not in (None, ToolCallStatus.PENDING):
            changes["completed_at"] = now_stamp() if completed_at is None else stamp_of(completed_at)
        with self.database.transaction():
            found = self._sql.update_call(call, changes) if changes else None
            if (started_at is not None or error is not None) and found is not False:
                found = self._sql.set_run(call, None if started_at is None else stamp_of(started_at), error)
            if found is None:
                self._sql.tool_call(tool_use_id)  # nothing to change: only whether it is there
            elif not found:
                raise no_tool_call(tool_use_id)

    def keep_result(self, result: ToolResultBlock) -> None:
        """Store the full result of a tool whose message holds a shortened one; a second call replaces the first.

        Raises:
            CallerError: there is no such call.
        """
        session_id = self._sql.tool_call(result.tool_use_id).session_id
        text = _result_json(result, session_id)
        with self._writing(session_id):
            self._sql.keep_result(column_text(result.tool_use_id), text)

    def kept_result(self, tool_use_id: str) -> ToolResultBlock | None:
        """Return the full result that was stored, or None."""
        row = self._sql.one("SELECT result_json FROM kept_results WHERE tool_call_id = ?", (column_text(tool_use_id),))
        return None if row is None else loads_message(row[0]).tool_results[0]

    # Session-only entries

    def append_entry(
        self,
        session_id: str,
        kind: EntryKind,
        content: str | Sequence[ContentBlock] = "",
        *,
        custom_type: str | None = None,
        data: Mapping[str, Any] | None = None,
        after: str | None = None,
    ) -> SessionEntry:
        """Store a session-only entry of text or blocks; `after` is the newest message unless given.

        Raises:
            CallerError: `data` is not JSON, or the session has no message `after`.
        """
        text, kept = content, dict(data or {})
        if not isinstance(text, str):
            message = user(text)
            text, kept[ENTRY_CONTENT] = message.text, encode_message(message)["content"]
        try:
            data_json = orjson.dumps(kept).decode()
        except TypeError as error:
            raise CallerError(f"the data of a session entry is not JSON: {error}") from error
        with self._writing(session_id):
            place = (self._sql.last_id(session_id) or None) if after is None else after
            if after is not None and not self.database.rows(_HOLDS, (after, session_id)):
                raise CallerError(f"session {session_id!r} has no message {after!r} that the entry could follow")
            entry_id = id_after(self._sql.last_entry_id(session_id))
            row = (entry_id, session_id, kind.value, custom_type, column_text(text), data_json, place, now_stamp())
            self._sql.insert_entry(row)
        return read_entry(row)

    def entries(self, session_id: str, kind: EntryKind | None = None) -> list[SessionEntry]:
        """Return the entries of a session in the order they were stored."""
        return self._sql.entries(session_id, kind)

    # Maintenance

    def verify(self, session_id: str | None = None, *, progress: Progress | None = None) -> Iterator[StoreFinding]:
        """Yield the faults of one session, or of all: ids, links between rows, rules of the conversation."""
        return maintenance.verify(self._sql, session_id, progress)

    def reprice(
        self,
        lookup: Callable[[str], ModelInfo | None],
        *,
        session_id: str | None = None,
        at: datetime | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Repriced]:
        """Price messages again, each by its own day unless `at` is set, and yield what changed; the old usage is kept.

        Each yielded change is stored already: stopping half-way leaves the rest unchanged.
        """
        return maintenance.reprice(self._sql, lookup, session_id, at, progress)

    def price_history(self, session_id: str) -> list[Repriced]:
        """Return every repricing of a session's messages, oldest first."""
        return maintenance.price_history(self._sql, session_id)

    def trim_raw(
        self, *, limit: int | None = None, before: datetime | None = None, session_id: str | None = None
    ) -> int:
        """Trim the trace part of `provider_raw` by size or age, never what a replay needs; return how many changed.

        Args:
            limit: bytes of JSON that a trace may take; None for core's own limit, 0 keeps none.
            before: messages made before this moment keep no trace.
            session_id: only this session.
        """
        return maintenance.trim_raw(self._sql, limit, before, session_id)

    # Transfer

    def backup(self, file: str | Path) -> None:
        """Copy the whole SQLite store to a new file as it is at one moment; others may write meanwhile.

        Raises:
            CallerError: the file exists.
            StoreError: it cannot be written, or the store is in PostgreSQL, whose pg_dump does this.
        """
        if Path(file).exists():
            raise CallerError(f"{file} already exists: choose another file")
        self.database.backup(Path(file))

    def export_lines(self, session_id: str) -> Iterator[str]:
        """Yield a session as lines of JSON, header first, then messages; docs/sessions/store.md."""
        return transfer.export_lines(self._sql, session_id)

    def export_jsonl(self, session_id: str, path: Path, *, progress: Progress | None = None) -> int:
        """Write those lines to a file and return their number; an incomplete file is never left behind."""
        return transfer.write_lines(self.export_lines(session_id), path, progress)

    def import_lines(self, lines: Iterable[str | bytes], session_id: str | None = None) -> SessionRecord:
        """Create a session from exported lines, or from lines that are messages only; all of it or nothing.

        Ids that this store has already (a copy made beside its original) are replaced, in calls and results alike.

        Args:
            lines: blank ones are passed over.
            session_id: id of the new session; None takes the header's.

        Raises:
            SessionExistsError: a session with this id already exists.
            DecodeError: a line is invalid; the message contains its number.
        """
        return self._sql.session(transfer.import_lines(self._sql, lines, session_id))

    def branch_session(self, session_id: str, at: str, new_id: str | None = None) -> SessionRecord:
        """Create a session that holds another one's messages up to one, with their calls and summaries.

        Messages and calls get new ids, because ids are unique in a store.

        Args:
            session_id: the session to copy from; it is not changed.
            at: id of the last message to copy.
            new_id: id of the new session; None for a new one.

        Raises:
            SessionExistsError: a session with this id already exists.
            CallerError: the session has no such message.
        """
        return self.import_lines(transfer.branch_lines(self.export_lines(session_id), at), new_id or new_ulid())

    def import_jsonl(
        self, path: Path, session_id: str | None = None, *, progress: Progress | None = None
    ) -> SessionRecord:
        """Import the lines of a file, as `import_lines` does; its errors name the file.

        `progress` is called with numbers of bytes.
        """
        with transfer.read_lines(path, progress) as lines:
            return self.import_lines(lines, session_id)

    # inside

    @contextmanager
    def _writing(self, session_id: str) -> Iterator[None]:
        """Lock a session for writing and update when it was last used."""
        with self.database.transaction():
            self._sql.touch(session_id)
            yield

    def _insert_behind(
        self, rows: Iterable[tuple[Message, list[Any]]], seen: str, end: CallEnd | None = None
    ) -> list[Message]:
        """Insert messages of one session; messages that others stored after `seen` are read only if there are any."""
        found: list[Message] = []
        for message, row in rows:
            if self._sql.insert_last(message, row, seen, end):
                stored = message
            else:
                found += read_pages(self._sql.pages(message.session_id, after=seen))
                stored = self._sql.insert(message, row, end)
            found.append(stored)
            seen = stored.id
        return found


def open_store(place: str | Path) -> Store:
    """Open a store; create it if it is new, and upgrade it to this version.

    Args:
        place: a file for SQLite, or a `postgresql://` URL (extra `interlingua-sessions[postgres]`).

    Raises:
        StoreError: it cannot be opened, or a newer version wrote it; the message says what to do.
    """
    database: Database
    if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")):
        from interlingua_sessions.store.postgresql import PostgresqlDatabase  # noqa: PLC0415  psycopg is an extra

        database = PostgresqlDatabase(place)
    else:
        from interlingua_sessions.store.sqlite import SqliteDatabase  # noqa: PLC0415  PostgreSQL needs no sqlite3

        database = SqliteDatabase(place)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(database)


def _result_json(result: ToolResultBlock, session_id: str) -> str:
    return dumps_message(Message(role=Role.TOOL, content=(result,), session_id=session_id))


def _json_or_none(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()

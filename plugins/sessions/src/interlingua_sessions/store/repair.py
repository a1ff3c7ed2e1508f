"""Repair of a damaged SQLite store: a new store with all that can be read, and what cannot."""

from __future__ import annotations

import mmap
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile

from interlingua import CallerError
from interlingua.types import SCHEMA_VERSION, MessageStatus
from interlingua_sessions.store.pages import Page, PageFile, Record
from interlingua_sessions.store.schema import StoreError, StoreFinding, ToolCallStatus, migrate, migrations
from interlingua_sessions.store.sqlite import SqliteDatabase, copy_database
from interlingua_sessions.store.statements import Statements, read_message

Progress = Callable[[int], None]
_TOGETHER = 2_000  # rows of a transaction
_LETTERS = {type(None): "n", int: "i", str: "t", bytes: "b", float: "f"}

# A page does not say of which table it is: the types of a row do. Notes of streamed messages are made again.
_COLUMNS = {
    "sessions": "t t tn tn i i i",
    "messages": "t t t t t i i",
    "tool_calls": "t t t tn t t tn tn i in",
    "tool_runs": "t in tn",
    "kept_results": "t t",
    "session_entries": "t t t tn t t tn i",
    "repricings": "t i t t",
}
_SHAPES = {name: re.compile("".join(f"[{types}]" for types in each.split())) for name, each in _COLUMNS.items()}
_INSERT = {
    name: f"INSERT OR IGNORE INTO {name} VALUES ({', '.join('?' for _ in each.split())})"
    for name, each in _COLUMNS.items()
}
_STATUSES = {status.value for status in ToolCallStatus}

_WITHOUT_SESSION = """
    SELECT session_id, min(created_at), max(created_at)
    FROM (SELECT session_id, created_at FROM messages UNION ALL SELECT session_id, created_at FROM session_entries)
    WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id"""
_NEVER_READ = """
    SELECT session, id FROM temp.named WHERE id NOT IN (SELECT id FROM messages)
        AND id NOT IN (SELECT id FROM session_entries) ORDER BY session, id"""
_CALLS_OF_NONE = "SELECT session_id, message_id, id FROM tool_calls WHERE message_id NOT IN (SELECT id FROM messages)"
_CUT_LINKS = (
    "DELETE FROM tool_calls WHERE message_id NOT IN (SELECT id FROM messages)",
    "UPDATE tool_calls SET result_message_id = NULL WHERE result_message_id NOT IN (SELECT id FROM messages)",
    "DELETE FROM tool_runs WHERE tool_call_id NOT IN (SELECT id FROM tool_calls)",
    "DELETE FROM kept_results WHERE tool_call_id NOT IN (SELECT id FROM tool_calls)",
    "DELETE FROM repricings WHERE message_id NOT IN (SELECT id FROM messages)",
    """UPDATE session_entries SET after_message_id = (
            SELECT max(m.id) FROM messages m
            WHERE m.session_id = session_entries.session_id AND m.id < session_entries.after_message_id)
        WHERE after_message_id NOT IN (SELECT id FROM messages)""",
)


def repair_store(damaged: str | Path, new: str | Path, progress: Progress | None = None) -> Iterator[StoreFinding]:
    """Write a new store with all that can be read of a damaged one, and yield what cannot.

    The damaged file is not changed, and may be in use. Its pages are read one by one, so a damaged page loses the
    messages on it and no others. Messages that an index names, but no page has, are yielded by their ids. Calls of
    messages that are read are restored from them. A changed letter within a message cannot be noticed.

    Args:
        damaged: a SQLite file.
        new: the file to write; there once everything has been read.
        progress: called with the number of further pages that were read.

    Raises:
        CallerError: `new` exists, or the damaged store is not a file.
        StoreError: a newer version wrote the store, or nothing of a store is in the file.
    """
    source, target = Path(damaged), Path(new)
    if "://" in str(damaged) or not source.is_file():
        raise CallerError(f"{damaged} is not a file: only SQLite stores are repaired; restore others from a backup")
    if target.exists():
        raise CallerError(f"{target} already exists: choose another file")
    draft = target.with_name(f".{target.name}.repairing")
    draft.unlink(missing_ok=True)
    try:
        with _snapshot(source, draft.with_suffix(".source")) as data:
            database = SqliteDatabase(draft)
            with closing(database):
                database.run("PRAGMA synchronous = OFF")  # the whole file is synchronised at the end
                migrate(database)
                yield from _Repair(database).run(PageFile(data), progress)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _snapshot(source: Path, copy: Path) -> Iterator[mmap.mmap]:
    """Copy a file with its write-ahead log, at one moment, and map the copy into memory."""
    try:
        try:
            copy_database(source, copy)
        except sqlite3.Error:  # the header is damaged: what is in the log cannot be added
            copyfile(source, copy)
        if not copy.stat().st_size:
            raise StoreError(f"{source} is empty")
        with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            yield mapped
    finally:
        copy.unlink(missing_ok=True)


class _Repair:
    def __init__(self, database: SqliteDatabase) -> None:
        self._db, self._sql = database, Statements(database)
        self._rows: dict[str, list[Record]] = {name: [] for name in _SHAPES}
        self._names: list[Record] = []
        self._steps = {step.name for step in migrations("sqlite")}

    def run(self, file: PageFile, progress: Progress | None) -> Iterator[StoreFinding]:
        self._db.run("PRAGMA foreign_keys = OFF")
        self._db.run("CREATE TEMP TABLE named (session TEXT NOT NULL, id TEXT NOT NULL UNIQUE)")
        for page in file.pages():
            self._take(page)
            if page.damaged is None:
                yield _finding(f"page {page.number} of the file cannot be read")
            elif page.damaged:
                yield _finding(f"page {page.number} of the file has {page.damaged} records that cannot be read")
            if progress is not None:
                progress(1)
        self._store()
        if not self._sql.one("SELECT 1 FROM sessions UNION ALL SELECT 1 FROM messages"):
            raise StoreError("nothing of a store can be read in this file")
        yield from self._make_sessions()
        for session in self._sql.session_ids():
            yield from self._check_messages(session)
        yield from self._cut_links()
        for session, message in self._db.rows(_NEVER_READ):
            yield _finding("this message, or entry beside the messages, could not be read", session, message)
        self._db.run("DROP TABLE temp.named")

    def _take(self, page: Page) -> None:
        for row in page.rows:
            letters = "".join([_LETTERS[type(value)] for value in row])
            if letters == "nti" and row[1] not in self._steps:
                raise StoreError("a newer version wrote this store: update interlingua-sessions")
            for name, shape in _SHAPES.items():
                if shape.fullmatch(letters):
                    self._rows[name].append(row)
                    break
        for key in page.keys:
            if [type(value) for value in key] == [str, str, int] and key[1] not in _STATUSES:
                self._names.append(key[:2])
        if len(self._names) + sum(map(len, self._rows.values())) > _TOGETHER:
            self._store()

    def _store(self) -> None:
        with self._db.transaction():
            for name, rows in self._rows.items():
                if rows:
                    self._db.run_many(_INSERT[name], rows)
                    rows.clear()
            if self._names:
                self._db.run_many("INSERT OR IGNORE INTO temp.named VALUES (?, ?)", self._names)
                self._names.clear()

    def _make_sessions(self) -> Iterator[StoreFinding]:
        """Make the sessions whose row is lost, from their messages."""
        for session, first, last in self._db.rows(_WITHOUT_SESSION):
            self._sql.insert_session((session, "", None, None, SCHEMA_VERSION, first, last))
            yield _finding("its workspace, model and routing policy could not be read", session)

    def _check_messages(self, session: str) -> Iterator[StoreFinding]:
        """Remove the messages of a session that are not messages, and restore the calls of the others."""
        for rows in self._sql.pages(session):
            found = []
            with self._db.transaction():
                for row in rows:
                    try:
                        message = read_message(row)
                    except StoreError as error:
                        self._db.run("DELETE FROM messages WHERE id = ?", (row[0],))
                        found.append(_finding(error.message, session, row[0]))
                        continue
                    if message.metadata.status is MessageStatus.PARTIAL:
                        self._db.run("INSERT INTO partial_messages VALUES (?)", (message.id,))
                    else:
                        self._sql.restore_calls(message)
            yield from found

    def _cut_links(self) -> Iterator[StoreFinding]:
        for session, message, call in self._db.rows(_CALLS_OF_NONE):
            yield _finding(f"call {call} was in a message that could not be read", session, message)
        with self._db.transaction():
            for statement in _CUT_LINKS:
                self._db.run(statement)


def _finding(text: str, session: str = "", message: str | None = None) -> StoreFinding:
    return StoreFinding(session_id=session, check="lost", message=text, message_id=message)

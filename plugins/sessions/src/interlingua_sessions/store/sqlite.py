"""SQLite as a store's database: one file, WAL, its default durability."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from interlingua_sessions.store.schema import Row, StoreError

T = TypeVar("T")
OLDEST = (3, 37)  # STRICT tables
BUSY_SECONDS = 60.0  # another process writes; its transactions are short
_POLL_SECONDS = 0.005  # SQLite's own waiting sleeps up to 100 ms at a time: too long for text that is streaming
_ADVICE = {
    "locked": f"another process held it for {BUSY_SECONDS:.0f} s: end that one and try again",
    "unable to open": "does its folder exist, and may this user write there?",
    "not a database": "restore it from a backup, or choose another file",
    "malformed": "restore it from a backup, or choose another file",
    "readonly": "this user needs permission to write the file and its folder",
    "full": "free some space; nothing that was stored is lost",
}


class SqliteDatabase:
    """One SQLite file."""

    kind = "sqlite"
    commit_order: str | None = "rowid"
    as_json = "CAST({} AS BLOB)"  # its very bytes: text would be decoded here and encoded again for the parser

    def __init__(self, path: str | Path) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            text = f"SQLite {sqlite3.sqlite_version} is too old: 3.37 or newer is needed; use a newer Python"
            raise StoreError(text)
        self._lock = RLock()
        self._where = str(path)
        self.read_only = _is_unwritable(Path(path))
        if self.read_only:
            self._connect_read_only(Path(path).resolve())
        else:
            self._connect(str(path))

    def _connect(self, place: str, *, uri: bool = False) -> None:
        try:  # no isolation level: transactions begin and end where the store says
            self._connection = sqlite3.connect(
                place,
                timeout=_POLL_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                uri=uri,
            )
        except sqlite3.Error as error:
            raise self._store_error(error) from error
        try:
            if not self.read_only:
                self.run("PRAGMA journal_mode = WAL")
            self.run("PRAGMA foreign_keys = ON")
            if self.read_only:
                self.rows("SELECT count(*) FROM sqlite_master")
        except BaseException:
            self._connection.close()
            raise

    def _connect_read_only(self, path: Path) -> None:
        """Connect to a file that this user may only read."""
        written = path.with_name(f"{path.name}-wal")
        try:
            self._connect(f"{path.as_uri()}?mode=ro", uri=True)
        except StoreError as error:
            if written.exists() and written.stat().st_size:
                raise StoreError(
                    f"{path}: its last messages are in {written.name}, which needs permission to write the folder: "
                    "copy both files and open the copy"
                ) from error
            self._connect(f"{path.as_uri()}?immutable=1", uri=True)

    def transaction(self) -> AbstractContextManager[None]:
        """Begin as a writer at once: a reader that becomes a writer could fail half-way."""
        return _Transaction(self._lock, self._connection, self._retry, "BEGIN" if self.read_only else "BEGIN IMMEDIATE")

    migrating = transaction

    def run(self, sql: str, row: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched."""
        try:
            with self._lock:
                return self._connection.execute(sql, row).rowcount
        except sqlite3.Error as error:
            return self._retry(error, lambda: self._connection.execute(sql, row).rowcount)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row and return how many rows all of them touched."""
        try:
            with self._lock:
                return self._connection.executemany(sql, rows).rowcount
        except sqlite3.Error as error:
            return self._retry(error, lambda: self._connection.executemany(sql, rows).rowcount)

    def rows(self, sql: str, row: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all its rows."""
        try:
            with self._lock:
                return self._connection.execute(sql, row).fetchall()
        except sqlite3.Error as error:
            return self._retry(error, lambda: self._connection.execute(sql, row).fetchall())

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def damage(self) -> list[str]:
        """Run SQLite's own checks of the file and of its foreign keys."""
        found = [str(text) for (text,) in self.rows("PRAGMA quick_check") if text != "ok"]
        broken = self.rows("PRAGMA foreign_key_check")
        return found + [f"a row of {table} refers to a missing row of {parent}" for table, _, parent, _ in broken]

    def backup(self, file: Path) -> None:
        """Copy the database to a new file, through its own connection: threads and processes may write."""
        draft = file.with_name(f".{file.name}.copying")
        try:
            copy_database(Path(self._where), draft)
            draft.rename(file)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{file} cannot be written: {error}") from error
        finally:
            draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _retry(self, error: sqlite3.Error, act: Callable[[], T]) -> T:
        """Retry a statement while the file is locked; outside a transaction it has had no effect yet."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or self._connection.in_transaction or time.monotonic() > until:
                raise self._store_error(error) from error
            try:
                with self._lock:
                    return act()
            except sqlite3.Error as another:
                error = another

    def _store_error(self, error: sqlite3.Error) -> StoreError:
        advice = next((f" ({advice})" for words, advice in _ADVICE.items() if words in str(error)), "")
        return StoreError(f"{self._where}: {error}{advice}")


class _Transaction:
    """One transaction; a class, because a generator would cost more than the statements of a small message."""

    def __init__(
        self,
        lock: RLock,
        connection: sqlite3.Connection,
        retry: Callable[[sqlite3.Error, Callable[[], Any]], Any],
        begin: str,
    ) -> None:
        self._lock, self._connection, self._retry, self._begin = lock, connection, retry, begin

    def __enter__(self) -> None:
        self._lock.acquire()
        nested = self._connection.in_transaction
        try:
            self._execute(self._begin)
        except BaseException:  # Ctrl-C may come between BEGIN and here
            if self._connection.in_transaction and not nested:
                self._connection.execute("ROLLBACK")
            self._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        try:
            if kind is None:
                self._execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._lock.release()

    def _execute(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except sqlite3.Error as error:
            self._retry(error, lambda: self._connection.execute(sql))


def copy_database(source: Path, copy: Path) -> None:
    """Copy a file, with what is in its write-ahead log, as it is at one moment.

    Raises:
        sqlite3.Error: the file has no valid header.
    """
    uri = f"{source.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as read, closing(sqlite3.connect(copy)) as made:
        read.backup(made)


def _is_unwritable(path: Path) -> bool:
    """Tell whether this user cannot write an existing file, or the files that SQLite creates beside it."""
    if not path.is_file():
        return False
    beside = path.with_name(f"{path.name}-shm")
    return not os.access(path, os.W_OK) or not (beside.exists() or os.access(path.parent, os.W_OK))

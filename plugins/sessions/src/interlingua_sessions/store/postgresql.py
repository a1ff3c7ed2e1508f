"""PostgreSQL as a store's database, through psycopg 3 (extra `interlingua-sessions[postgres]`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

try:
    import psycopg
except ImportError as missing:
    from interlingua_sessions.store.schema import StoreError

    text = f"PostgreSQL needs the extra: pip install 'interlingua-sessions[postgres]' ({missing})"
    raise StoreError(text) from missing

from interlingua_sessions.store.schema import Row, StoreError

_READ_ONLY = """
    SELECT coalesce(current_setting('transaction_read_only') = 'on'
        OR bool_or(relname = 'messages') AND NOT bool_or(has_table_privilege(oid, 'INSERT')), false)
    FROM pg_class WHERE relname IN ('messages', 'search_state') AND pg_table_is_visible(oid)"""
_MIGRATION_LOCK = 3_003_101  # any number that no other program on the server is likely to take


class PostgresqlDatabase:
    """One PostgreSQL database. A lost connection is opened again for the next statement."""

    kind = "postgresql"
    commit_order: str | None = None
    as_json = "{}"

    def __init__(self, url: str) -> None:
        self._lock = RLock()
        self._url = url
        with self._translated_errors():
            self._connection = self._connect()
        self.read_only = bool(self.rows(_READ_ONLY)[0][0])

    def _connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(self._url, autocommit=True, application_name="interlingua")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin; the store serialises writers of one session by locking the session's row."""
        with self._lock, self._translated_errors():
            if self._connection.closed:
                self._connection = self._connect()
            with self._connection.transaction():
                yield

    @contextmanager
    def migrating(self) -> Iterator[None]:
        """A transaction that no other process migrates beside."""
        with self.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            yield

    def run(self, sql: str, row: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched."""
        return self._execute(sql, row).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row and return how many rows all of them touched."""
        with self._lock, self._translated_errors(), self._connection.cursor() as cursor:
            cursor.executemany(_marked(sql), rows)
            return cursor.rowcount

    def rows(self, sql: str, row: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all its rows."""
        return self._execute(sql, row).fetchall()

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists on the search path."""
        # to_regclass would answer from a cache that does not know yet what another process has just made
        return bool(self.rows("SELECT 1 FROM pg_class WHERE relname = ? AND pg_table_is_visible(oid)", (name,)))

    def damage(self) -> list[str]:
        """Return nothing: PostgreSQL checks its references and files itself."""
        return []

    def backup(self, file: Path) -> None:
        """Refuse: a copy of a server's database is made by its own tools."""
        raise StoreError(f"PostgreSQL copies its databases itself: pg_dump --format=custom --file={file}")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _execute(self, sql: str, row: Sequence[Any]) -> psycopg.Cursor[Row]:
        with self._lock, self._translated_errors():
            if self._connection.closed:
                self._connection = self._connect()
            return self._connection.execute(_marked(sql), row)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            unreachable = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
            advice = " (is the server running, and is the URL right?)" if unreachable else ""
            raise StoreError(f"PostgreSQL: {str(error).strip()}{advice}") from error


@cache
def _marked(sql: str) -> Any:
    return sql.replace("?", "%s")

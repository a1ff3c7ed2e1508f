"""What the store asks of a database: transactions, rows, and little else; and the base of the store's parts.

Never SQL that only one database understands: that stands in its driver and in its migrations. The drivers and the
store's parts come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection, shared by threads: a transaction, or a single statement outside one, has it alone.

    Statements mark their parameters with `?`. What the database reports as failed becomes a StoreError.
    """

    kind: str
    """Names the migrations: `sqlite` or `postgresql`."""
    commit_order: str | None
    """A column that increases from one inserted row to the next, where the database has one."""
    as_json: str
    """Selects a column of JSON in the way that costs least to parse, as text or its UTF-8; `{}` is the column."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin, and commit on leaving or roll back on an exception; may not be nested."""

    def migrating(self) -> AbstractContextManager[None]:
        """A transaction that no other process migrates beside."""

    def run(self, sql: str, row: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched."""

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row and return how many rows all of them touched."""

    def rows(self, sql: str, row: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all its rows."""

    def has_table(self, name: str) -> bool:
        """Tell whether there is such a table."""

    def damage(self) -> list[str]:
        """Return what the database finds wrong with its own files and references."""

    def close(self) -> None:
        """Close the connection."""


class Part:
    """One subject of the store, over the database that all of them share."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @property
    def database(self) -> Database:
        """What the store stands on."""
        return self._db

    def _one(self, sql: str, row: Sequence[Any] = ()) -> Row | None:
        rows = self._db.rows(sql, row)
        return rows[0] if rows else None

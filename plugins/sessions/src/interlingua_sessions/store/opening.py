"""Opening a store by the name of its place.

Never reads or writes a message. Whoever has a configured place for sessions comes in, through
`interlingua_sessions.store`.
"""

from __future__ import annotations

from pathlib import Path

from interlingua_sessions.store.api import Store
from interlingua_sessions.store.database import Database
from interlingua_sessions.store.migrate import migrate
from interlingua_sessions.store.sql_store import SqlStore

_URLS = ("postgresql://", "postgres://")


def open_store(place: str | Path) -> Store:
    """Open a store, making it where it is new and bringing it up to this version.

    Args:
        place: a file for SQLite, or a `postgresql://` URL (extra `interlingua-sessions[postgres]`).

    Raises:
        StoreError: it cannot be opened, or a newer version wrote it; the message says what to do.
    """
    database = _database(place)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


def _database(place: str | Path) -> Database:
    if isinstance(place, str) and place.startswith(_URLS):
        from interlingua_sessions.store.postgresql import PostgresqlDatabase  # noqa: PLC0415  psycopg is an extra

        return PostgresqlDatabase(place)
    from interlingua_sessions.store.sqlite import SqliteDatabase  # noqa: PLC0415  the other half of the choice

    return SqliteDatabase(place)

"""Bringing a database up to this version: numbered migrations, each applied once, all in one transaction.

Never changes a migration that was released: a new number is added. Opening comes in.
The SQL stands in `migrations/NNNN_name.<database>.sql`, a file for each database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from interlingua_sessions.store.database import Database
from interlingua_sessions.store.errors import StoreError

_TABLE = "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)"
_FILE = re.compile(r"(\d{4})_(\w+)\.(\w+)\.sql")


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


def migrations(kind: str) -> list[Migration]:
    """Return the migrations of one kind of database, in order."""
    found = [(_FILE.fullmatch(file.name), file) for file in files(__package__).joinpath("migrations").iterdir()]
    return sorted(
        Migration(int(match[1]), match[2], tuple(_statements(file.read_text(encoding="utf-8"))))
        for match, file in found
        if match and match[3] == kind
    )


def migrate(database: Database) -> None:
    """Apply what is missing.

    Raises:
        StoreError: a newer version made the database.
    """
    steps = migrations(database.kind)
    if _applied(database) == steps[-1].version:
        return
    with database.migrating():
        applied = _applied(database)
        if applied > steps[-1].version:
            known = steps[-1].version
            raise StoreError(f"the store has schema {applied}, this version knows {known}: update interlingua-sessions")
        if not applied:
            database.run(_TABLE)
        for step in steps:
            if step.version > applied:
                for statement in step.statements:
                    database.run(statement)
                row = (step.version, step.name, time.time_ns() // 1000)
                database.run("INSERT INTO schema_migrations VALUES (?, ?, ?)", row)


def _applied(database: Database) -> int:
    if not database.has_table("schema_migrations"):
        return 0
    return int(database.rows("SELECT max(version) FROM schema_migrations")[0][0])


def _statements(text: str) -> Iterator[str]:
    bare = re.sub(r"--.*", "", text)
    return (part.strip() for part in bare.split(";") if part.strip())

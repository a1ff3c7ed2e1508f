"""The tables, column by column, and how a database gets them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from interlingua_sessions import open_store
from interlingua_sessions.store import StoreError
from tests.support import raw_sql, tree

# name, is it an integer, may it be null
TABLES = {
    "sessions": [
        ("id", False, False), ("workspace_path", False, False), ("active_model", False, True),
        ("routing_policy_json", False, True), ("schema_version", True, False), ("created_at", True, False),
        ("updated_at", True, False),
    ],
    "messages": [
        ("id", False, False), ("session_id", False, False), ("role", False, False), ("content_json", False, False),
        ("metadata_json", False, False), ("created_at", True, False), ("schema_version", True, False),
    ],
    "tool_calls": [
        ("id", False, False), ("session_id", False, False), ("message_id", False, False),
        ("result_message_id", False, True), ("name", False, False), ("status", False, False),
        ("provider_id", False, True), ("provider", False, True), ("created_at", True, False),
        ("completed_at", True, True),
    ],
}  # fmt: skip
INDEXES = {
    "idx_messages_session_created": "messages(session_id, created_at)",
    "idx_tool_calls_session_status": "tool_calls(session_id, status)",
}


def _columns(place: str, table: str) -> list[tuple[str, bool, bool]]:
    if place.startswith("postgresql:"):
        sql = f"""SELECT column_name, data_type, is_nullable FROM information_schema.columns
            WHERE table_schema = current_schema() AND table_name = '{table}' ORDER BY ordinal_position"""  # noqa: S608
        return [(name, kind in {"integer", "bigint"}, null == "YES") for name, kind, null in raw_sql.rows(place, sql)]
    # a TEXT PRIMARY KEY of a STRICT table may be null to SQLite unless it says otherwise; nothing ever writes one
    return [
        (name, kind == "INTEGER", not (notnull or key))
        for _, name, kind, notnull, _, key in raw_sql.rows(place, f"PRAGMA table_info({table})")
    ]


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_there_as_written(place: str, table: str) -> None:
    open_store(place).close()

    assert _columns(place, table) == TABLES[table]


def test_the_indexes_are_there(place: str) -> None:
    open_store(place).close()
    if place.startswith("postgresql:"):
        sql = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
    else:
        sql = "SELECT name, sql FROM sqlite_master WHERE type = 'index'"
    found = dict(raw_sql.rows(place, sql))

    for name, columns in INDEXES.items():
        table, _, inside = columns.partition("(")
        assert inside in found[name]
        assert table in found[name]


def test_sqlite_is_strict_and_writes_ahead(tmp_path: object) -> None:
    place = f"{tmp_path}/store.db"
    with open_store(place):
        assert raw_sql.rows(place, "PRAGMA journal_mode") == [("wal",)]
    for table in TABLES:
        assert raw_sql.rows(place, f"PRAGMA table_list({table})")[0][5] == 1
    with pytest.raises(sqlite3.IntegrityError):
        raw_sql.rows(place, "INSERT INTO sessions VALUES ('s', '', NULL, NULL, 'one', 0, 0)")


def test_migrations_are_numbered_and_applied_once(place: str) -> None:
    for _ in range(2):
        open_store(place).close()

    assert raw_sql.rows(place, "SELECT version FROM schema_migrations ORDER BY version") == [(1,), (2,), (3,)]


def test_a_database_of_a_newer_version_is_left_alone(place: str) -> None:
    open_store(place).close()
    raw_sql.rows(place, "INSERT INTO schema_migrations VALUES (9999, 'from_the_future', 0)")

    with pytest.raises(StoreError, match="update interlingua-sessions"):
        open_store(place)


def test_processes_that_open_a_new_database_at_once_all_get_it(place: str) -> None:
    script = "import sys; from interlingua_sessions import open_store; open_store(sys.argv[1]).create_session()"
    processes = [subprocess.Popen([sys.executable, "-c", script, place], cwd=tree.ROOT) for _ in range(4)]

    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    with open_store(place) as store:
        assert len(list(store.sessions())) == 4


def test_what_cannot_be_opened_says_what_to_do(tmp_path: object) -> None:
    with pytest.raises(StoreError, match="does its folder exist"):
        open_store(f"{tmp_path}/nowhere/store.db")
    with open(f"{tmp_path}/text.db", "w") as file:  # noqa: PTH123
        file.write("no database, but long enough to be looked at " * 40)
    with pytest.raises(StoreError, match="restore it from a backup"):
        open_store(f"{tmp_path}/text.db")
    with pytest.raises(StoreError, match="is the server running"):
        open_store("postgresql://nobody@127.0.0.1:9/nothing")

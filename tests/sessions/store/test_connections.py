"""What happens when the database is busy, or the connection goes."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from interlingua.types.factories import user
from interlingua_sessions import Store, open_store
from interlingua_sessions.store import StoreError, sqlite
from tests.support import raw_sql


@pytest.fixture
def held(tmp_path: Path) -> sqlite3.Connection:
    """Return another program's connection to the store `tmp_path/store.db`, which it is about to write to."""
    with open_store(tmp_path / "store.db") as store:
        store.create_session("s")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_a_busy_file_is_waited_for(held: sqlite3.Connection, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        threading.Timer(0.3, lambda: held.execute("COMMIT")).start()
        began = time.monotonic()
        store.append(user("patience", session_id="s"))

        assert time.monotonic() - began >= 0.25
        assert store.count_messages("s") == 1
    held.close()


def test_a_file_that_stays_busy_is_said(
    held: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with open_store(tmp_path / "store.db") as store:
        with pytest.raises(StoreError, match="another process held it"):
            store.append(user("impatience", session_id="s"))
        held.execute("COMMIT")
        held.close()

        store.append(user("again", session_id="s"))
        assert [message.text for message in store.messages("s")] == ["again"]


def test_a_lost_connection_is_made_again(place: str, store: Store) -> None:
    if not place.startswith("postgresql:"):
        pytest.skip("a file has no connection to lose")
    store.create_session("s")
    ((pid,),) = store.database.rows("SELECT pg_backend_pid()")
    raw_sql.rows(place, f"SELECT pg_terminate_backend({pid})")
    with pytest.raises(StoreError):
        store.append(user("lost", session_id="s"))

    store.append(user("there", session_id="s"))
    assert [message.text for message in store.messages("s")] == ["there"]

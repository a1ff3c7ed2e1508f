"""How a search in PostgreSQL learns what was stored: notes that a trigger writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from time import monotonic
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
import psycopg
import pytest

from interlingua.types.factories import assistant, user
from interlingua_sessions import Store, StoreError, open_store
from interlingua_sessions.store import search, text_index
from interlingua_sessions.store.statements import message_row
from interlingua_sessions.store.text_index import TextIndex
from tests.sessions.talking import add_sessions


@pytest.fixture
def place(postgresql_place: str) -> str:
    """Return where an empty database of a server is, for `store` too."""
    return postgresql_place


@pytest.fixture
def role(store: Store) -> Iterator[str]:
    """Return a role that may read the tables of the store."""
    if not store.database.rows("SELECT 1 FROM pg_roles WHERE rolname = current_user AND rolsuper"):
        pytest.skip("only a superuser may make roles")
    name = f"interlingua_{uuid4().hex[:12]}"
    (schema,) = store.database.rows("SELECT current_schema()")[0]
    store.database.run(f"CREATE ROLE {name}")
    store.database.run(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
    store.database.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}")
    yield name
    store.database.run(f"DROP OWNED BY {name}")
    store.database.run(f"DROP ROLE {name}")


def as_role(place: str, role: str) -> Store:
    """Open the store as a role."""
    return open_store(place + quote(f" -crole={role}"))


def said(store: Store, query: str, **given: Any) -> list[str]:
    return [one.line for one in store.search(query, **given)]


def fill(store: Store, sessions: int = 3) -> None:
    """Store a message in each of some sessions, and index them."""
    for number in range(sessions):
        store.create_session(f"s{number}")
    store.extend([user(f"apple {number}", session_id=f"s{number}") for number in range(sessions)])
    assert len(said(store, "apple", limit=sessions)) == sessions


def waiting(store: Store, message: str, session: str) -> Callable[[], None]:
    """Store a message, and return what commits it."""
    commit = store.database.transaction()
    commit.__enter__()
    store._sql.touch(session)
    made = user(message, session_id=session)
    store._sql.insert(made, message_row(made))

    def finish() -> None:
        commit.__exit__(None, None, None)

    return finish


def meanwhile(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, work: Callable[[], None], *, after: bool) -> None:
    """Do something once, before or after a function is called."""
    real, left = getattr(place, name), [work]

    def wrapped(*args: Any, **given: Any) -> Any:
        if left and not after:
            left.pop()()
        found = real(*args, **given)
        if left and after:
            left.pop()()
        return found

    monkeypatch.setattr(place, name, wrapped)


MOMENTS: dict[str, tuple[Any, str, bool]] = {
    "before notes are read": (search, "_stale_sessions", False),
    "after notes are read": (search, "_stale_sessions", True),
    "after messages are read": (TextIndex, "revise", False),
    "after they are indexed": (TextIndex, "revise", True),
    "after the search": (search, "index_messages", True),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("session", ["s0", "s1"], ids=["another session", "a session that is indexed then"])
def test_messages_that_are_committed_late_are_found(
    store: Store, place: str, moment: str, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    with open_store(place) as late:
        commit = waiting(late, "a late apple", session)  # stored before the other, committed after it
        store.append(user("an early apple", session_id="s2"))
        if session == "s1":
            store.database.run("INSERT INTO search_unread (session_id) VALUES ('s1')")
        owner, name, after = MOMENTS[moment]
        meanwhile(monkeypatch, owner, name, commit, after=after)
        assert "an early apple" in said(store, "apple")

    found = said(store, "apple")
    assert sorted(found) == ["a late apple", "an early apple", "apple 0", "apple 1", "apple 2"]
    assert store.database.rows("SELECT count(*) FROM search_unread") == [(0,)]
    assert store.database.rows("SELECT count(*) FROM search_passages") == [(5,)]


@pytest.mark.parametrize("after", [False, True], ids=["before it writes", "before notes are removed"])
@pytest.mark.parametrize("group", [0, 1])
def test_a_search_that_is_killed_leaves_the_rest_to_the_next(
    store: Store, place: str, after: bool, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 6)
    store.extend([user(f"later apple {number}", session_id=f"s{number}") for number in range(6)])
    monkeypatch.setattr(search, "_TOGETHER", 3)
    calls = iter(range(10))

    def kill() -> None:
        if next(calls) < group:
            meanwhile(monkeypatch, TextIndex, "revise", kill, after=after)
        else:
            raise KeyboardInterrupt

    with monkeypatch.context(), open_store(place) as killed:
        meanwhile(monkeypatch, TextIndex, "revise", kill, after=after)
        with pytest.raises(KeyboardInterrupt):
            killed.search("apple")

    assert len(said(store, "apple")) == 12
    assert store.database.rows("SELECT count(*) FROM search_passages") == [(12,)]


def test_searches_at_once_find_what_writers_store_meanwhile(store: Store, place: str) -> None:
    fill(store, 8)

    def write(number: int) -> None:
        with open_store(place) as own:
            for _ in range(25):
                own.append(user("another apple", session_id=f"s{number}"))

    def look(_: int) -> None:
        with open_store(place) as own:
            found = 0
            while found < 108:
                before, found = found, len(said(own, "apple", limit=1_000))
                assert found >= before

    with ThreadPoolExecutor(7) as pool:
        for work in [pool.submit(look, at) for at in range(3)] + [pool.submit(write, at) for at in range(4)]:
            work.result(60)

    assert store.database.rows("SELECT count(*) FROM search_passages") == [(108,)]
    assert said(store, "absent") == []
    assert store.database.rows("SELECT count(*) FROM search_unread") == [(0,)]


def rows_of_a_search(store: Store, query: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how many rows the server reads for a search."""
    asked: list[tuple[str, Any]] = []
    real = store.database.rows

    def rows(sql: str, row: Any = ()) -> Any:
        asked.append((sql, row))
        return real(sql, row)

    with monkeypatch.context() as patched:
        patched.setattr(store.database, "rows", rows)
        store.search(query, limit=5)
    plans = [real(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", row)[0][0][0]["Plan"] for sql, row in asked]
    return sum(map(_rows_of, plans))


def _rows_of(plan: dict[str, Any]) -> float:
    if plan.get("Schema", "") == "pg_catalog" or plan.get("Relation Name", "").startswith("pg_"):
        return 0
    own: float = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return own + sum(map(_rows_of, plan.get("Plans", [])))


@pytest.mark.parametrize("query", ["absent", "some"])
def test_a_search_reads_no_more_rows_in_a_larger_store(
    store: Store, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "_NEWEST", 10)
    store.database.run("SET enable_seqscan = off")  # a small table of passages would be read without its index
    taken = []
    for first, count in ((0, 50), (50, 500)):
        add_sessions(store, first, count)
        store.update_index()
        taken.append(rows_of_a_search(store, query, monkeypatch))

    assert 0 < taken[1] < taken[0] * 1.5, "eleven times as many sessions"


REMOVALS = {
    "the notes": "DROP TABLE search_unread",
    "the trigger": "DROP TRIGGER search_unread ON messages",
    "the function": "DROP FUNCTION search_unread CASCADE",
    "the trigger is disabled": "ALTER TABLE messages DISABLE TRIGGER search_unread",
    "documents": "DROP TABLE search_documents",
    "passages": "DROP TABLE search_passages",
    "the state": "DROP TABLE search_state",
    "all tables": "DROP TABLE search_state, search_documents, search_passages, search_unread",
    "what earlier versions do not make": "DROP TABLE search_unread; DROP FUNCTION search_unread CASCADE;"
    "DELETE FROM search_documents WHERE key = ''",
    "messages with notes": "DELETE FROM messages WHERE session_id = 's0'; DELETE FROM sessions WHERE id = 's0'",
    "all messages": "DELETE FROM messages; DELETE FROM sessions WHERE id <> 's2'",
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_what_is_left_and_what_is_new_is_found_after_a_removal(store: Store, place: str, removal: str) -> None:
    fill(store)
    store.append(user("a later apple", session_id="s0"))
    for statement in REMOVALS[removal].split(";"):
        store.database.run(statement)
    store.append(user("apple after it", session_id="s2"))
    left = [orjson.loads(row[0])[0]["text"] for row in store.database.rows("SELECT content_json FROM messages")]

    with open_store(place) as other:
        assert sorted(said(other, "apple")) == sorted(left)
    store.append(user("the last apple", session_id="s2"))
    assert sorted(said(store, "apple")) == sorted([*left, "the last apple"])
    assert store.database.rows("SELECT count(*) FROM search_unread") == [(0,)]


@pytest.mark.parametrize("removal", ["DELETE FROM messages WHERE session_id = 's0'", "DROP TABLE search_unread"])
def test_a_search_with_nothing_to_index_ends(store: Store, removal: str) -> None:
    fill(store)
    store.append(user("an apple that is removed", session_id="s0"))
    if removal.startswith("DROP"):
        assert len(said(store, "apple")) == 4
    store.database.run(removal)
    store.database.run("DELETE FROM sessions WHERE id NOT IN (SELECT session_id FROM messages)")

    assert len(said(store, "apple")) == (4 if removal.startswith("DROP") else 2)
    assert store.database.rows("SELECT count(*) FROM search_unread") == [(0,)]


def test_a_schema_that_is_renamed_is_searched(store: Store, place: str) -> None:
    fill(store)
    (schema,) = store.database.rows("SELECT current_schema()")[0]
    store.database.run(f"ALTER SCHEMA {schema} RENAME TO {schema}_b")
    try:
        with open_store(place.replace(schema, f"{schema}_b")) as renamed:
            renamed.append(user("a later apple", session_id="s0"))
            assert len(said(renamed, "apple")) == 4
    finally:
        store.database.run(f"ALTER SCHEMA {schema}_b RENAME TO {schema}")


def test_branches_imports_and_finished_answers_are_found(store: Store) -> None:
    fill(store)
    last = store.append(user("a cherry", session_id="s0"))
    assert said(store, "cherry") == ["a cherry"]
    store.branch_session("s0", last.id, "branch")
    assert len(said(store, "cherry")) == 2
    store.import_lines(list(store.export_lines("branch")), "imported")
    assert len(said(store, "cherry")) == 3


def test_writers_need_no_right_to_the_index(store: Store, place: str, role: str) -> None:
    fill(store)
    store.database.run(f"GRANT SELECT, INSERT, UPDATE ON sessions, messages TO {role}")
    with as_role(place, role) as writer:
        writer.append(user("a later apple", session_id="s0"))

    assert said(store, "apple", limit=1) == ["a later apple"]


def test_users_without_a_right_to_the_notes_compare_all_sessions(store: Store, place: str, role: str) -> None:
    fill(store)
    tables = "search_state, search_documents, search_passages"
    store.database.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}")
    store.append(user("a later apple", session_id="s0"))
    with as_role(place, role) as searcher:
        assert said(searcher, "apple", limit=1) == ["a later apple"]
    store.append(user("the last apple", session_id="s0"))

    assert said(store, "apple", limit=2) == ["the last apple", "a later apple"]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_users_who_may_only_read_search_without_the_index(
    store: Store, place: str, role: str, is_indexed: bool
) -> None:
    store.create_session("s0")
    store.extend([user("a question", session_id="s0"), assistant("the answer", session_id="s0")])
    if is_indexed:
        assert said(store, "question") == ["a question"]
    store.append(user("later", session_id="s0"))

    with as_role(place, role) as reader, open_store(place + quote(" -cdefault_transaction_read_only=on")) as standby:
        for each in (reader, standby):
            assert said(each, "answ") == ["the answer"]
            assert said(each, "later") == ["later"]
            assert [turn.matches for turn in each.turns(words=["answer"])] == [1]
            assert list(each.verify()) == []
            with pytest.raises(StoreError):
                each.append(user("more", session_id="s0"))
    assert said(store, "later") == ["later"]


def test_nobody_waits_long_for_the_trigger_behind_an_open_transaction(store: Store, place: str) -> None:
    store.create_session("s0")
    store.create_session("s1")
    store.append(user("an apple", session_id="s0"))
    with open_store(place) as late, closing(psycopg.connect(place)) as watch:
        commit = waiting(late, "a late apple", "s1")
        began = monotonic()
        assert said(store, "apple") == ["an apple"]
        store.append(user("another apple", session_id="s0"))
        assert said(store, "apple") == ["another apple", "an apple"]
        assert monotonic() - began < 10
        sql = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'messages'::regclass AND tgname = 'search_unread'"
        assert watch.execute(sql).fetchone() == (0,)
        commit()
        assert len(said(store, "apple")) == 3
        assert watch.execute(sql).fetchone() == (1,)

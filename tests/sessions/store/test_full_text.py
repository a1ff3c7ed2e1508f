"""Full-text search over stored messages, on both databases, and stores that can only be read."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua import CallerError
from interlingua.types import new_ulid
from interlingua.types.blocks import ThinkingBlock, ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua.types.messages import MessageMetadata, MessageStatus, Role
from interlingua_sessions import SessionNotFoundError, Store, StoreError, open_store
from interlingua_sessions.store import statements, text_index
from interlingua_sessions.store.schema import migrations
from interlingua_sessions.store.sqlite import SqliteDatabase
from interlingua_sessions.store.text_index import words_of
from tests.sessions.talking import add_sessions


def said(store: Store, query: str, **given: Any) -> list[str]:
    return [one.line for one in store.search(query, **given)]


def test_all_words_of_messages_calls_and_results_are_found(store: Store) -> None:
    used = ToolUseBlock(
        id=f"tu_{new_ulid()}", name="read_file", input={"path": "src/parrot.py", "lines": ["first\nnext"]}
    )
    store.create_session("a")
    store.extend([
        user("First line\nWhere is the Norwegian blue?", session_id="a"),
        assistant([ThinkingBlock(text="Perhaps it rests."), used], session_id="a"),
        tool_result(used, "class Parrot:\n    alive = False", session_id="a"),
    ])  # fmt: skip

    (found,) = store.search("BLUE norwegian")
    assert (found.session_id, found.role, found.line) == ("a", Role.USER, "Where is the Norwegian blue?")
    assert said(store, "rests") == ["Perhaps it rests."]
    assert said(store, "src/parrot.py") == ["src/parrot.py"]
    assert said(store, "next") == ["next"]  # behind an escaped line break in the call's JSON
    assert said(store, "alive false") == ["alive = False"]
    assert len(said(store, "parr")) == 2  # the beginning of a word
    assert said(store, "arrot") == []
    assert said(store, '"norwegian blue"') == ["Where is the Norwegian blue?"]
    assert said(store, '"blue norwegian"') == []
    assert said(store, "blue alive") == []  # in two messages
    assert said(store, "provider_id") == []  # a key of the stored JSON


@pytest.mark.parametrize("newest", [2, 10, 20_000])  # PostgreSQL searches so many first
def test_results_are_the_newest_and_of_one_session_if_asked(
    store: Store, newest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "_NEWEST", newest)
    for name in ("a", "b"):
        store.create_session(name)
        store.extend([user(f"apple {number} of {name}", session_id=name) for number in range(30)])

    assert said(store, "apple", limit=3) == ["apple 29 of b", "apple 28 of b", "apple 27 of b"]
    assert said(store, "apple", limit=1, session_id="a") == ["apple 29 of a"]
    with pytest.raises(SessionNotFoundError):
        store.search("apple", session_id="c")
    with pytest.raises(CallerError, match="no word to search for"):
        store.search("?!")


def test_later_messages_are_found_and_streamed_ones_when_they_are_finished(store: Store) -> None:
    store.create_session("a")
    store.append(user("one", session_id="a"))
    assert said(store, "answer") == []

    partial = MessageMetadata(status=MessageStatus.PARTIAL)
    half = store.save_partial(attrs.evolve(assistant("half an answer", session_id="a"), metadata=partial))
    store.append(user("two, while it is written", session_id="a"))
    assert said(store, "answer") == []
    assert said(store, "written") == ["two, while it is written"]
    store.finish(attrs.evolve(assistant("the whole answer", session_id="a"), id=half.id))
    assert said(store, "answer") == ["the whole answer"]
    assert said(store, "half") == []


@pytest.mark.parametrize("back", [1, 10**12])
def test_messages_are_found_when_the_clock_goes_back(store: Store, back: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create_session("a")
    store.create_session("b")
    store.extend([user("apple", session_id="a"), user("pear", session_id="b")])
    assert said(store, "apple") == ["apple"]
    last = max(int(one.updated_at.timestamp() * 1e6) for one in store.sessions())
    monkeypatch.setattr(statements, "now_stamp", lambda: last - back)

    store.append(user("a later apple", session_id="a"))
    assert said(store, "apple") == ["a later apple", "apple"]
    assert said(store, "pear") == ["pear"]


def test_a_search_takes_no_more_steps_in_a_larger_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        database = store.database
        assert isinstance(database, SqliteDatabase)

        def steps_of_a_search() -> int:
            count = 0

            def step() -> None:
                nonlocal count
                count += 1

            store.update_index()
            database._connection.set_progress_handler(step, 1)
            assert store.search("absent") == []
            database._connection.set_progress_handler(None, 1)
            return count

        taken = []
        for first, count in ((0, 50), (50, 500)):
            add_sessions(store, first, count)
            taken.append(steps_of_a_search())

    assert 0 < taken[1] < taken[0] * 1.5, "eleven times as many sessions"


REMOVALS = {
    "the newest session": "DELETE FROM messages WHERE session_id = 'b'; DELETE FROM sessions WHERE id = 'b'",
    "an old session, and numbers change": "DELETE FROM messages WHERE session_id = 'a'; VACUUM",
    "each table": "DROP TABLE search_state; DROP TABLE search_documents; DROP TABLE search_passages;"
    "DROP TABLE search_words",
} | {f"only {name}": f"DROP TABLE {name}" for name in text_index._TABLES["sqlite"]}


@pytest.mark.parametrize("removal", REMOVALS)
def test_what_is_left_and_what_is_new_is_found_after_a_removal(tmp_path: Path, removal: str) -> None:
    place = tmp_path / "store.db"
    with open_store(place) as store:
        for name in ("a", "b", "c"):
            store.create_session(name)
        store.extend([user(f"apple {number}", session_id="a") for number in range(3)])
        store.extend([user(f"apple {number}", session_id="b") for number in range(3, 6)])
        assert len(said(store, "apple")) == 6

    with sqlite3.connect(place) as connection:
        connection.executescript(REMOVALS[removal])
        left = [text for (text,) in connection.execute("SELECT content_json FROM messages ORDER BY rowid")]
    connection.close()

    with open_store(place) as store:
        store.extend([user(f"apple {number}", session_id="c") for number in range(6, 9)])
        assert len(said(store, "apple")) == len(left) + 3
        assert said(store, "apple", limit=3) == [f"apple {number}" for number in (8, 7, 6)]


def test_an_index_that_an_earlier_version_made_is_continued(store: Store) -> None:
    store.create_session("a")
    store.create_session("b")
    store.extend([user("apple", session_id="a"), user("apple of b", session_id="b")])
    assert len(said(store, "apple")) == 2
    store.database.run("DELETE FROM search_documents WHERE key = ''")  # earlier versions compared all sessions
    changes = "SELECT changes FROM search_state"
    store.append(user("a later apple", session_id="a"))

    assert said(store, "apple", limit=1) == ["a later apple"]
    before = store.database.rows(changes)
    assert len(said(store, "apple")) == 3
    assert store.database.rows(changes) == before  # nothing was left to index


def test_other_languages_and_long_messages(store: Store) -> None:
    store.create_session("a")
    long = "\n".join(f"word{number}" for number in range(60_000))
    store.extend([
        user("Über Äpfel und Crème brûlée", session_id="a"),
        user("これは日本語の文章です", session_id="a"),
        user("\x00 \ud800 odd letters", session_id="a"),
        user(long, session_id="a"),
    ])  # fmt: skip

    assert said(store, "apfel creme") == ["Über Äpfel und Crème brûlée"]
    assert said(store, "日本語") == ["これは日本語の文章です"]
    assert said(store, "本日") == []
    assert len(said(store, "odd")) == 1
    assert said(store, "word59999") == ["word59999"]
    assert words_of("snake_case, kebab-case, 3.14 É") == ["snake", "case", "kebab", "case", "3", "14", "e"]


def test_two_that_index_at_once_index_each_message_once(place: str) -> None:
    with open_store(place) as store:
        for number in range(450):
            store.create_session(f"s{number:03}")
        store.extend([user(f"common {number}", session_id=f"s{number:03}") for number in range(450)])

    def search(_: int) -> int:
        with open_store(place) as store:
            return len(store.search("common", limit=1000))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(search, range(3))) == [450] * 3


@pytest.mark.parametrize("version", [1, 2])
def test_stores_of_earlier_versions_open_and_are_searched(tmp_path: Path, version: int) -> None:
    place = tmp_path / "old.db"
    with sqlite3.connect(place) as old:
        old.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at BIGINT)")
        for step in migrations("sqlite")[:version]:
            for statement in step.statements:
                old.execute(statement)
            old.execute("INSERT INTO schema_migrations VALUES (?, ?, 0)", (step.version, step.name))
        old.execute("INSERT INTO sessions VALUES ('s', '', NULL, NULL, 1, 0, 0)")
        row = (new_ulid(), "s", "user", '[{"type":"text","text":"kept for ever"}]', "{}", 0, 1)
        old.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    old.close()

    with open_store(place) as store:
        assert said(store, "kept") == ["kept for ever"]
        assert [message.text for message in store.messages("s")] == ["kept for ever"]
        assert list(store.verify()) == []


def test_a_store_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "store.db"
    with open_store(place) as store:
        store.create_session("a")
        store.extend([user("a question", session_id="a"), assistant("the answer", session_id="a")])
    monkeypatch.setattr(os, "access", lambda _path, mode, **_rest: mode == os.R_OK)

    with open_store(place) as store:
        assert [message.text for message in store.messages("a")] == ["a question", "the answer"]
        assert [one.id for one in store.sessions()] == ["a"]
        assert said(store, '"the answer"') == said(store, "ANSW") == ["the answer"]
        assert [turn.matches for turn in store.turns(words=["answer"])] == [1]
        assert list(store.verify()) == []
        assert len(list(store.export_lines("a"))) == 3
        with pytest.raises(StoreError, match="permission to write"):
            store.append(user("more", session_id="a"))

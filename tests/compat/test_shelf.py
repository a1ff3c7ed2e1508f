"""Stores, conversations, sessions, transcripts and cassettes of an earlier schema open under today's code."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from interlingua import assistant
from interlingua.codec import dumps_message, read_jsonl
from interlingua.types import Message
from interlingua_cli.cassettes import read_cassette
from interlingua_sessions import Store, open_store
from interlingua_transcripts import from_messages, read_transcript, write_transcript
from tests.compat import shelf

NAMES = sorted(shelf.sums())
STORES = [name for name in NAMES if name.startswith("store-")]
ADD = "`python -m tests.compat.shelf` adds the file of today's schema"


def _shape(message: Message) -> list[tuple[str, str]]:
    return [(block.type, getattr(block, "text", "") or getattr(block, "name", "")) for block in message.content]


EXPECTED = shelf.conversation()


def restored(name: str, folder: Path) -> Path:
    """Return a database made of a dump."""
    place = folder / "store.db"
    database = sqlite3.connect(place)
    database.executescript((shelf.FOLDER / name).read_text(encoding="utf-8"))
    database.close()
    return place


@pytest.mark.parametrize("name", NAMES)
def test_a_file_on_the_shelf_never_changes(name: str) -> None:
    assert shelf.digest(shelf.FOLDER / name) == shelf.sums()[name], f"{name} is what an older version wrote: restore it"


def test_nothing_is_on_the_shelf_without_a_digest() -> None:
    assert sorted(path.name for path in shelf.FOLDER.iterdir()) == sorted([*NAMES, shelf.SUMS.name]), ADD


def test_every_schema_up_to_todays_is_on_the_shelf() -> None:
    wanted = [f"conversation-{number}.jsonl" for number in range(1, shelf.SCHEMA_VERSION + 1)]
    wanted += [f"session-{number}.jsonl" for number in range(1, shelf.SCHEMA_VERSION + 1)]
    wanted += [f"{agent}-{number}.jsonl" for agent in shelf.AGENTS for number in range(1, shelf.SCHEMA_VERSION + 1)]
    wanted += [f"store-{number}.sql" for number in range(1, shelf.STORE_SCHEMA + 1)]

    assert not set(wanted) - set(NAMES), ADD


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_each_schema_opens_and_goes_on(name: str, tmp_path: Path) -> None:
    with open_store(restored(name, tmp_path)) as store:
        _check(store)
        entries = [entry.text for entry in store.entries(shelf.SESSION)]
        assert entries == (["They spoke of moons."] if name != "store-1.sql" else [])
        added = store.append(assistant("It is frozen.", session_id=shelf.SESSION))
        assert [one.id for one in store.messages(shelf.SESSION)][-1] == added.id
        assert {finding.check for finding in store.verify()} <= {"I10", "I13"}  # as the conversation itself has them
    with open_store(tmp_path / "store.db") as again:
        assert again.count_messages(shelf.SESSION) == len(EXPECTED) + 1


def _check(store: Store) -> None:
    assert list(store.messages(shelf.SESSION)) == EXPECTED
    assert [(call.id, call.name, call.status.value) for call in store.tool_calls(shelf.SESSION)] == [
        ("tu_1", "look_up", "failed")
    ]


def test_a_schema_is_what_its_dump_says(tmp_path: Path) -> None:
    """The dump of schema 1 has no later table: it is not today's store under an old number."""
    tables = {
        name: set(re.findall(r"CREATE TABLE (\w+)", (shelf.FOLDER / name).read_text(encoding="utf-8")))
        for name in STORES
    }

    assert tables["store-1.sql"] == {"messages", "schema_migrations", "sessions", "tool_calls"}
    assert tables["store-1.sql"] < tables["store-2.sql"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("conversation-")])
def test_a_conversation_of_each_schema_is_read_and_written_as_it_was(name: str) -> None:
    lines = (shelf.FOLDER / name).read_text(encoding="utf-8").splitlines()
    read = list(read_jsonl(lines))

    assert read == EXPECTED
    assert list(map(dumps_message, read)) == lines


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("session-")])
def test_an_exported_session_of_each_schema_is_imported(name: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "new.db") as store:
        store.import_jsonl(shelf.FOLDER / name)
        _check(store)
        assert [entry.text for entry in store.entries(shelf.SESSION)] == ["They spoke of moons."]


@pytest.mark.parametrize("system", shelf.AGENTS)
def test_session_files_of_agents_are_read_and_written_back_from_what_was_kept(system: str) -> None:
    for number in range(1, shelf.SCHEMA_VERSION + 1):
        written = (shelf.FOLDER / f"{system}-{number}.jsonl").read_bytes()
        lines = (shelf.FOLDER / f"{system}-entries-{number}.jsonl").read_text(encoding="utf-8").splitlines()
        kept = from_messages(list(read_jsonl(lines)))

        assert _shape(read_transcript(written, system).messages[-1]) == _shape(EXPECTED[-1])
        assert kept is not None
        assert write_transcript(kept) == written


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cassette-")])
def test_a_cassette_of_each_form_is_read(name: str) -> None:
    (exchange,) = read_cassette(shelf.FOLDER / name)

    assert (exchange.status, exchange.method, exchange.streamed) == (200, "POST", True)
    assert b"tool_use" in exchange.body

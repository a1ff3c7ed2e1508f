"""Damaged SQLite files: the new store has all that their other pages hold, and what is lost is named.

The tests walk SQLite's trees to choose pages; what is repaired is read without them.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from random import Random
from shutil import copyfile

import pytest

from interlingua import CallerError
from interlingua.types import Message
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.factories import assistant, tool_result, user
from interlingua_sessions import EntryKind, Store, StoreError, StoreFinding, open_store
from interlingua_sessions.store.pages import PageFile
from interlingua_sessions.store.repair import repair_store

SESSIONS = 16
PAGE = 4096
Contents = dict[str, list[str]]
"""Of each session: its exported lines."""


def _fill(store: Store) -> None:
    random = Random(1)
    for number in range(SESSIONS):
        name = f"s{number:02}"
        store.create_session(name, workspace_path="/home/ada", active_model="acme:m")
        made: list[Message] = []
        for turn in range(12):
            call = ToolUseBlock(id=f"tu_{name}_{turn}", name="read", input={"path": "x" * random.randrange(200)})
            long = turn == 5 and number % 4 == 0
            text = f"{name} {turn} " + "word " * (3_000 if long else random.randrange(150))
            made += [
                user(text, session_id=name),
                assistant([call], session_id=name),
                tool_result(call, "found", session_id=name),
            ]
        store.extend(made)
        store.append_entry(name, EntryKind.CUSTOM, "seen", custom_type="review")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store."""
    place = tmp_path_factory.mktemp("filled") / "store.db"
    with open_store(place) as store:
        _fill(store)
    return place


@pytest.fixture
def damaged(filled: Path, tmp_path: Path) -> Path:
    """Return a copy of it to damage."""
    return Path(copyfile(filled, tmp_path / "store.db"))


def _contents(place: Path) -> Contents:
    with open_store(place) as store:
        return {one.id: list(store.export_lines(one.id)) for one in store.sessions()}


def _messages(place: Path) -> dict[str, Message]:
    with open_store(place) as store:
        return {message.id: message for one in store.sessions() for message in store.messages(one.id)}


def _destroy(place: Path, pages: list[int], *, begin: int = 0, filled: bytes = b"\xa5") -> None:
    with place.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE + begin)
            file.write(filled * (PAGE - begin))


def _pages_of(place: Path, table: str) -> tuple[list[int], list[int]]:
    """Return the inner pages and the leaves of a table's tree."""
    with closing(sqlite3.connect(place)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    data = place.read_bytes()
    inner, leaves, waiting = [], [], [root]
    while waiting:
        number = waiting.pop()
        page = data[(number - 1) * PAGE : number * PAGE]
        if page[0] != 5:
            leaves.append(number)
            continue
        inner.append(number)
        cells = [
            int.from_bytes(page[at : at + 2], "big") for at in range(12, 12 + 2 * int.from_bytes(page[3:5], "big"), 2)
        ]
        waiting += [int.from_bytes(page[at : at + 4], "big") for at in (8, *cells)]
    return inner, leaves


def _by_page(place: Path) -> dict[int, set[str]]:
    """Return the ids of the rows that begin on each page."""
    return {page.number: {str(row[0]) for row in page.rows} for page in PageFile(place.read_bytes()).pages()}


def _repair(place: Path) -> tuple[Path, list[StoreFinding]]:
    new = place.with_name("new.db")
    found = list(repair_store(place, new))
    with open_store(new) as store:
        assert {finding.check for finding in store.verify()} <= {"I20", "I21", "I22", "I23"}, "lost answers at most"
        assert store.database.damage() == []
    assert {path.name.partition("-")[0] for path in place.parent.iterdir()} == {"new.db", "store.db"}
    return new, found


def test_a_whole_store_is_the_same_in_the_new_file(damaged: Path) -> None:
    before = _contents(damaged)
    new, found = _repair(damaged)

    assert found == []
    assert _contents(new) == before


@pytest.mark.parametrize("seed", range(5))
def test_three_damaged_pages_lose_their_own_messages_and_no_others(damaged: Path, seed: int) -> None:
    before = _messages(damaged)
    _, leaves = _pages_of(damaged, "messages")
    chosen = Random(seed).sample(leaves, 3)
    on_page = _by_page(damaged)
    gone = {message for page in chosen for message in on_page[page]}
    _destroy(damaged, chosen)
    with open_store(damaged) as store, pytest.raises(StoreError, match="malformed"):
        list(store.verify())

    new, found = _repair(damaged)
    assert _messages(new) == {name: message for name, message in before.items() if name not in gone}
    named = {finding.message_id: finding.session_id for finding in found if finding.message_id}
    assert named == {name: before[name].session_id for name in gone}
    texts = [finding.message for finding in found if not finding.message_id]
    for page in chosen:
        assert f"page {page} of the file cannot be read" in texts


def test_damaged_inner_pages_and_indexes_lose_nothing(damaged: Path) -> None:
    before = _contents(damaged)
    inner, _ = _pages_of(damaged, "messages")
    with closing(sqlite3.connect(damaged)) as database:
        indexes = [
            root for (root,) in database.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'") if root
        ]
    _destroy(damaged, inner + indexes, filled=b"\0")

    new, found = _repair(damaged)
    assert _contents(new) == before
    assert len(found) >= len(inner)


def test_a_damaged_first_page_loses_nothing_but_the_names_of_tables(damaged: Path) -> None:
    before = _contents(damaged)
    _destroy(damaged, [1])

    new, found = _repair(damaged)
    assert _contents(new) == before
    assert [finding.message for finding in found] == ["page 1 of the file cannot be read"]


def test_a_page_damaged_in_part_keeps_its_other_records(damaged: Path) -> None:
    before = _messages(damaged)
    _, leaves = _pages_of(damaged, "messages")
    on_page = _by_page(damaged)
    page = max(leaves, key=lambda number: len(on_page[number]))
    held = on_page[page]
    _destroy(damaged, [page], begin=PAGE - 600)

    new, found = _repair(damaged)
    lost = before.keys() - _messages(new).keys()
    assert 0 < len(lost) < len(held)
    assert lost < held
    assert {finding.message_id for finding in found if finding.message_id} == lost
    assert f"page {page} of the file has {len(lost)} records that cannot be read" in [one.message for one in found]


def test_sessions_and_calls_whose_rows_are_lost_are_made_from_the_messages(damaged: Path) -> None:
    before = _messages(damaged)
    for table in ("sessions", "tool_calls"):
        _destroy(damaged, _pages_of(damaged, table)[1])

    new, found = _repair(damaged)
    assert _messages(new) == before
    assert sum("its workspace, model" in finding.message for finding in found) == SESSIONS
    with open_store(new) as store:
        assert all(call.result_message_id for call in store.tool_calls("s00"))
        assert len(store.tool_calls("s00")) == 12


def test_a_store_in_use_is_read_with_its_log(damaged: Path) -> None:
    with open_store(damaged) as store:
        store.append(user("still in the log", session_id="s00"))
        assert damaged.with_name("store.db-wal").stat().st_size
        new = damaged.with_name("new.db")
        assert list(repair_store(damaged, new)) == []
        assert _contents(new)["s00"] == list(store.export_lines("s00"))


def test_what_is_no_store_is_refused_and_leaves_no_file(damaged: Path) -> None:
    other = damaged.with_name("other.db")
    other.write_bytes(b"\0" * 3 * PAGE)
    with pytest.raises(StoreError, match="nothing of a store"):
        list(repair_store(other, damaged.with_name("new.db")))
    with pytest.raises(CallerError, match="already exists"):
        list(repair_store(damaged, other))
    with pytest.raises(CallerError, match="only SQLite stores"):
        list(repair_store("postgresql://localhost/x", damaged.with_name("new.db")))
    with closing(sqlite3.connect(damaged)) as database, database:
        database.execute("INSERT INTO schema_migrations VALUES (99, 'later', 0)")
    with pytest.raises(StoreError, match="newer version"):
        list(repair_store(damaged, damaged.with_name("new.db")))

    assert not damaged.with_name("new.db").exists()


def test_a_backup_made_while_others_write_is_a_whole_store(damaged: Path) -> None:
    done = threading.Event()
    written: list[str] = []

    def write() -> None:
        with open_store(damaged) as store:
            while not done.is_set():
                written.append(store.append(user("more " * 50, session_id="s01")).id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with open_store(damaged) as store:
            for number in range(5):
                at_least = len(written)
                store.backup(damaged.with_name(f"copy{number}.db"))
                with open_store(damaged.with_name(f"copy{number}.db")) as copy:
                    assert list(copy.verify()) == []
                    assert copy.count_messages("s01") - 36 >= at_least
    finally:
        done.set()
        writer.join()
    with open_store(damaged) as store:
        assert [message.id for message in store.messages("s01")][36:] == written, "no writer was refused"

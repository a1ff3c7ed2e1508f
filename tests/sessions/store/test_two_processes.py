"""Processes that append to one store, two or fifty: nothing lost, ids in the order of the commits."""

from __future__ import annotations

import sqlite3
from itertools import pairwise

from interlingua_sessions import open_store
from tests.support.store_writers import Writers

EACH = 5_000
FIFTY, FEW = 50, 10


def test_two_processes_append_to_one_session(place: str) -> None:
    with open_store(place) as store:
        store.create_session("shared")
    with Writers(place) as writers:
        pids = {writers.start("append", "shared", EACH) for _ in range(2)}
    with open_store(place) as store:
        stored = [(message.id, message.text) for message in store.messages("shared")]
        assert list(store.verify()) == []

    puts = [words for _, *words in writers.said["shared"]]
    assert sorted(stored) == sorted((message_id, f"{pid} {number}") for message_id, pid, number, _, _ in puts)
    assert {text for _, text in stored} == {f"{pid} {number}" for pid in pids for number in range(EACH)}
    _ids_follow_time(puts)
    _ids_follow_commits(place, [message_id for message_id, _ in stored])


def test_fifty_processes_append_to_one_session(place: str) -> None:
    with open_store(place) as store:
        store.create_session("shared")
    with Writers(place) as writers:
        pids = {writers.start("append", "shared", FEW) for _ in range(FIFTY)}
    with open_store(place) as store:
        stored = [(message.id, message.text) for message in store.messages("shared")]
        assert list(store.verify()) == []

    assert {text for _, text in stored} == {f"{pid} {number}" for pid in pids for number in range(FEW)}
    puts = [words for _, *words in writers.said["shared"]]
    assert sorted(message_id for message_id, *_ in puts) == [message_id for message_id, _ in stored]
    _ids_follow_time(puts)
    _ids_follow_commits(place, [message_id for message_id, _ in stored])


def _ids_follow_time(puts: list[list[str]]) -> None:
    """What was there before another was asked for has the lower id, whichever process wrote it."""
    asked = sorted((float(before), message_id) for message_id, _, _, before, _ in puts)
    there = sorted((float(after), message_id) for message_id, _, _, _, after in puts)
    highest, done = "", 0
    for before, message_id in asked:
        while done < len(there) and there[done][0] < before:
            highest, done = max(highest, there[done][1]), done + 1
        assert message_id > highest


def _ids_follow_commits(place: str, ids: list[str]) -> None:
    """The database's own record of the order says the same, where it keeps one."""
    if place.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(place) as server:
            (kept,) = server.execute("SHOW track_commit_timestamp").fetchone() or ("off",)
            if kept == "on":
                sql = "SELECT pg_xact_commit_timestamp(xmin) FROM messages WHERE session_id = 'shared' ORDER BY id"
                times = [row[0] for row in server.execute(sql)]
                assert all(before <= behind for before, behind in pairwise(times))
        return
    connection = sqlite3.connect(place)
    sql = "SELECT id FROM messages WHERE session_id = 'shared' ORDER BY rowid"
    assert [row[0] for row in connection.execute(sql)] == ids
    connection.close()

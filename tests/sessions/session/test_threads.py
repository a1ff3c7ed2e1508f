"""Asynchronous sessions leave the event loop free while the database is busy, and nothing is lost or out of order."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua_sessions import Store, open_store
from interlingua_sessions.session import AsyncSession
from interlingua_sessions.streams import in_thread
from tests.sessions.talking import async_client
from tests.support.fake_provider import STREAM, Reply, served, sse

WRITES = ("extend", "save_partial", "finish")


def test_nothing_is_written_from_the_event_loops_thread(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    def noting(name: str, real: Any) -> Any:
        def noted(*given: Any, **named: Any) -> Any:
            seen.append((name, threading.get_ident()))
            return real(*given, **named)

        return noted

    for name in WRITES:
        monkeypatch.setattr(store, name, noting(name, getattr(store, name)))

    async def talk(url: Any) -> int:
        async with async_client(url) as c:
            session = AsyncSession.open(store, "s", client=c)
            await session.send("hi")
            async with session.stream("and?") as stream:
                await stream.message
            async with session.stream("left early") as stream:
                events = aiter(stream)
                for _ in range(2):  # the first save appends, the second writes the same message anew
                    await anext(events)
                    await asyncio.sleep(0.3)  # the saver saves
        return threading.get_ident()

    slow = Reply(body=[*sse({"t": "hel"}), *sse({"t": "lo"}), 0.9, *STREAM[2:]])
    with served(Reply(), Reply(body=STREAM), slow) as server:
        loop = asyncio.run(talk(server))

    assert {name for name, _ in seen} == set(WRITES)
    assert loop not in {thread for _, thread in seen}
    assert [message.role.value for message in store.messages("s")][:4] == ["user", "assistant"] * 2
    assert list(store.verify()) == []


def test_the_loop_runs_on_while_another_process_holds_the_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def talk(server: Any, other: sqlite3.Connection) -> tuple[int, il.Message]:
        async with async_client(server) as c, AsyncSession.open(path, "s", client=c) as session:
            other.execute("BEGIN IMMEDIATE")
            sent = asyncio.create_task(session.send("hi"))
            ticks, end = 0, time.monotonic() + 0.4
            while time.monotonic() < end:
                await asyncio.sleep(0.01)
                ticks += 1
            assert not sent.done()
            other.execute("ROLLBACK")
            return ticks, await sent

    with served() as server, closing(sqlite3.connect(path, isolation_level=None)) as other:
        ticks, answer = asyncio.run(talk(server, other))

    assert ticks > 5  # about 40; one where the loop waits
    with open_store(path) as store:
        assert store.last("s") == answer


def test_a_task_that_is_cancelled_while_it_stores_has_stored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real, storing, may_go_on = store.extend, threading.Event(), threading.Event()

    def slow(messages: Any, **named: Any) -> Any:
        storing.set()
        assert may_go_on.wait(10)
        return real(messages, **named)

    monkeypatch.setattr(store, "extend", slow)

    async def talk(server: Any) -> AsyncSession:
        async with async_client(server) as c:
            session = AsyncSession.open(store, "s", client=c)
            sent = asyncio.create_task(session.send("hi"))
            await asyncio.to_thread(storing.wait, 10)
            sent.cancel()
            await asyncio.sleep(0.05)
            assert not sent.done()
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await sent
            return session

    with served() as server:
        session = asyncio.run(talk(server))

    assert [message.text for message in store.messages("s")] == ["hi"]
    assert list(session.messages) == list(store.messages("s"))


def test_what_the_work_raises_is_raised() -> None:
    async def run() -> None:
        with pytest.raises(il.CallerError, match="no"):
            await in_thread(_refuse)

    asyncio.run(run())


def _refuse() -> None:
    raise il.CallerError("no")

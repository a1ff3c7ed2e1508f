"""A turn reads nothing back: one statement for each row written, and one read of what others wrote."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlingua_agents import ToolLimits, tool
from interlingua_agents.loop import AgentLoop
from interlingua_sessions import Store
from interlingua_sessions.session import Session
from tests.agents.scripted import Say, Theatre, call, playing, playing_async


@tool(side_effects="none")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(side_effects="write", timeout=None)
def write(text: str) -> str:
    """Write something down."""
    return "x" * 500 + text


class Trace:
    """The statements of one connection, transactions' BEGIN and COMMIT left out, and the rows they wrote."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.rows = 0

    @property
    def reads(self) -> list[str]:
        return [sql for sql in self.statements if sql.startswith("SELECT")]


@contextmanager
def traced(store: Store) -> Iterator[Trace]:
    connection: sqlite3.Connection = store.database._connection  # type: ignore[attr-defined]
    trace, before = Trace(), connection.total_changes

    def note(sql: str) -> None:
        words = sql.split()
        if words[0] not in ("BEGIN", "COMMIT"):
            trace.statements.append(" ".join(words))

    connection.set_trace_callback(note)
    try:
        yield trace
    finally:
        connection.set_trace_callback(None)
        trace.rows = connection.total_changes - before


def theatre(calls: int = 1) -> Theatre:
    """A warm-up exchange, then an answer with calls, then the last one."""
    parts = [call("add", {"a": number, "b": 1}) for number in range(calls)]
    return Theatre("Hello.", Say(parts=["I add.", *parts]), "Done.")


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_a_tool_turn_issues_one_statement_for_each_row(tmp_path: Path, calls: int) -> None:
    with playing(theatre(calls), tmp_path / "s.db", system="Be brief.") as session:
        session.send("hi")
        with traced(session.store) as trace:
            session.send("2 + 3?", tools=AgentLoop([add]))

        assert len(trace.reads) == 1, trace.reads
        assert len(trace.statements) - len(trace.reads) <= trace.rows, trace.statements
        assert len(session.messages) == 3 + 3 + calls
        assert list(session.store.verify("s")) == []
    print(f"{calls} calls: {len(trace.statements)} statements, {trace.rows} rows written")


def test_so_does_a_streamed_one(tmp_path: Path) -> None:
    """Snapshots of the growing answer are saved at their own rate: each is rows written, none is a read."""
    told: list[Any] = []
    with playing(theatre(2), tmp_path / "s.db") as session:
        session.send("hi")
        with traced(session.store) as trace:
            session.send("2 + 3?", tools=AgentLoop([add], listen=told.append))

        assert len(trace.reads) == 1, trace.reads
        assert len(trace.statements) - len(trace.reads) <= trace.rows, trace.statements
        assert told
        assert list(session.store.verify("s")) == []


def test_so_does_an_asynchronous_one(tmp_path: Path) -> None:
    async def turn() -> Trace:
        async with playing_async(theatre(), tmp_path / "s.db") as session:
            await session.send("hi")
            with traced(session.store) as trace:
                await session.send("2 + 3?", tools=AgentLoop([add]))
            return trace

    trace = asyncio.run(turn())
    assert len(trace.reads) == 1, trace.reads
    assert len(trace.statements) - len(trace.reads) <= trace.rows, trace.statements


def test_a_shortened_result_and_a_failure_are_written_with_the_message(tmp_path: Path) -> None:
    lines = Theatre(
        "Hello.", Say(parts=[call("write", {"text": "a"}), call("add", {"a": "no"}), call("gone")]), "Done."
    )
    loop = AgentLoop([add, write], confirm=lambda _question: True, limits=ToolLimits(result=100))
    with playing(lines, tmp_path / "s.db") as session:
        session.send("hi")
        with traced(session.store) as trace:
            session.send("go", tools=loop)
        rows = {row.name: row for row in session.store.tool_calls("s")}
        kept = session.store.kept_result(rows["write"].id)

    assert len(trace.reads) == 1, trace.reads
    assert len(trace.statements) - len(trace.reads) <= trace.rows, trace.statements
    assert kept is not None
    assert kept.content[0].text == "x" * 500 + "a"  # type: ignore[union-attr]
    assert [rows[name].status.value for name in ("write", "add", "gone")] == ["succeeded", "failed", "failed"]
    assert "invalid input" in str(rows["add"].error)
    assert "there is no tool 'gone'" in str(rows["gone"].error)


def _append(session: Session) -> None:
    with Session.open(str(session.store.database._where), "s", client=session._client) as other:  # type: ignore[attr-defined]
        other.add(other.messages[0])


@pytest.mark.parametrize("when", ["between turns", "in a turn"])
def test_what_others_wrote_is_read_and_stands_in_its_place(tmp_path: Path, when: str) -> None:
    """Another writer's message comes between: the history in memory is the one in the store."""
    intrude: list[Callable[[], None]] = []

    @tool(side_effects="none")
    def look() -> str:
        """Look."""
        for act in intrude:
            act()
        return "seen"

    with playing(Theatre("Hello.", Say(parts=[call("look")]), "Done.", "Bye."), tmp_path / "s.db") as session:
        session.send("hi")
        if when == "in a turn":
            intrude.append(lambda: _append(session))
        else:
            _append(session)
        session.send("go", tools=AgentLoop([look]))
        session.send("end")

        stored = list(session.store.messages("s"))
        assert [one.id for one in session.messages] == [one.id for one in stored]
        assert list(session.messages) == stored
        assert len(stored) == 9

"""Branches of a session, undone questions and compaction on demand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlingua import CallerError
from interlingua.testing import ScriptedModel, call
from interlingua_agents import Agent, tool
from interlingua_sessions import AsyncSession, EntryKind, Session, SessionExistsError, Store, open_store


@tool(side_effects="read")
def look(name: str) -> str:
    """Look something up."""
    return f"{name} is here"


def _open(store: Store | Path, *answers: object) -> tuple[Session, ScriptedModel]:
    model = ScriptedModel(list(answers))  # type: ignore[arg-type]
    return Session.open(store, "s", client=model.client(), system="Be brief."), model


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def test_a_branch_has_the_messages_up_to_one_and_both_continue(place: Path) -> None:
    with open_store(place) as store:
        session, model = _open(store, call("look", name="Io"), "Io it is.", "two", "other two", "three")
        Agent(tools=[look]).run_sync("one?", session=session)
        first = session.messages[-1]
        session.send("two?")
        branch = session.branch(first, "b")

        assert [message.text for message in branch.messages] == [message.text for message in session.messages[:5]]
        assert [one.content for one in branch.messages[3].tool_results] == [
            one.content for one in session.messages[3].tool_results
        ]
        assert branch.send("other two?").text == "other two"
        assert session.send("three?").text == "three"
        assert [message.text for message in model.requests[3].messages][-2:] == ["Io it is.", "other two?"]
        assert [call.name for call in store.tool_calls("b")] == ["look"]
        assert [call.status.value for call in store.tool_calls("b")] == ["succeeded"]
        assert list(store.verify()) == []
        with pytest.raises(SessionExistsError):
            session.branch(session_id="b")
        with pytest.raises(CallerError, match="has no message 'x' to branch at"):
            session.branch("x")
        assert {record.id for record in store.sessions()} == {"s", "b"}


def test_undo_ends_before_the_newest_question_and_loses_nothing(place: Path) -> None:
    with open_store(place) as store:
        session, _ = _open(store, "one", "two", "again")
        session.send("1?")
        session.send("2?")
        shorter = session.undo()

        assert [message.text for message in shorter.messages] == ["Be brief.", "1?", "one"]
        assert shorter.send("2 again?").text == "again"
        assert [message.text for message in session.messages][-1] == "two"
        assert len(shorter.undo().undo().messages) == 1


def test_undo_of_an_empty_session_is_refused(place: Path) -> None:
    with open_store(place) as store, pytest.raises(CallerError, match="nothing before the newest question"):
        _open(store)[0].undo()


def test_compact_replaces_older_messages_by_a_summary_at_once(place: Path) -> None:
    with open_store(place) as store:
        session, model = _open(store, *[f"answer {number} " * 200 for number in range(4)], "the summary", "last")
        for number in range(4):
            session.send(f"question {number}? " * 100)

        assert session.compact()
        assert session.entries[-1].kind is EntryKind.COMPACTION_SUMMARY
        session.send("and now?")
        sent = " ".join(message.text for message in model.last.messages)
        assert "the summary" in sent
        assert "answer 0" not in sent
        assert any("answer 0" in message.text for message in session.messages)
        early = session.branch(session.messages[2])
        assert early.entries == ()  # the summary covers messages that the branch does not have


def test_asynchronous_sessions_have_them_too(place: Path) -> None:
    async def main() -> tuple[list[str], bool]:
        model = ScriptedModel(["one", "two", "sum"])
        async with model.async_client() as client, AsyncSession.open(place, "s", client=client) as session:
            await session.send("1? " * 500)
            await session.send("2?")
            branch = session.undo()
            return [message.text for message in branch.messages][1:], await session.compact()

    assert asyncio.run(main()) == (["one"], True)

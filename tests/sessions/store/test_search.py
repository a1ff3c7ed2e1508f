"""Questions with what followed them, over all sessions, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from interlingua.types import new_ulid
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.factories import assistant, system, tool_result, user
from interlingua.types.messages import Message
from interlingua_sessions import LoggedTurn, SessionNotFoundError, Store

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def fill(store: Store, session: str, *messages: Message, minute: int = 0) -> None:
    """Store messages of one session, a second apart."""
    store.create_session(session)
    at = FIRST + timedelta(minutes=minute)
    store.extend([
        attrs.evolve(message, session_id=session, created_at=at + timedelta(seconds=number))
        for number, message in enumerate(messages)
    ])  # fmt: skip


def questions(turns: list[LoggedTurn]) -> list[str]:
    return [turn.question.text for turn in turns]


def test_turns_come_newest_first_across_sessions_with_all_that_followed(store: Store) -> None:
    used = ToolUseBlock(id=f"tu_{new_ulid()}", name="read_file", input={"path": "a"})
    fill(store, "a", system("s"), user("one"), assistant([used]), tool_result(used, "x"), assistant("1"), user("two"))
    fill(store, "b", user("three"), assistant("3"), minute=1)

    turns = list(store.turns())
    assert questions(turns) == ["three", "two", "one"]
    assert [len(turn.messages) for turn in turns] == [1, 0, 3]
    assert [answer.text for answer in turns[2].answers] == ["", "1"]
    assert questions(list(store.turns("a"))) == ["two", "one"]
    with pytest.raises(SessionNotFoundError):
        store.turns("nowhere")


def test_words_are_looked_for_in_questions_and_answers_alone(store: Store) -> None:
    used = ToolUseBlock(id=f"tu_{new_ulid()}", name="search", input={"query": "needle"})
    fill(store, "a", system("needle"), user("One Apple"), assistant("a pear, a Pear"))
    fill(store, "b", user("two"), assistant([used]), tool_result(used, "needle"), assistant("found"), minute=1)

    assert [turn.matches for turn in store.turns(words=["PEAR", "apple"])] == [3]
    assert list(store.turns(words=["needle"])) == []
    assert list(store.turns(words=["apple", "found"])) == []
    assert list(store.turns(words=["%"])) == []
    assert questions(list(store.turns("b", words=["found"]))) == ["two"]


def test_more_turns_than_are_read_at_a_time(store: Store) -> None:
    fill(store, "a", *(user(f"question {number}") for number in range(1100)))

    turns = questions(list(store.turns()))
    assert turns == [f"question {number}" for number in reversed(range(1100))]
    assert questions(list(store.turns(words=["question", "1099"]))) == ["question 1099"]

"""A store that is full loses no answer, and `send -c` continues a conversation that was answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlingua.testing import ScriptedModel
from interlingua.types import Message, Role
from interlingua_sessions import AsyncSession, Session
from interlingua_sessions.store import Store, StoreError
from tests.cli.conftest import Run
from tests.cli.local import LocalServer
from tests.cli.test_living import KEEPS

FULL = "sessions.db: database or disk is full"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes stores refuse messages of these roles from now on."""

    def fill(*roles: Role, sessions: bool = False) -> None:
        extend, finish, create = Store.extend, Store.finish, Store.create_session

        def refuse(messages: Sequence[Message]) -> None:
            if any(message.role in roles for message in messages):
                raise StoreError(FULL)

        def extended(self: Store, messages: Sequence[Message], **given: Any) -> Any:
            refuse(messages)
            return extend(self, messages, **given)

        def finished(self: Store, message: Message) -> Any:
            refuse([message])
            return finish(self, message)

        def created(self: Store, *given: Any, **named: Any) -> Any:
            if sessions:
                raise StoreError(FULL)
            return create(self, *given, **named)

        monkeypatch.setattr(Store, "extend", extended)
        monkeypatch.setattr(Store, "finish", finished)
        monkeypatch.setattr(Store, "create_session", created)

    return fill


@pytest.mark.parametrize("more", [[], ["--no-stream"], ["--json"]], ids=["streamed", "whole", "json"])
@pytest.mark.parametrize("roles", [(Role.ASSISTANT,), (Role.USER,), ()], ids=["answer", "question", "session"])
def test_a_full_disk_loses_no_answer(
    run: Run, server: LocalServer, full: Any, roles: tuple[Role, ...], more: list[str]
) -> None:
    full(*roles, sessions=not roles)
    result = run("send", "here:echo", "hi", *more)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("Hello") == 1
    assert "not stored" in result.stderr
    assert FULL in result.stderr
    assert "no answer" not in result.stderr
    assert len(server.requests) == 1


@pytest.mark.parametrize("roles", [(Role.ASSISTANT,), (Role.USER,)], ids=["answer", "question"])
def test_a_typed_answer_and_a_later_question_survive(
    run: Run, server: LocalServer, full: Any, roles: tuple[Role, ...]
) -> None:
    assert run("send", "here:echo", "first").exit_code == 0
    full(*roles)
    typed = run("send", "here:json", *KEEPS, "--schema", "name, age int", "a dog")
    assert typed.exit_code == 0, typed.stderr
    assert '"Rex"' in typed.stdout
    assert FULL in typed.stderr
    later = run("send", "-c", "second")
    assert later.exit_code == 0, later.stderr
    assert "Hello" in later.stdout
    assert [one["content"] for one in server.requests[-1]["messages"]] == ["first", "Hello", "second"]


def test_a_store_that_is_no_file_loses_no_answer(run: Run, server: LocalServer) -> None:
    result = run("send", "--store", "/dev/full", "here:echo", "hi")
    assert (result.exit_code, result.stdout.strip()) == (0, "Hello")
    assert "warning: not stored" in result.stderr


def test_the_error_of_the_store_has_the_answer(full: Any) -> None:
    model = ScriptedModel(["paid for", "paid for"])
    with model.client() as client:
        session = Session.open(":memory:", client=client)
        full(Role.ASSISTANT)
        with pytest.raises(StoreError) as whole:
            session.send("q")
        assert whole.value.partial.text == "paid for"
        with pytest.raises(StoreError) as streamed:
            _drain(session)
        assert streamed.value.partial.text == "paid for"


def _drain(session: Session) -> None:
    with session.stream("q") as stream:
        for _ in stream:
            pass


def test_the_error_of_the_store_has_the_answer_in_asynchronous_code(full: Any) -> None:
    model = ScriptedModel(["paid for", "paid for"])

    async def ask() -> None:
        async with model.async_client() as client:
            session = AsyncSession.open(":memory:", client=client)
            full(Role.ASSISTANT)
            with pytest.raises(StoreError) as whole:
                await session.send("q")
            assert whole.value.partial.text == "paid for"
            with pytest.raises(StoreError) as streamed:
                await _drain_async(session)
            assert streamed.value.partial.text == "paid for"

    asyncio.run(ask())


async def _drain_async(session: AsyncSession) -> None:
    async with session.stream("q") as stream:
        async for _ in stream:
            pass


def test_c_continues_the_last_conversation_that_was_answered(run: Run, server: LocalServer, place: Path) -> None:
    assert run("send", "here:echo", "first").exit_code == 0
    assert run("send", "here:refused", "second").exit_code == 1
    result = run("send", "-c", "third")
    assert result.exit_code == 0, result.stderr
    assert [one["content"] for one in server.requests[-1]["messages"]] == ["first", "Hello", "third"]


def test_c_without_an_answered_conversation_says_so(run: Run, server: LocalServer) -> None:
    assert run("send", "here:refused", "first").exit_code == 1
    result = run("send", "-c", "second")
    assert result.exit_code == 2
    assert "no answer is stored yet (--cid continues one without an answer)" in result.stderr


def test_session_send_keeps_the_url(run: Run, server: LocalServer) -> None:
    assert run("session", "send", "trip", "-m", "llamacpp:x", "--url", server.url, "hi").exit_code == 0
    again = run("session", "send", "trip", "and?")
    assert again.exit_code == 0, again.stderr
    assert len(server.requests) == 2
    assert server.requests[-1]["model"] == "x"

"""A question with media that the model cannot take is refused by name and not stored, so the next one is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua.types import ModelCapabilities
from interlingua_agents import Agent
from interlingua_sessions import Store
from interlingua_sessions.session import AsyncSession, Session
from tests.sessions.talking import async_client, client, registry
from tests.support.fake_provider import CAPABLE, Fake, Server, served

ASKED = il.user("What does it say?", documents=[b"%PDF-1.7 ..."])
LISTED = attrs.evolve(CAPABLE, supports_documents=False)
FOUND = pytest.mark.parametrize("can", [LISTED, attrs.evolve(LISTED, assumed=True)], ids=["listed", "assumed"])
REFUSED = r"fake:known cannot read the document \(application/pdf\) in block 1 of message 0"


def ask(way: str, store: Store, server: Server, can: ModelCapabilities, **options: Any) -> list[str]:
    """Ask with the document, then without; return the answers' texts."""
    found = registry(fake=Fake(can))

    async def ask_async() -> list[str]:
        async with async_client(server, found) as c:
            session = AsyncSession.open(store, "s", client=c)
            first = await session.send(ASKED, **options)
            return [first.text, (await session.send("And now?", **options)).text]

    if way == "async":
        return asyncio.run(ask_async())
    with client(server, found) as c:
        session = Session.open(store, "s", client=c)
        if way == "stream":
            with session.stream(ASKED, **options) as stream:
                return [stream.message.text]
        if way == "agent":
            return [Agent().run_sync(ASKED, session=session, **options).value]
        return [session.send(ASKED, **options).text, session.send("And now?", **options).text]


@FOUND
@pytest.mark.parametrize("way", ["send", "stream", "agent", "async"])
def test_it_is_refused_by_name_and_not_stored(way: str, store: Store, can: ModelCapabilities) -> None:
    with served() as server, pytest.raises(il.CapabilityError, match=REFUSED):
        ask(way, store, server, can)

    assert server.got == []
    assert store.count_messages("s") == 0


@FOUND
def test_the_next_question_is_answered(store: Store, can: ModelCapabilities) -> None:
    with served() as server, client(server, registry(fake=Fake(can))) as c:
        session = Session.open(store, "s", client=c)
        with pytest.raises(il.CapabilityError):
            session.send(ASKED)

        assert session.send("And now?").text == "hello"


@FOUND
@pytest.mark.parametrize("way", ["send", "async"])
def test_allow_loss_sends_it_with_a_note(way: str, store: Store, can: ModelCapabilities) -> None:
    with served() as server:
        assert ask(way, store, server, can, allow_loss=True) == ["hello", "hello"]

    assert b"[document not sent: this target takes no document]" in server.got[0].body


@FOUND
def test_allow_loss_of_a_client_holds_in_its_sessions(store: Store, can: ModelCapabilities) -> None:
    with served() as server, client(server, registry(fake=Fake(can)), allow_loss=True) as c:
        assert Session.open(store, "s", client=c).send(ASKED).text == "hello"

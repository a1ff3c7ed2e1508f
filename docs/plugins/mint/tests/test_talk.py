"""Conversations with the mint over loopback: one exchange for many requests, and the project in each body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from interlingua import AsyncClient, Client, system, user
from interlingua.errors import AuthenticationError, BadRequestError, OverloadedError, ServerError
from interlingua.types import StopReason
from mint_server import KEY, Service, served

PROMPT = "Please strike a coin with a ship on one side, and an owl on the other."
ENVIRON = {"MINT_PROJECT": "owls"}


def settings(url: str, key: str = KEY) -> dict[str, dict[str, object]]:
    return {"mint": {"base_url": url, "api_key": key, "options": {"token_url": f"{url}/token"}}}


def mint(url: str, key: str = KEY, environ: dict[str, str] = ENVIRON) -> Client:
    return Client("mint:silver-1", settings=settings(url, key), environ=environ, retry=0)


@pytest.fixture
def service() -> Iterator[Service]:
    with served() as service:
        yield service


def test_one_exchange_for_all_requests(service: Service) -> None:
    with mint(service.url) as client:
        answer = client.send([system("Be brief."), user(PROMPT)])
        with client.stream(PROMPT) as stream:
            pieces = list(stream.text_stream)
        cut = client.send(PROMPT, max_tokens=3)

    assert answer.text == f"Be brief. You asked: {PROMPT}"
    assert "".join(pieces) == f"You asked: {PROMPT}"
    assert cut.stop_reason is StopReason.MAX_TOKENS
    assert (service.issued, service.projects) == (1, ["owls"] * 3)


def test_tasks_share_the_exchange(service: Service) -> None:
    async def talk() -> set[str]:
        async with AsyncClient("mint:silver-1", settings=settings(service.url), environ=ENVIRON) as client:
            return {one.text for one in await asyncio.gather(*(client.send(PROMPT) for _ in range(8)))}

    assert asyncio.run(talk()) == {f"You asked: {PROMPT}"}
    assert service.issued == 1


def test_a_revoked_token_is_replaced(service: Service) -> None:
    with mint(service.url) as client:
        client.send(PROMPT)
        service.revoked.add("coin-1")
        client.send(PROMPT)

    assert service.issued == 2


def test_a_refused_key(service: Service) -> None:
    wrong = "iron+9876543210"
    with mint(service.url, key=wrong) as client, pytest.raises(AuthenticationError, match="no such key") as caught:
        client.send(PROMPT)

    assert wrong not in str(caught.value)
    assert service.projects == []


def test_a_project_is_needed(service: Service) -> None:
    with mint(service.url, environ={}) as client, pytest.raises(BadRequestError, match="name a project"):
        client.send(PROMPT)


def test_failures(service: Service) -> None:
    with mint(service.url) as client:
        with pytest.raises(OverloadedError, match="running"):
            client.send("busy?")
        with pytest.raises(ServerError, match="jammed"), client.stream("jam it, please") as stream:
            _ = stream.message

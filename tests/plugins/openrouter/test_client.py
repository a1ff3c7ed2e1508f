"""The whole way through the client, against a server on this machine: who calls, what is sent, what it cost."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from interlingua._http.client import AsyncClient, Client
from interlingua.errors import CapabilityError
from interlingua_openrouter.costs import reported_cost
from tests.plugins.openrouter.asking import answer
from tests.support.fake_provider import Reply, served

USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000, "cost": 3.5}
ANSWER = Reply(body=(json.dumps(answer({"content": "Hi"}, usage=USAGE)).encode(),))
COST = Reply(body=(b'{"data":{"id":"gen-1","total_cost":3.25}}',))


def test_the_cost_is_the_charge_that_the_service_reports() -> None:
    with served(ANSWER, COST) as server:
        settings = {"openrouter": {"api_key": "k", "base_url": server.url, "options": {"title": "Tests"}}}
        with Client("openrouter:anthropic/claude-opus-5.5", settings=settings) as client:
            message = client.send("hello")
            later = client.auxiliary("openrouter", "generation_cost", message=message)

    sent, asked = server.got
    assert sent.path.endswith("/chat/completions")
    assert (sent.headers["authorization"], sent.headers["x-openrouter-title"]) == ("Bearer k", "Tests")
    assert asked.path.endswith("/generation?id=gen-1")
    assert message.metadata.usage is not None
    assert (message.usage.cost_usd, message.usage.pricing_version) == (Decimal("3.5"), "reported")  # list price: 4
    assert reported_cost(message) == Decimal("3.5")
    assert later == Decimal("3.25")


def test_the_asynchronous_client_asks_too_and_unknown_kinds_are_refused() -> None:
    async def ask(url: str) -> object:
        settings = {"openrouter": {"api_key": "k", "base_url": url}}
        async with AsyncClient("openrouter:m", settings=settings) as client:
            with pytest.raises(CapabilityError):
                await client.auxiliary("openrouter", "horoscope")
            return await client.auxiliary("openrouter", "generation_cost", id="gen-1")

    with served(COST) as server:
        assert asyncio.run(ask(server.url)) == Decimal("3.25")

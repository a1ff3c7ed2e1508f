"""Exchanges besides the conversation: what leaves and what comes back, with both clients, against a real server."""

from __future__ import annotations

import asyncio
import json

import pytest

import interlingua as il
from tests.support.fake_provider import Reply, registry, served

ANSWER = Reply(body=(json.dumps({"models": ["one", "two"], "count_tokens": 12}).encode(),))


def test_the_live_model_list_is_asked_for_with_the_key() -> None:
    with served(ANSWER) as server, il.Client("fake:x", api_key="k", base_url=server.url, registry=registry()) as client:
        assert client.list_models() == ["one", "two"]

    assert (server.got[0].path, server.got[0].headers["x-key"]) == ("/models", "k")


def test_tokens_are_counted_of_the_request_that_would_be_sent() -> None:
    with served(ANSWER) as server, il.Client("fake:x", api_key="k", base_url=server.url, registry=registry()) as client:
        assert client.count_tokens("how long is this") == 12

    assert json.loads(server.got[0].body)["texts"] == ["how long is this"]


def test_the_asynchronous_client_does_the_same() -> None:
    async def ask(url: str) -> tuple[list[str], int]:
        async with il.AsyncClient("fake:x", api_key="k", base_url=url, registry=registry()) as client:
            return await client.list_models(), await client.count_tokens("hi")

    with served(ANSWER, ANSWER) as server:
        assert asyncio.run(ask(server.url)) == (["one", "two"], 12)


def test_failures_are_typed() -> None:
    replies = (Reply(status=401, body=(b"no",)), Reply(body=(b"[]",)))
    with served(*replies) as server, il.Client("fake:x", api_key="k", base_url=server.url, registry=registry()) as c:
        with pytest.raises(il.errors.AuthenticationError):
            c.list_models()
        with pytest.raises(il.errors.MalformedResponseError):
            c.list_models()
        with pytest.raises(il.errors.CapabilityError):
            c.registry.provider("fake").auxiliary_request("telepathy", {})

"""`AsyncClient` on trio: the same exchanges as on asyncio, and connections that end with their loop."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
import trio

import interlingua as il
from tests.support.fake_provider import STREAM, Reply, Server, registry, served, sse

ANY = pytest.mark.parametrize("transport", ["httpx", "pycurl"])


def client(server: Server, transport: str = "httpx", **more: Any) -> il.AsyncClient:
    settings = {"api_key": "k", "base_url": server.url, "registry": registry(), "retry": 0, "transport": transport}
    return il.AsyncClient("fake:known", **settings, **more)


@ANY
def test_send(transport: str) -> None:
    async def ask() -> str:
        async with client(server, transport) as c:
            return (await c.send("hi")).text

    with served() as server:
        assert trio.run(ask) == "hello"


@ANY
def test_stream(transport: str) -> None:
    async def ask() -> tuple[list[str], il.Message]:
        async with client(server, transport) as c, c.stream("hi") as stream:
            kinds: list[str] = [event.type async for event in stream]
            return kinds, await stream.message

    with served(Reply(body=[STREAM[0], 0.05, *STREAM[1:]])) as server:
        kinds, message = trio.run(ask)
    assert kinds == ["text_delta", "text_delta", "usage_update", "message_complete"]
    assert message.text == "hello"


@ANY
def test_many_requests_at_once_share_one_transport(transport: str) -> None:
    texts: list[str] = []

    async def ask(c: il.AsyncClient) -> None:
        texts.append((await c.send("hi")).text)

    async def main() -> None:
        async with client(server, transport) as c, trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask, c)

    with served() as server:
        trio.run(main)
    assert texts == ["hello"] * 20


def test_one_client_on_one_loop_after_another_leaves_no_connection_open() -> None:
    """A connection that is left open would warn, and warnings are errors here."""
    with served() as server:
        c = client(server)

        async def ask() -> str:
            return (await c.send("hi")).text

        run: list[Callable[[Callable[[], Awaitable[str]]], str]] = [
            trio.run,
            partial(anyio.run, backend="asyncio"),
            trio.run,
        ]
        assert [one(ask) for one in run] == ["hello"] * 3
    gc.collect()


@ANY
def test_a_cancelled_scope_keeps_a_cancelled_message(transport: str) -> None:
    async def main() -> il.Message:
        async with client(server, transport) as c:
            stream = c.stream("hi")
            with trio.move_on_after(1.0):  # creating a transport takes part of it
                async with stream:
                    async for _ in stream:
                        pass
            return stream.partial

    with served(Reply(body=[*sse({"t": "hel"}), 5.0, *STREAM[1:]])) as server:
        message = trio.run(main)
    assert message.text == "hel"
    assert message.metadata.status is il.MessageStatus.CANCELLED


@ANY
def test_a_cancelled_request_leaves_the_client_usable(transport: str) -> None:
    async def main() -> str:
        async with client(server, transport) as c:
            with trio.move_on_after(0.2) as scope:
                await c.send("hi")
            assert scope.cancelled_caught
            return (await c.send("hi")).text

    with served(Reply(wait=3.0), Reply()) as server:
        assert trio.run(main) == "hello"


def test_credentials_and_retries_wait_on_trio() -> None:
    with served(Reply(status=429, headers={"retry-after": "0.05"}), Reply()) as server:

        async def main() -> str:
            async with il.AsyncClient(
                "fake:known", api_key="k", base_url=server.url, registry=registry(), retry=1
            ) as c:
                return (await c.send("hi")).text

        assert trio.run(main) == "hello"
        assert len(server.got) == 2

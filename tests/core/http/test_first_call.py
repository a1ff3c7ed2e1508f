"""The first asynchronous call loads modules, certificates and catalogue: in a thread, and not as latency."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import interlingua as il
from interlingua._http import transports
from interlingua.plugins import RequestContext, WireChunk, WireResponse, hookimpl
from interlingua.types import Message, StreamEvent
from tests.support.fake_provider import STREAM, Fake, Reply, Server, registry, served

LOADING = 0.25


class Slow(Fake):
    """Takes long to write and to read for the first time, as an adapter does that imports its modules then."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[tuple[str, bool]] = []

    def _load(self, name: str) -> None:
        first = all(known != name for known, _ in self.threads)
        self.threads.append((name, threading.current_thread() is threading.main_thread()))
        if first:
            time.sleep(LOADING)

    @hookimpl
    def to_wire(self, messages: Any, tools: Any, options: Any) -> Any:
        self._load("to_wire")
        return super().to_wire(messages, tools, options)

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        self._load("from_wire_response")
        return super().from_wire_response(response, context)

    @hookimpl
    def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        self._load("stream_response")
        return super().stream_response(response_stream, context)


async def longest_gap(asked: asyncio.Future[Any]) -> float:
    """Return how long the loop stood still at most until this was done."""
    gap, last = 0.0, time.monotonic()
    while not asked.done():
        await asyncio.sleep(0.002)
        now = time.monotonic()
        gap, last = max(gap, now - last), now
    return gap


async def ask(client: il.AsyncClient, stream: bool) -> il.Message:
    if not stream:
        return await client.send("hi")
    async with client.stream("hi") as opened:
        return await opened.message


@pytest.mark.parametrize("stream", [False, True], ids=["send", "stream"])
def test_the_loop_goes_on_while_the_first_call_loads(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = transports.new_transport

    def slowly(name: str | None, *, blocking: bool) -> Any:
        time.sleep(LOADING)
        return made(name, blocking=blocking)

    monkeypatch.setattr(transports, "new_transport", slowly)
    fake = Slow()

    async def main(server: Server) -> tuple[il.Message, float, il.Message]:
        async with il.AsyncClient("fake:known", api_key="k", base_url=server.url, registry=registry(fake)) as client:
            first = asyncio.ensure_future(ask(client, stream))
            gap = await longest_gap(first)
            return first.result(), gap, await ask(client, stream)

    with served(Reply(body=STREAM) if stream else Reply()) as server:
        message, gap, _ = asyncio.run(main(server))

    reading = "stream_response" if stream else "from_wire_response"
    assert fake.threads == [("to_wire", False), (reading, False), ("to_wire", True), (reading, True)]
    assert gap < LOADING
    assert message.metadata.usage is not None
    assert message.metadata.usage.latency_ms is not None
    # making the client is no part of it, nor is reading; a stream's reader is opened while the answer arrives
    assert message.metadata.usage.latency_ms < 1000 * LOADING * (2 if stream else 1)


def test_calls_at_once_make_one_http_client_for_their_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made, count = transports.new_transport, []

    def counted(name: str | None, *, blocking: bool) -> Any:
        count.append(blocking)
        time.sleep(0.05)
        return made(name, blocking=blocking)

    monkeypatch.setattr(transports, "new_transport", counted)

    async def main(server: Server) -> None:
        async with il.AsyncClient("fake:known", api_key="k", base_url=server.url, registry=registry()) as client:
            await asyncio.gather(*[client.send("hi") for _ in range(5)])

    with served() as server:
        asyncio.run(main(server))
    assert count == [False]

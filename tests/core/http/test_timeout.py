"""Every limit of `Timeout`, over a real connection that is slow at that place.

The server waits longer than the limit and shorter than half a second.
"""


# ruff: noqa: SIM117  a server, its client and the failure are three things

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

import interlingua as il
from interlingua.transport import TimeLimits
from tests.support.fake_provider import STREAM, WHOLE, Reply, Server, registry, served, sse

SLOW = 0.4


def client(server: Server, timeout: il.Timeout | float) -> il.Client:
    return il.Client("fake:known", api_key="k", base_url=server.url, registry=registry(), timeout=timeout, retry=0)


def test_first_byte() -> None:
    with served(Reply(wait=SLOW)) as server, client(server, il.Timeout(first_byte=0.1)) as c:
        with pytest.raises(il.errors.APITimeoutError, match=r"first_byte=0\.1 s") as caught:
            c.send("hi")
    assert caught.value.retryable
    assert caught.value.provider == "fake"


def test_between_chunks_is_not_first_byte() -> None:
    reply = Reply(wait=0.2, body=[WHOLE[:5], SLOW, WHOLE[5:]])
    with served(reply) as server:
        with client(server, il.Timeout(first_byte=5, between_chunks=0.1)) as c:
            with pytest.raises(il.errors.APITimeoutError, match=r"between_chunks=0\.1 s"):
                c.send("hi")
        with client(server, il.Timeout(first_byte=0.35, between_chunks=5)) as c:
            assert c.send("hi").text == "hello"


def test_a_stream_that_stalls_keeps_its_text() -> None:
    reply = Reply(body=[*sse({"t": "hel"}), SLOW, *STREAM[1:]])
    with served(reply) as server, client(server, il.Timeout(between_chunks=0.1)) as c, c.stream("hi") as stream:
        with pytest.raises(il.errors.APITimeoutError, match="between_chunks") as caught:
            list(stream)
    assert caught.value.partial.text == "hel"


def test_total_ends_an_answer_that_trickles() -> None:
    body: list[bytes | float | None] = []
    for at in range(10):
        body += (*sse({"t": str(at)}), 0.05)
    reply = Reply(body=body)
    with served(reply) as server, client(server, 0.2) as c, c.stream("hi") as stream:
        with pytest.raises(il.errors.APITimeoutError, match=r"total=0\.2 s") as caught:
            list(stream)
    assert not caught.value.retryable
    assert caught.value.partial.text.startswith("01")


def test_total_bounds_the_wait_for_headers() -> None:
    with served(Reply(wait=SLOW)) as server, client(server, 0.1) as c:
        with pytest.raises(il.errors.APITimeoutError, match=r"total=0\.1 s"):
            c.send("hi")


def test_limits_hold_for_the_asynchronous_client() -> None:
    async def main(server: Server) -> None:
        limits = il.Timeout(between_chunks=0.1)
        made = il.AsyncClient(
            "fake:known", api_key="k", base_url=server.url, registry=registry(), timeout=limits, retry=0
        )
        async with made as c:
            with pytest.raises(il.errors.APITimeoutError, match="between_chunks"):
                await c.send("hi")

    with served(Reply(body=[WHOLE[:5], SLOW, WHOLE[5:]])) as server:
        asyncio.run(main(server))


def test_connect() -> None:
    with socket.socket() as listener:  # a full backlog: the kernel leaves further connections waiting
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        with client(Server(f"http://127.0.0.1:{port}", []), il.Timeout(connect=0.1, first_byte=0.3)) as c:
            with pytest.raises(il.errors.APITimeoutError, match=r"connect=0\.1 s"):
                c.send("hi")
        for filler in fillers:
            filler.close()


def test_nobody_there_is_a_retryable_transport_error() -> None:
    with (
        client(Server("http://127.0.0.1:1", []), il.Timeout()) as c,
        pytest.raises(il.errors.APIConnectionError) as caught,
    ):
        c.send("hi")
    assert caught.value.retryable


def test_the_limits_of_a_users_client_stand_unless_others_are_given() -> None:
    httpx = pytest.importorskip("httpx")
    with served(Reply(wait=SLOW)) as server, httpx.Client(timeout=0.1) as theirs:
        arguments = {"api_key": "k", "base_url": server.url, "registry": registry(), "retry": 0, "http_client": theirs}
        with il.Client("fake:known", **arguments) as c, pytest.raises(il.errors.APITimeoutError, match="own limit"):
            c.send("hi")
        with il.Client("fake:known", **arguments, timeout=5) as c:
            assert c.send("hi").text == "hello"


@pytest.mark.parametrize("seconds", [0, -1, "a minute", float("nan")])
def test_a_limit_is_a_number_of_seconds_above_0(seconds: Any) -> None:
    with pytest.raises(il.CallerError, match="a number of seconds above 0, or None for no limit; got total="):
        il.Timeout(total=seconds)


def test_the_clock_of_a_call_counts_down() -> None:
    now = [0.0]
    limits = TimeLimits(il.Timeout(total=10, first_byte=20, between_chunks=3), lambda: now[0])
    assert (limits.connect, limits.first_byte, limits.between_chunks) == (10, 10, 3)
    now[0] = 8.0
    assert (limits.connect, limits.first_byte, limits.between_chunks) == (2, 2, 2)
    now[0] = 10.0
    with pytest.raises(il.errors.APITimeoutError):
        limits.left()

"""`AsyncClient`: the same exchange with `await`, over several event loops, and cancelled.

The blocking client's tests cover the shared code.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import threading
from types import SimpleNamespace

import pytest

import interlingua as il
from interlingua._http.joining import AsyncJoiningBackend
from tests.support.fake_provider import STREAM, Reply, Server, registry, served, sse
from tests.support.retry_waits import without_waiting


def client(server: Server, **more: object) -> il.AsyncClient:
    more.setdefault("retry", 0)
    return il.AsyncClient("fake:known", api_key="k", base_url=server.url, registry=registry(), **more)  # type: ignore[arg-type]


def test_case_30_two_loops_one_after_the_other() -> None:
    with served() as server:
        c = client(server)

        async def ask() -> str:
            return (await c.send("hi")).text

        assert [asyncio.run(ask()), asyncio.run(ask())] == ["hello", "hello"]
        gc.collect()  # a connection left open would warn, and warnings are errors here
        assert len(server.got) == 2


def test_many_requests_at_once() -> None:
    async def main(server: Server) -> list[il.Message]:
        async with client(server) as c:
            return await asyncio.gather(*[c.send(str(number)) for number in range(30)])

    with served() as server:
        messages = asyncio.run(main(server))
    assert {message.text for message in messages} == {"hello"}
    assert len({message.id for message in messages}) == 30


def test_events_then_the_message() -> None:
    async def main(server: Server) -> tuple[list[str], il.Message]:
        async with client(server) as c, c.stream("hi") as stream:
            kinds: list[str] = [event.type async for event in stream]
            _ = stream.message  # looking is not waiting
            return kinds, await stream.message

    with served(Reply(body=STREAM)) as server:
        kinds, message = asyncio.run(main(server))
    assert kinds == ["text_delta", "text_delta", "usage_update", "message_complete"]
    assert message.text == "hello"


def test_text_and_the_rest() -> None:
    async def main(server: Server) -> None:
        async with client(server) as c, c.stream("hi") as stream:
            async for text in stream.text_stream:
                assert text == "hel"
                break
            assert (await stream.message).text == "hello"

    with served(Reply(body=STREAM)) as server:
        asyncio.run(main(server))


def test_a_cancelled_task_keeps_a_cancelled_message() -> None:
    async def main(server: Server) -> il.Message:
        async with client(server) as c:
            stream = c.stream("hi")
            begun = asyncio.Event()

            async def consume() -> None:
                async with stream:
                    async for _ in stream:
                        begun.set()

            task = asyncio.create_task(consume())
            await asyncio.wait_for(begun.wait(), 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return stream.partial

    with served(Reply(body=[*sse({"t": "hel"}), 0.4, *STREAM[1:]])) as server:
        message = asyncio.run(main(server))
    assert message.text == "hel"
    assert message.metadata.status is il.MessageStatus.CANCELLED


def test_leaving_early_and_cancel_from_another_task() -> None:
    async def main(server: Server) -> list[il.Message]:
        async with client(server) as c:
            async with c.stream("hi") as left:
                async for _ in left:
                    break
            async with c.stream("hi") as stopped:
                asyncio.get_running_loop().call_later(0.05, stopped.cancel)
                assert [event.type async for event in stopped] == ["text_delta"]
            return [await left.message, await stopped.message]

    with served(Reply(body=[*sse({"t": "hel"}), 0.4, *STREAM[1:]])) as server:
        messages = asyncio.run(main(server))
    assert [message.metadata.status for message in messages] == [il.MessageStatus.CANCELLED] * 2


def test_a_cancelled_task_leaves_a_large_event_to_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, left = threading.Event(), threading.Event()

    def slow(data: bytes) -> object:
        if len(data) > 1_000_000:
            assert threading.current_thread() is not threading.main_thread()
            reading.set()
            left.wait(10)
        return json.loads(data)

    async def main(server: Server) -> il.Message:
        async with client(server) as c:
            async with c.stream("hi") as stream:
                rest = asyncio.ensure_future(_rest(stream))
                while not reading.is_set():
                    await asyncio.sleep(0.01)
                rest.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await rest
            left.set()
            return await stream.message

    monkeypatch.setattr("tests.support.fake_provider.json", SimpleNamespace(loads=slow, dumps=json.dumps))
    with served(Reply(body=[*sse({"t": "hel"}), 0.1, *sse({"t": "l" * 2_000_000}), *STREAM[1:]])) as server:
        message = asyncio.run(main(server))
    assert message.metadata.status is il.MessageStatus.CANCELLED
    assert message.text == "hel"


async def _rest(stream: il.AsyncMessageStream) -> None:
    async for _ in stream:
        pass


def test_a_stream_that_breaks_raises_with_its_partial() -> None:
    async def main(server: Server) -> il.InterlinguaError:
        async with client(server) as c, c.stream("hi") as stream:
            with pytest.raises(il.errors.StreamInterruptedError) as caught:
                async for _ in stream:
                    pass
            return caught.value

    with served(Reply(body=[*sse({"t": "hel"}), 0.05, None])) as server:
        error = asyncio.run(main(server))
    assert error.partial.text == "hel"


def test_errors_are_retried_with_awaited_waits() -> None:
    waits: list[float] = []

    async def main(server: Server) -> il.Message:
        async with client(server, retry=1) as c:
            without_waiting(c, waits.append)
            return await c.send("hi")

    with served(Reply(status=429, headers={"retry-after": "2"}), Reply()) as server:
        assert asyncio.run(main(server)).text == "hello"
    assert waits == [2]


def test_to_wire_sends_nothing() -> None:
    async def main(server: Server) -> il.plugins.WireRequest:
        async with client(server) as c:
            return await c.build_request("hi")

    with served() as server:
        assert asyncio.run(main(server)).path == "/say"
        assert not server.got


@pytest.mark.parametrize("texts", [True, False])
def test_leaving_early_leaves_nothing_for_the_loop_to_close(texts: bool) -> None:
    """The adapter's generators are driven and closed by hand; a loop that closed them as well would complain."""
    complaints: list[dict[str, object]] = []

    async def main(server: Server) -> il.MessageStatus:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
        async with client(server) as c:
            async with c.stream("hi") as stream:
                async for _ in stream.text_stream if texts else stream:
                    break
            status = stream.partial.metadata.status
            del stream
            gc.collect()
            await asyncio.sleep(0.05)  # what the collector gave to the loop, runs
        gc.collect()
        return status

    with served(Reply(body=[*sse({"t": "hel"}), 0.4, *STREAM[1:]])) as server:
        assert asyncio.run(main(server)) is il.MessageStatus.CANCELLED
    assert complaints == []


def test_a_closed_idle_connection_is_readable_after_its_number_is_reused() -> None:
    """httpcore discards idle connections that are readable; a new socket may get the number of a closed one."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            stream = await AsyncJoiningBackend().connect_tcp("127.0.0.1", server.getsockname()[1], timeout=5)
            raw = stream.get_extra_info("socket")
            number = raw.fileno()
            assert not stream.get_extra_info("is_readable")
            with contextlib.ExitStack() as kept:
                kept.enter_context(server.accept()[0])
                stream._inner._stream._transport.abort()
                while raw.fileno() >= 0:
                    await asyncio.sleep(0)
                others = [kept.enter_context(each) for _ in range(8) for each in socket.socketpair()]
                assert number in [other.fileno() for other in others]
                assert stream.get_extra_info("is_readable")

    asyncio.run(main())

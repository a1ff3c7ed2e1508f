"""The client's own limits and `map`: how many at once, how many a minute, in which order, and what is given back."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, assert_type

import anyio
import attrs
import pytest

import interlingua as il
from interlingua._http.anyio_io import AnyIO
from interlingua._http.io import BlockingIO, run_without_waiting
from interlingua._http.mapping import MapProgress
from interlingua.errors import CallerError, InterlinguaError, ServerError
from interlingua.limits import ClientLimits, ModelLimiter, read_reset, used_up_for
from interlingua.plugins import HttpRequest
from interlingua.testing import AsyncMemoryTransport, MemoryReply, MemoryTransport, ScriptedModel
from tests.core.http.test_fallback import CLAUDE, ENVIRON, claude

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@attrs.frozen
class Number:
    """One number, as a type of answers."""

    n: int


class _Clock:
    """Time that passes when a request waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds

    def waiting(self) -> Any:
        raise AssertionError("nothing has to wait for another request")


def limiter(**limits: Any) -> tuple[ModelLimiter, _Clock]:
    clock = _Clock()
    return ModelLimiter(ClientLimits(**limits), clock=lambda: clock.now), clock


def test_requests_of_a_minute_are_sent_evenly() -> None:
    limits, clock = limiter(requests_per_minute=120)
    for _ in range(5):
        limits.release(run_without_waiting(limits.acquire(clock)))

    assert clock.now == pytest.approx(1.5, abs=0.51)  # two a second, of which the first second may be taken at once
    assert all(wait <= 0.5 for wait in clock.slept)


def test_tokens_count_with_what_the_answer_reports() -> None:
    limits, clock = limiter(tokens_per_minute=600)  # ten a second, fifty of them at once
    turn = run_without_waiting(limits.acquire(clock, tokens=50))
    limits.release(turn, tokens=10)  # forty are given back
    run_without_waiting(limits.acquire(clock, tokens=40))
    assert clock.slept == []
    run_without_waiting(limits.acquire(clock, tokens=20))

    assert clock.slept == [2.0]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.5s"}, 1.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m0s"}, 120),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1.5s"}, 0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}, 0),  # left to its refusals
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-limit-requests": "0", "x-ratelimit-reset-requests": "9"},
         0),
    ],
)  # fmt: skip
def test_a_limit_that_the_service_reports_as_used_up_is_waited_for(headers: dict[str, str], wait: float) -> None:
    limits, clock = limiter(concurrency=8)
    limits.note_headers(headers)
    run_without_waiting(limits.acquire(clock))

    assert sum(clock.slept) == wait


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("120ms", 0.12),
        ("2m59.56s", 179.56),
        ("7h12m0s", 25920),
        ("34.4s", 34.4),
        ("12", 12),
        ("0.5", 0.5),
        ("2026-11-22T12:00:30Z", 30),
        ("2026-11-22T11:00:00Z", 0),
        ("1795348830000", 30),
        ("soon", None),
    ],
)
def test_a_reset_is_read_in_every_form_that_services_use(text: str, seconds: float | None) -> None:
    found = read_reset(text, NOW)

    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("remaining", "reset"),
    [
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("x-ratelimit-remaining-req-minute", "x-ratelimit-reset-req-minute"),
    ],
)
def test_the_names_of_limit_headers_are_found_by_their_words(remaining: str, reset: str) -> None:
    assert used_up_for({remaining: "0", reset: "7s", "content-type": "x"}) == 7
    assert used_up_for({remaining: "0"}) == 0


@pytest.mark.parametrize(
    "limits",
    [{"concurrency": 0}, {"concurrency": 1.5}, {"requests_per_minute": -1}, {"tokens_per_minute": "many"},
     {"requests_per_minute": float("nan")}],
)  # fmt: skip
def test_limits_that_are_no_numbers_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(CallerError, match=f"{next(iter(limits))} must be a"):
        il.Client(CLAUDE, environ=ENVIRON, **limits)


class Gauge:
    """A service that says how many requests it had at once, and in which order they came."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds, self.open, self.most, self.asked = seconds, 0, 0, list[str]()
        self._lock = threading.Lock()

    def __call__(self, request: HttpRequest) -> MemoryReply:
        text = json.loads(request.body)["messages"][0]["content"]
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
            self.asked.append(text if isinstance(text, str) else text[0]["text"])

        def pieces() -> Any:
            time.sleep(self.seconds)
            yield claude()
            with self._lock:
                self.open -= 1

        return MemoryReply(pieces())


def test_threads_share_a_limit() -> None:
    service = Gauge()
    client = il.Client(CLAUDE, environ=ENVIRON, concurrency=2, transport=MemoryTransport(service))
    threads = [threading.Thread(target=client.send, args=(str(number),)) for number in range(12)]
    for thread in threads:
        thread.start()
        time.sleep(0.002)
    for thread in threads:
        thread.join()

    assert service.most == 2
    assert sorted(service.asked) == sorted(map(str, range(12)))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_tasks_wait_in_the_order_of_their_calls(backend: str) -> None:
    order: list[int] = []

    async def main() -> None:
        io: Any = AnyIO(None, lambda: None)  # type: ignore[arg-type, return-value]
        limits = ModelLimiter(ClientLimits(concurrency=1))

        async def one(number: int) -> None:
            turn = await limits.acquire(io)
            order.append(number)
            await anyio.sleep(0.001)
            limits.release(turn)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
                await anyio.sleep(0)

    anyio.run(main, backend=backend)
    assert order == list(range(20))


def test_several_event_loops_share_a_limit() -> None:
    """Three loops in three threads: a request of one lets a request of another go."""
    limits, lock = ModelLimiter(ClientLimits(concurrency=1)), threading.Lock()
    state = {"open": 0, "most": 0, "done": 0}

    async def loop() -> None:
        io: Any = AnyIO(None, lambda: None)  # type: ignore[arg-type, return-value]

        async def one() -> None:
            turn = await limits.acquire(io)
            with lock:
                state["open"] += 1
                state["most"] = max(state["most"], state["open"])
            await anyio.sleep(0.001)
            with lock:
                state["open"] -= 1
                state["done"] += 1
            limits.release(turn)

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)

    threads = [threading.Thread(target=anyio.run, args=(loop,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert state == {"open": 0, "most": 1, "done": 30}


def test_a_task_that_is_cancelled_while_it_waits_lets_the_others_go() -> None:
    async def main() -> list[str]:
        io: Any = AnyIO(None, lambda: None)  # type: ignore[arg-type, return-value]
        limits, done = ModelLimiter(ClientLimits(concurrency=1)), list[str]()
        first = await limits.acquire(io)
        waiting = asyncio.ensure_future(limits.acquire(io))
        behind = asyncio.ensure_future(limits.acquire(io))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        limits.release(first)
        limits.release(await asyncio.wait_for(behind, 5))
        done.append("behind")
        limits.release(await asyncio.wait_for(limits.acquire(io), 5))
        return [*done, "next"]

    assert asyncio.run(main()) == ["behind", "next"]


def test_a_stream_holds_its_turn_until_it_is_closed_and_a_failure_gives_it_back() -> None:
    model = ScriptedModel(["first", ServerError("down"), "second", "third"])
    client = model.client(concurrency=1, retry=0)
    with client.stream("Hello") as stream:
        limiter_ = client._shared.limiter("scripted:model") or next(iter(client._shared._limiters.values()))
        assert limiter_._open == 1
        assert stream.message.text == "first"
    with pytest.raises(InterlinguaError):
        client.send("Hello")

    assert client.send("Hello").text == "second"
    assert limiter_._open == 0


# -- many requests ---------------------------------------------------------------------------------------------------


def echo(request: Any) -> Any:
    text = request.messages[-1].text
    return ServerError(f"no {text}") if text == "3" else f"answer to {text}"


def test_map_keeps_the_order_and_puts_failures_in_their_places() -> None:
    seen: list[MapProgress] = []
    client = ScriptedModel(echo).client(retry=0)
    answers = client.map([str(number) for number in range(8)], concurrency=3, progress=seen.append)

    assert_type(answers, list[il.Message | InterlinguaError])
    assert isinstance(answers[3], ServerError)
    assert [each.text for each in answers if isinstance(each, il.Message)] == [
        f"answer to {number}" for number in range(8) if number != 3
    ]
    assert [each.done for each in seen] == list(range(1, 9))
    assert (seen[-1].failed, seen[-1].total) == (1, 8)


def test_map_is_the_same_for_tasks() -> None:
    async def main() -> list[il.Message | InterlinguaError]:
        async with ScriptedModel(echo).async_client(retry=0) as client:
            return await client.map((str(number) for number in range(8)), concurrency=3)

    answers = asyncio.run(main())
    assert [type(each) for each in answers].count(ServerError) == 1
    assert len(answers) == 8


def test_map_with_a_type_gives_answers_of_that_type() -> None:
    pytest.importorskip("interlingua_output")
    client = il.Client(CLAUDE, environ=ENVIRON, transport=MemoryTransport(lambda _: claude('{"n": 3}')))
    answers = client.map(["three", "drei"], output=Number, concurrency=2)

    assert_type(answers, list[il.Answer[Number] | InterlinguaError])
    assert [each.value.n for each in answers if isinstance(each, il.Answer)] == [3, 3]


def test_a_bug_in_a_transport_ends_the_call() -> None:
    def broken(_: HttpRequest) -> MemoryReply:
        raise ZeroDivisionError

    sync = il.Client(CLAUDE, environ=ENVIRON, transport=MemoryTransport(broken))
    with pytest.raises(ZeroDivisionError):
        sync.map(["a"] * 20)

    async def main() -> None:
        client = il.AsyncClient(CLAUDE, environ=ENVIRON, transport=AsyncMemoryTransport(broken))
        await client.map(["a"] * 20)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda client: client.map("one text"), "map takes a list of requests, not str; send takes one"),
        (lambda client: client.map(["a"], concurrency=0), "concurrency must be a whole number from 1"),
    ],
)
def test_wrong_arguments_of_map_are_refused(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(CallerError, match=text):
        call(ScriptedModel([]).client())


def test_the_line_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    ScriptedModel(echo).client(retry=0).map(["1", "3"], progress=True)

    assert capsys.readouterr().err.startswith("[########################] 2/2, 1 failed, ")
    assert str(MapProgress(done=3, cost_usd=Decimal("0.5"), seconds=2)) == "3 done, 0.5000 USD, 1.5/s"


def test_a_blocking_wait_is_one_of_a_thread() -> None:
    waiting = BlockingIO(MemoryTransport(lambda _: b""), owned=False).waiting()
    threading.Timer(0.01, waiting.wake).start()

    assert run_without_waiting(waiting.wait()) is None

"""The pace: what changes the number of requests under way, and what makes them wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import pytest

from interlingua.limits import Bucket
from interlingua_bulk.pace import FIRST, LEAST_SAMPLES, Lease, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.refuses = False

    def __call__(self) -> float:
        return self.now


async def _round(pace: Pace, clock: Clock, seconds: float = 1.0, output_tokens: int = 10) -> None:
    """Answer as many as make a round, each after so many seconds; a new request follows each answer."""
    leases: deque[Lease] = deque()
    for _ in range(max(int(pace.limit), LEAST_SAMPLES)):
        while pace.in_flight < int(pace.limit):
            leases.append(await pace.acquire())
        lease = leases.popleft()
        clock.now = max(clock.now, lease.started + seconds)
        pace.succeed(lease, None, output_tokens)
    for lease in leases:
        pace.fail(lease)


def test_few_requests_are_sent_at_once_and_more_while_none_of_them_is_refused() -> None:
    async def body(pace: Pace, clock: Clock) -> list[int]:
        waiting = [asyncio.ensure_future(pace.acquire()) for _ in range(100)]
        counts = []
        for _ in range(5):
            await asyncio.sleep(0)
            counts.append(pace.in_flight)
            if pace.in_flight == 16 and clock.refuses:
                for task in waiting[:8]:
                    pace.refuse(task.result(), 60.0)
            clock.now += 0.11
            pace.wake()
        for task in waiting:
            task.cancel()
        return counts

    for refuses, most in ((False, 64), (True, 16)):
        clock = Clock()
        clock.refuses = refuses
        counts = asyncio.run(body(Pace(100, clock=clock), clock))
        assert counts[:2] == [8, 16]
        assert max(counts) == most


def test_a_row_that_is_sent_again_goes_before_the_others() -> None:
    async def body() -> None:
        pace = Pace(1)
        lease = await pace.acquire()
        first = asyncio.ensure_future(pace.acquire())
        await asyncio.sleep(0)
        again = asyncio.ensure_future(pace.acquire(again=True))
        await asyncio.sleep(0)
        pace.fail(lease)
        await asyncio.sleep(0)
        assert (first.done(), again.done()) == (False, True)
        first.cancel()

    _run(body)


def _run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 10))  # type: ignore[arg-type]


def test_the_limit_grows_with_each_answer_and_a_single_refusal_makes_only_its_row_wait() -> None:
    async def body() -> None:
        clock = Clock()
        pace = Pace(100, clock=clock, random=lambda: 0.0)
        assert pace.limit == FIRST
        await _round(pace, clock)
        assert pace.refuse(await pace.acquire(), None) == 0.5
        assert pace.refuse(await pace.acquire(), 0.0) == 0.0
        assert pace.refuse(await pace.acquire(), None, tries=3) == 0.5
        assert pace.refuse(await pace.acquire(), None, tries=5) == 2.0
        assert pace.closed_for == 0
        await _round(pace, clock)
        assert pace.limit == FIRST + LEAST_SAMPLES + FIRST + LEAST_SAMPLES
        assert pace.rate is None

    _run(body)


def test_when_nearly_all_are_refused_one_request_tries_first() -> None:
    async def body() -> None:
        pace = Pace(16, random=lambda: 0.0)
        leases = [await pace.acquire() for _ in range(4)]
        waits = [pace.refuse(lease, 0.05) for lease in leases]
        assert waits[-1] == pytest.approx(0.05, abs=0.01)
        waiting = [asyncio.ensure_future(pace.acquire()) for _ in range(3)]
        await asyncio.sleep(0.02)
        assert not any(task.done() for task in waiting)
        await asyncio.sleep(0.06)
        assert [task.done() for task in waiting] == [True, False, False]
        pace.refuse(waiting[0].result(), 0.05)
        await asyncio.sleep(0.03)
        assert not waiting[1].done()
        await asyncio.sleep(0.04)
        assert waiting[1].done()
        pace.succeed(waiting[1].result(), None, 1)
        assert pace.rate is not None, "the rate at which the service took requests"
        waiting[2].cancel()

    _run(body)


def test_slow_answers_hold_the_limit_and_a_sudden_rise_lowers_it() -> None:
    async def body() -> None:
        clock = Clock()
        pace = Pace(1000, clock=clock)
        for _ in range(2):
            await _round(pace, clock, seconds=1.0)
        await _round(pace, clock, seconds=2.1)  # twice as many answers at twice the time: no more a second
        held = pace.limit
        for _ in range(3):
            await _round(pace, clock, seconds=2.1)
        limit = pace.limit
        assert limit < 1.1 * held
        await _round(pace, clock, seconds=5.0)
        assert pace.limit == pytest.approx(limit * 0.9)
        for _ in range(60):
            await _round(pace, clock, seconds=4.0)
        assert pace.limit > 0.5 * limit, "what stays slow is the usual case, and does not take the limit to nothing"

    _run(body)


def test_a_long_answer_is_no_sign_of_load() -> None:
    async def body() -> None:
        clock = Clock()
        pace = Pace(1000, clock=clock)
        await _round(pace, clock, seconds=1.0, output_tokens=10)
        limit = pace.limit
        await _round(pace, clock, seconds=10.0, output_tokens=100)
        assert pace.limit == 2 * limit

    _run(body)


def test_rates_are_held_and_settled() -> None:
    bucket = Bucket(60, 0.0)
    assert bucket.wait(1, 0.0) == 0
    bucket.take(1)
    assert bucket.wait(1, 0.0) == pytest.approx(1.0)
    assert bucket.wait(1, 1.0) == 0
    tokens = Bucket(6000, 0.0, burst_s=5)
    tokens.take(500)
    assert tokens.wait(100, 0.0) == pytest.approx(1.0)
    assert tokens.wait(10_000, 4.0) == pytest.approx(1.0), "what is larger than the bucket waits for it to be full"
    assert Bucket(None, 0.0).wait(1e9, 0.0) == 0


def test_what_is_left_by_the_headers_is_heeded() -> None:
    async def body() -> None:
        clock = Clock()
        pace = Pace(8, clock=clock)
        pace.note_headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s",
                           "x-ratelimit-limit-requests": "60"})  # fmt: skip
        assert pace._wait(0) == pytest.approx(1.0)
        clock.now += 1.5
        pace.note_headers({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"})
        assert pace._wait(0) == 0
        pace.note_headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "7h12m0s"})
        assert pace._wait(0) == 0, "a day's limit is left to its refusals"
        pace.note_headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "30",
                           "x-ratelimit-limit-requests": "-1"})  # fmt: skip
        assert pace._wait(0) in (0, 30.0)

    _run(body)


def test_a_wait_that_is_cancelled_leaves_its_place() -> None:
    async def body() -> None:
        pace = Pace(1)
        lease = await pace.acquire()
        waiting = [asyncio.ensure_future(pace.acquire()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        pace.succeed(lease, None, 1)
        assert isinstance(await waiting[1], Lease)
        assert pace.in_flight == 1

    _run(body)

"""The pace against simulated services: the rate it keeps, what is refused, and how soon it recovers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from statistics import mean

import pytest

from interlingua_bulk.pace import Pace
from tests.bulk.services import Admit, Refused, bucket, chance, run, run_bare, seats, slow_start, window

ENOUGH = 0.95  # of the best constant rate, once the start is over


def _constant(rate: float) -> Admit:
    return bucket(lambda _: rate, 0.1)


@pytest.mark.parametrize(
    ("service", "seconds", "begin", "best", "refused"),
    [
        (lambda _: _constant(200), 60, 15, 200, 0.005),
        (lambda _: _constant(50), 60, 15, 50, 0.015),
        (lambda _: _constant(20), 120, 30, 20, 0.02),
        (lambda _: bucket(lambda _: 50.0, 0.1, told=True), 60, 15, 50, 0.015),
        (lambda _: _constant(10), 120, 30, 10, 0.015),
        (lambda _: bucket(lambda _: 50.0, 1.0), 60, 15, 50, 0.01),
        (lambda _: bucket(lambda _: 50.0, 10.0, told=True), 90, 30, 50, 0.01),
        (lambda _: bucket(lambda _: 20.0, 60), 120, 70, 20, 0.02),
        (lambda _: window(50, 1, told=False), 60, 15, 50, 0.01),
        (lambda _: window(25, 10, told=False), 185, 60, 2.5, 0.03),
        (lambda _: window(1200, 60, told=False), 185, 60, 20, 0.02),
        (lambda _: window(1200, 60, told=True), 185, 60, 20, 0.015),
        (lambda _: slow_start(100, 1.5), 90, 40, 65, 0.015),  # it begins anew wherever fewer requests come
        (lambda seed: chance(0.04, Random(seed), None, _constant(50)), 90, 20, 48, 0.02),
    ],
    ids=[
        "200 a second", "50 a second", "20 a second", "50 a second, told", "10 a second", "a second kept",
        "ten seconds kept", "a minute kept", "windows of a second", "few in a window", "windows of a minute",
        "windows, told", "slow start", "chance and a rate",
    ],
)  # fmt: skip
def test_the_rate_is_near_the_best_and_little_is_refused(
    service: Callable[[int], Admit], seconds: float, begin: float, best: float, refused: float
) -> None:
    ran = [run(service(seed), seconds, seed=seed) for seed in range(4)]

    assert mean(each.rate(begin, seconds - 5) for each in ran) > ENOUGH * best
    assert mean(each.refused(begin) for each in ran) < refused, "for load, after the start"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "wait_s"), [(0.04, None), (0.04, 0.0), (0.04, 20.0), (0.1, None), (0.2, 0.0)])
def test_refusals_by_chance_do_not_lower_the_rate(share: float, wait_s: float | None, seed: int) -> None:
    free = run(lambda _now, _under_way: None, 40, ceiling=64)
    ran = run(chance(share, Random(seed), wait_s), 40, ceiling=64, seed=seed)

    assert ran.rate(10, 35) > ENOUGH * free.rate(10, 35)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.04, 0.1, 0.2])
def test_refusals_by_chance_cost_no_more_than_in_a_bare_loop(share: float) -> None:
    bare, ran = run_bare(chance(share, Random(1), None), 40), run(chance(share, Random(1), None), 40, ceiling=64)

    assert ran.rate(10, 35) > 0.98 * bare.rate(10, 35)


def test_a_limited_service_answers_as_much_as_to_a_bare_loop_and_refuses_a_tenth() -> None:
    bare, ran = run_bare(_constant(50), 60), run(_constant(50), 60, ceiling=64)

    assert ran.rate(15, 55) > 0.98 * bare.rate(15, 55)
    assert ran.refused() < 0.1 * bare.refused()


def test_the_rate_follows_a_capacity_that_changes() -> None:
    ran = run(bucket(lambda now: 50.0 if now < 40 else 20.0 if now < 80 else 80.0, 0.1), 130)

    assert ran.rate(20, 40) > ENOUGH * 50
    assert ran.rate(45, 80) > ENOUGH * 20
    assert ran.rate(105, 125) > ENOUGH * 80
    assert ran.refused() < 0.025


def test_a_limit_that_rises_fourfold_is_reached_within_25_seconds() -> None:
    ran = [run(bucket(lambda now: 20.0 if now < 60 else 80.0, 0.1), 120, seed=seed) for seed in range(4)]

    assert min(each.rate(85, 115) for each in ran) > ENOUGH * 80
    assert mean(each.refused() for each in ran) < 0.02


@pytest.mark.parametrize("wait_s", [None, 0.0])
def test_a_service_that_refuses_all_for_minutes_is_asked_seldom_and_then_used_again(wait_s: float | None) -> None:
    asked: list[float] = []

    def admit(now: float, _under_way: int) -> None:
        asked.append(now)
        if now < 200:
            raise Refused(wait_s)

    ran = run(admit, 330, ceiling=64)

    assert sum(20 < at < 200 for at in asked) < 60
    assert ran.rate(300, 325) > 40, "64 requests at once, answered after a second or so"


@pytest.mark.parametrize("down_s", [3.0, 7.0, 20.0])
def test_a_service_that_refuses_all_at_first_is_used_soon(down_s: float) -> None:
    def admit(now: float, _under_way: int) -> None:
        if now < down_s:
            raise Refused

    assert run(admit, 90, ceiling=64).rate(50, 85) > 40, "the first answer alone says nothing about the rate"


def test_refusals_of_all_requests_in_a_short_span_keep_a_rate() -> None:
    now = 0.0
    pace = Pace(8, clock=lambda: now)

    async def refuse_a_whole_span() -> None:
        nonlocal now
        for _ in range(20):  # accepted before
            pace.succeed(await pace.acquire(), None, 1)
        older = await pace.acquire()
        now = 2.0
        pace._accepted.judge(now)
        leases = [await pace.acquire() for _ in range(3)]
        now = 2.5
        for lease in leases:
            pace.refuse(lease, None)
        now = 3.5
        pace.refuse(older, None)

    asyncio.run(refuse_a_whole_span())

    assert pace.rate is not None
    assert pace.rate > 0
    assert 0 <= pace._wait(0) < 60


def test_a_service_with_so_many_seats_is_kept_busy() -> None:
    ran = [run(seats(50), 60, seed=seed) for seed in range(4)]

    best = (
        43.2  # a second at a constant rate of 44, of which 1.7 % are refused; more seats stay free by chance below it
    )
    assert mean(each.rate(15, 55) for each in ran) > 0.95 * best
    assert mean(each.refused() for each in ran) < 0.04


def test_a_service_that_takes_one_request_at_a_time_is_used_at_its_rate() -> None:
    ran = run(_constant(3), 240)

    assert ran.rate(60, 230) > 0.9 * 3, "the first estimates rest on few requests"
    assert ran.refused(40) < 0.02


def test_the_simulation_notices_a_pace_that_stops_at_each_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "_all_refused", lambda _self, _lease: True)
    ran = run(chance(0.04, Random(1), None), 40, ceiling=64)

    assert ran.rate(10, 35) < 30

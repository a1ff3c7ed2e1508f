"""Simulated services for the pace, in virtual time: what each refuses, and the best constant rate it would take."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import attrs

from interlingua_bulk.pace import Pace


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_NoWait(self))

    def time(self) -> float:
        return self.now


class _NoWait(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        self._loop.now += max(timeout or 0.0, 0.0)
        return super().select(0)


@attrs.define
class Refused(Exception):
    """429; `wait_s` is its `retry-after`."""

    wait_s: float | None = None
    by_chance: bool = False


Admit = Callable[[float, int], None]
"""Decides at a time, with so many under way; raises `Refused`."""


def bucket(capacity: Callable[[float], float], burst_s: float, *, told: bool = False) -> Admit:
    """Refill so much a second; at most `burst_s` seconds of it are kept."""
    level, before = capacity(0.0) * burst_s, 0.0

    def admit(now: float, _under_way: int) -> None:
        nonlocal level, before
        rate = capacity(now)
        level = min(level + (now - before) * rate, max(rate * burst_s, 1.0))
        before = now
        if level < 1:
            raise Refused((1 - level) / rate if told else None)
        level -= 1

    return admit


def window(quota: int, seconds: float, *, told: bool) -> Admit:
    """Take so many in each window, and nothing more until it ends."""
    taken, began = 0, 0.0

    def admit(now: float, _under_way: int) -> None:
        nonlocal taken, began
        if now >= began + seconds:
            taken, began = 0, now - now % seconds
        if taken >= quota:
            raise Refused(began + seconds - now if told else None)
        taken += 1

    return admit


def slow_start(top: float, growth: float) -> Admit:
    """Take at most `growth` times as many as in the second before, and `top` in the end."""
    second, taken, last = 0, 0, 8.0

    def admit(now: float, _under_way: int) -> None:
        nonlocal second, taken, last
        if int(now) != second:
            last = max(float(taken), last / growth, 8.0) if int(now) == second + 1 else 8.0
            second, taken = int(now), 0
        if taken >= min(top, last * growth):
            raise Refused
        taken += 1

    return admit


def seats(number: int) -> Admit:
    """Take so many at once."""

    def admit(_now: float, under_way: int) -> None:
        if under_way >= number:
            raise Refused

    return admit


def chance(share: float, random: Random, wait_s: float | None, then: Admit | None = None) -> Admit:
    """Refuse a share of all requests, whatever their rate."""

    def admit(now: float, under_way: int) -> None:
        if random.random() < share:
            raise Refused(wait_s, by_chance=True)
        if then is not None:
            then(now, under_way)

    return admit


@attrs.frozen
class Ran:
    """When the requests of a run were sent that were answered, and those that were refused for load, or by chance."""

    times: tuple[float, ...]
    refusals: tuple[float, ...]
    by_chance: tuple[float, ...] = ()

    def refused(self, begin: float = 0.0, end: float = float("inf")) -> float:
        """Return the share of the requests sent in this time that was refused for load."""
        answered, refused, chance = (
            sum(begin <= at < end for at in times) for times in (self.times, self.refusals, self.by_chance)
        )
        return refused / max(answered + refused + chance, 1)

    def rate(self, begin: float, end: float) -> float:
        """Return the answers a second that were begun in this time."""
        return sum(begin <= at < end for at in self.times) / (end - begin)


def run(admit: Admit, seconds: float, *, latency: float = 1.0, ceiling: int = 512, seed: int = 0) -> Ran:
    """Send as many rows as the pace lets, as bulk's sender does."""
    random, loop = Random(seed), VirtualLoop()
    pace = Pace(ceiling, clock=loop.time, random=random.random)
    times: list[float] = []
    refused: tuple[list[float], list[float]] = [], []  # for load, by chance
    under_way = 0

    async def row() -> None:
        nonlocal under_way
        tries = 0
        while loop.time() < seconds:
            lease = await pace.acquire()
            begun = loop.time()
            try:
                await asyncio.sleep(0.01)
                admit(loop.time(), under_way)
            except Refused as refusal:
                refused[refusal.by_chance].append(begun)
                tries += 1
                await asyncio.sleep(0.02)
                await asyncio.sleep(pace.refuse(lease, refusal.wait_s, tries))
                continue
            under_way += 1
            await asyncio.sleep(latency * random.lognormvariate(0, 0.3))
            under_way -= 1
            pace.succeed(lease, None, 100)
            times.append(begun)
            return

    async def feed() -> None:
        free, tasks = asyncio.Event(), set[asyncio.Task[None]]()

        def forget(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            free.set()

        while loop.time() < seconds:
            while len(tasks) < 2 * pace.soon:
                task = loop.create_task(row())
                tasks.add(task)
                task.add_done_callback(forget)
            free.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(free.wait(), 1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        loop.run_until_complete(feed())
    finally:
        loop.close()
    return Ran(tuple(times), *map(tuple, refused))


def run_bare(admit: Admit, seconds: float, *, latency: float = 1.0, connections: int = 64, seed: int = 0) -> Ran:
    """Send rows from so many loops, each of which waits after a refusal as it is told, or half a second."""
    random, loop = Random(seed), VirtualLoop()
    times: list[float] = []
    refused: tuple[list[float], list[float]] = [], []  # for load, by chance
    under_way = 0

    async def connection() -> None:
        nonlocal under_way
        while loop.time() < seconds:
            begun = loop.time()
            await asyncio.sleep(0.01)
            try:
                admit(loop.time(), under_way)
            except Refused as refusal:
                refused[refusal.by_chance].append(begun)
                await asyncio.sleep(0.02)
                await asyncio.sleep(0.5 if refusal.wait_s is None else refusal.wait_s)
                continue
            under_way += 1
            await asyncio.sleep(latency * random.lognormvariate(0, 0.3))
            under_way -= 1
            times.append(begun)

    async def main() -> None:
        await asyncio.gather(*(connection() for _ in range(connections)))

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    return Ran(tuple(times), *map(tuple, refused))

"""Whole runs of 2,000 rows in virtual time, start and end included, beside a loop of 64 connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from statistics import mean
from types import SimpleNamespace
from typing import Any

import pytest

from interlingua.errors import APIConnectionError, InterlinguaError, OverloadedError, RateLimitError, ServerError
from interlingua.types import Message
from interlingua_bulk.pace import Pace
from interlingua_bulk.rows import BulkRow
from interlingua_bulk.sender import Limits, Sender
from tests.bulk.services import VirtualLoop

ROWS, PLACES = 2_000, 64
ANSWER = Message(role="assistant", content="yes")  # type: ignore[arg-type]
KINDS: dict[str, tuple[type[InterlinguaError], ...]] = {
    "429": (RateLimitError,),
    "500 and 503": (ServerError, OverloadedError),
    "cut": (APIConnectionError,),
    "all of them": (RateLimitError, RateLimitError, ServerError, APIConnectionError),
}


class Client:
    """Answers after 0.3 to 0.9 s, or fails a share of the attempts."""

    def __init__(self, share: float, kinds: tuple[type[InterlinguaError], ...], seed: int) -> None:
        self.share, self.kinds, self.random = share, kinds, Random(seed)

    async def prepare(self, *_: Any, **_options: Any) -> Any:
        def retry_delay(error: InterlinguaError) -> float:
            raise error

        wire = SimpleNamespace(body=b"", losses=())
        return SimpleNamespace(request=SimpleNamespace(wire=wire), headers={}, retry_delay=retry_delay)

    async def attempt(self, _exchange: Any) -> Any:
        kind = self.random.choice(self.kinds)
        failed = self.random.random() < self.share
        if not failed or kind is APIConnectionError:
            await asyncio.sleep(0.3 + 0.6 * self.random.random())
        if failed:
            await asyncio.sleep(0.01)
            raise kind("no", retryable=True)
        return ANSWER


async def _bulk(client: Client, rows: Iterator[int]) -> None:
    sender = Sender(client, None, {}, (), Limits(concurrency=PLACES, max_attempts=20))  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    pace = sender.paces[None] = Pace(PLACES, clock=loop.time, random=client.random.random)
    tasks: set[asyncio.Task[Any]] = set()
    for index in rows:
        while len(tasks) >= 2 * sender.in_flight_limit:
            _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tasks.add(loop.create_task(sender.send(BulkRow(index, f"r{index}", []))))
    for answer in await asyncio.gather(*tasks):
        assert answer.ok
    assert pace.in_flight == 0


async def _bare(client: Client, rows: Iterator[int]) -> None:
    async def connection() -> None:
        for _ in rows:
            while True:
                try:
                    await client.attempt(None)
                    break
                except APIConnectionError:
                    pass
                except InterlinguaError:
                    await asyncio.sleep(0.5)

    await asyncio.gather(*(connection() for _ in range(PLACES)))


def _rate(body: Any, share: float, kind: str, seed: int) -> float:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(body(Client(share, KINDS[kind], seed), iter(range(ROWS))))
        return ROWS / loop.time()
    finally:
        loop.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.04, 0.1, 0.2])
def test_a_whole_run_is_no_slower_than_a_bare_loop(share: float, kind: str) -> None:
    bulk, bare = (mean(_rate(body, share, kind, seed) for seed in range(3)) for body in (_bulk, _bare))

    assert bulk > 0.97 * bare, f"{bulk:.1f} rows a second, {bare:.1f} by the loop"


def test_a_row_survives_a_part_of_the_service_that_fails_for_three_seconds() -> None:
    class Shards(Client):
        async def prepare(self, messages: Any, *_: Any, **options: Any) -> Any:
            exchange = await super().prepare(**options)
            exchange.row = messages[0]
            return exchange

        async def attempt(self, exchange: Any) -> Any:
            await asyncio.sleep(0.3)
            if exchange.row % 50 == 0 and 1 < asyncio.get_running_loop().time() < 4:
                raise ServerError("no", retryable=True)
            return ANSWER

    async def run() -> list[Any]:
        sender = Sender(Shards(0, (), 1), None, {}, (), Limits(concurrency=PLACES))  # type: ignore[arg-type]
        loop = asyncio.get_running_loop()
        sender.paces[None] = Pace(PLACES, clock=loop.time, random=Random(1).random)
        rows = [BulkRow(index, f"r{index}", [index]) for index in range(ROWS)]  # type: ignore[list-item]
        return await asyncio.gather(*(sender.send(row) for row in rows))

    loop = VirtualLoop()
    try:
        answers = loop.run_until_complete(run())
    finally:
        loop.close()
    assert max(answer.attempts for answer in answers) > 2
    assert all(answer.ok for answer in answers)

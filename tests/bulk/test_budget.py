"""The money of a run: requests wait for it, and together cost no more."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from random import Random

import pytest

from interlingua_bulk.budget import Budget, BudgetUsedUpError


@pytest.mark.parametrize("seed", range(20))
def test_requests_together_never_cost_more_and_one_that_fits_is_sent(seed: int) -> None:
    random = Random(seed)
    budget = Budget(Decimal(10))
    refused: list[tuple[Decimal, Decimal]] = []  # what a request may cost, and what was left

    async def send() -> None:
        most = Decimal(random.randrange(1, 300)) / 100
        try:
            reserved = await budget.reserve(most)
        except BudgetUsedUpError:
            assert not budget.reserved
            refused.append((most, 10 - budget.spent))
            return
        assert budget.spent + budget.reserved <= 10
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        if random.random() < 0.8:  # the others fail
            budget.spend(most * Decimal(random.randrange(101)) / 100)
        budget.free(reserved)

    async def run() -> None:
        await asyncio.wait_for(asyncio.gather(*[send() for _ in range(200)]), 10)

    asyncio.run(run())
    assert budget.spent <= 10
    assert not budget.reserved
    assert not budget.waiting
    assert refused
    assert all(most > left for most, left in refused)


def test_without_a_known_cost_the_first_request_is_sent_alone_and_then_the_average_counts() -> None:
    async def run() -> None:
        budget = Budget(Decimal(10))
        first = await budget.reserve(None)
        others = [asyncio.create_task(budget.reserve(None)) for _ in range(9)]
        await asyncio.sleep(0.01)
        assert not any(other.done() for other in others)
        budget.spend(Decimal(3))
        budget.free(first)
        await asyncio.sleep(0.01)
        assert [other.result() for other in others if other.done()] == [3, 3]
        others[2].cancel()
        budget.spend(Decimal(1))  # the average is 2
        budget.free(Decimal(3))
        await asyncio.sleep(0.01)
        assert sum(other.done() for other in others) == 4
        assert len(budget.waiting) == 5
        for other in others:
            other.cancel()

    asyncio.run(run())


def test_no_request_waits_for_one_that_has_ended() -> None:
    """Averages are rounded, so what is reserved and freed may not add up to 0."""

    budget, random = Budget(Decimal(100)), Random(1)

    async def send() -> bool:
        try:
            reserved = await budget.reserve(None)
        except BudgetUsedUpError:
            return False
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        budget.spend(Decimal(random.randrange(10**9)) / 10**9)
        budget.free(reserved)
        return True

    async def run() -> list[bool]:
        return await asyncio.gather(*[send() for _ in range(300)])

    sent = asyncio.run(asyncio.wait_for(run(), 10))
    assert 150 < sum(sent) < 250


def test_each_model_has_its_own_average() -> None:
    async def run() -> None:
        budget = Budget(Decimal(10))
        for cost in (1, 3):
            reserved = await budget.reserve(None, "cheap")
            budget.spend(Decimal(cost), "cheap")
            budget.free(reserved)
        assert await budget.reserve(None, "cheap") == 2
        assert await budget.reserve(None, "other") == 4, "all that is left"

    asyncio.run(run())


def test_a_part_of_a_shared_budget_is_waited_for_until_it_is_used_up() -> None:
    async def run() -> None:
        budget = Budget(Decimal(0), is_shared=True)
        waiting = asyncio.create_task(budget.reserve(Decimal(2)))
        await asyncio.sleep(0.01)
        assert list(budget.waiting.values()) == [2]
        budget.change(Decimal(3))
        assert await waiting == 2
        another = asyncio.create_task(budget.reserve(Decimal(2)))
        await asyncio.sleep(0.01)
        budget.free(Decimal(2))
        assert await another == 2, "an answer leaves its part, too"
        last = asyncio.create_task(budget.reserve(Decimal(2)))
        budget.change(Decimal(3), is_used_up=True)
        with pytest.raises(BudgetUsedUpError, match="used up"):
            await last

    asyncio.run(run())


def test_without_a_limit_nothing_waits() -> None:
    async def run() -> None:
        budget = Budget(None)
        assert [await budget.reserve(cost) for cost in (None, Decimal(10**9))] == [0, 0]

    asyncio.run(run())

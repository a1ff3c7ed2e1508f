"""The limits of a key hold through two processes on one PostgreSQL: exactly so many requests a minute, and no more."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.gateway.conftest import Upstream, new_store
from tests.gateway.test_budgets import BODY, Charging
from tests.gateway.test_kills import COST, running_gateways
from tests.support.postgresql import SKIP_REASON, address, schema

LIMIT, CALLERS = 37, 150
pytestmark = pytest.mark.skipif(not address(), reason=SKIP_REASON)


def _ask_at_once(urls: list[str], secret: str) -> Counter[int]:
    async def run() -> Counter[int]:
        async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=None)) as client:
            asked = [
                client.post(f"{urls[caller % 2]}/v1/messages", json=BODY, headers={"x-api-key": secret})
                for caller in range(CALLERS)
            ]
            return Counter([answer.status_code for answer in await asyncio.gather(*asked)])

    if time.time() % 60 > 30:  # all within one minute of the clock
        time.sleep(60 - time.time() % 60)
    return asyncio.run(run())


def test_requests_a_minute_are_exact_through_two_processes(upstream: Upstream, tmp_path: Path) -> None:
    service = Charging(seconds=0.01)
    upstream.answers = [service]
    with schema(address() or "") as place:
        store = new_store(place)
        _, secret = store.add_key("Ann", requests_per_minute=LIMIT)
        with running_gateways(place, upstream, tmp_path) as gateways:
            found = _ask_at_once(gateways.urls, secret)
        store.close()
    assert found == {200: LIMIT, 429: CALLERS - LIMIT}
    assert service.requests == LIMIT


def test_a_budget_is_exact_to_one_request_through_two_processes(upstream: Upstream, tmp_path: Path) -> None:
    service = Charging(seconds=0.01)
    upstream.answers = [service]
    with schema(address() or "") as place:
        store = new_store(place)
        key, secret = store.add_key("Ann", budget_usd=LIMIT * COST)
        with running_gateways(place, upstream, tmp_path) as gateways:
            for _ in range(20):  # refused while others are in progress, a request may be asked again
                if _ask_at_once(gateways.urls, secret)[200] == 0:
                    break
        spent = store.spent(key)
        store.close()
    # the estimate of a request is above its cost: the last one may not fit
    assert LIMIT - 1 <= service.requests == spent.requests <= LIMIT
    assert spent.cost_usd == service.charged <= LIMIT * COST

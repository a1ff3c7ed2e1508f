"""A budget holds with a thousand callers, two gateways on PostgreSQL, and twenty of them killed; made in full only."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua_gateway.store import GatewayStore
from tests.gateway.conftest import Upstream, new_store
from tests.gateway.test_budgets import BODY, MODEL, Charging
from tests.support.counts import FULL
from tests.support.counts import SKIP_REASON as ONLY_FULL
from tests.support.postgresql import SKIP_REASON, address, schema
from tests.support.waiting import until

CALLERS, KILLS, PAID = 1_000, 20, 3_000  # the budget pays for so many requests
BETWEEN = 0.5  # seconds between a gateway's start and the next kill
COST = Decimal(9 + 5 * BODY["max_tokens"]) / 1_000_000


class Gateways:
    """Two processes of the gateway, each started again after it was killed."""

    def __init__(self, place: str, upstream: Upstream, folder: Path) -> None:
        config = folder / "gateway.toml"
        config.write_text(f'auth = "keys"\nstore = "{place}"\n[[routes]]\nmatch = "*"\nto = ["{MODEL}"]\nretries = 0\n')
        self._command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(config), "--port", "0"]
        self._environ = {**os.environ, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": upstream.url}
        self._environ |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "c"), "XDG_DATA_HOME": str(folder / "d")}
        self._folder, self._started = folder, 0
        self._running: list[subprocess.Popen[bytes]] = []
        self.urls: list[str] = []

    def start(self) -> tuple[subprocess.Popen[bytes], str]:
        self._started += 1
        log = self._folder / f"gateway-{self._started}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(self._command, env=self._environ, stderr=file)
        line = until(lambda: next((line for line in log.read_text().splitlines() if "serving on" in line), ""), 60)
        return process, line.split()[2].rstrip(";")

    def start_all(self) -> None:
        for process, url in (self.start(), self.start()):
            self._running.append(process)
            self.urls.append(url)

    def kill(self, at: int) -> None:
        """Kill a gateway and start it again, on another port."""
        self._end(self._running[at])
        self._running[at], self.urls[at] = self.start()

    def close(self) -> None:
        for process in self._running:
            self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()


@contextmanager
def running_gateways(place: str, upstream: Upstream, folder: Path) -> Iterator[Gateways]:
    made = Gateways(place, upstream, folder)
    try:
        made.start_all()
        yield made
    finally:
        made.close()


@pytest.mark.skipif(not FULL, reason=ONLY_FULL)
@pytest.mark.skipif(not address(), reason=SKIP_REASON)
def test_a_thousand_callers_and_twenty_killed_gateways_stay_within_the_budget(
    upstream: Upstream, tmp_path: Path
) -> None:
    service = Charging(seconds=0.02)
    upstream.answers = [service]
    found: Counter[str] = Counter()

    async def call(
        caller: int, gateways: Gateways, secret: str, client: httpx.AsyncClient, over: asyncio.Event
    ) -> None:
        number = caller
        while not over.is_set():
            number += 1
            try:
                answer = await client.post(
                    f"{gateways.urls[number % 2]}/v1/messages", json=BODY, headers={"x-api-key": secret}
                )
            except httpx.HTTPError:
                found["broken"] += 1
                await asyncio.sleep(2)
                continue
            found[str(answer.status_code)] += 1
            if answer.status_code != 200:
                await asyncio.sleep(1)

    async def run(gateways: Gateways, secret: str) -> None:
        over = asyncio.Event()
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
            callers = [asyncio.create_task(call(one, gateways, secret, client, over)) for one in range(CALLERS)]
            for kill in range(KILLS):
                await asyncio.sleep(BETWEEN)
                await asyncio.to_thread(gateways.kill, kill % 2)
            over.set()
            await asyncio.gather(*callers)

    with schema(address() or "") as place:
        store = new_store(place)
        key, secret = store.add_key("Ann", budget_usd=PAID * COST)
        with running_gateways(place, upstream, tmp_path) as gateways:
            asyncio.run(run(gateways, secret))
            _wait_until_settled(store, key)
        abandoned = store.settle_abandoned(time.time() + 1)
        spent = store.spent(key)
        store.close()
    figures: dict[str, Any] = {
        "outcomes": dict(found), "asked of the service": service.requests, "charged": service.charged,
        "noted": spent.cost_usd, "requests noted": spent.requests, "of killed gateways": abandoned,
        "budget": PAID * COST,
    }  # fmt: skip
    print(figures)
    assert found["200"] > 0
    assert service.charged <= spent.cost_usd <= PAID * COST, figures
    # a request is noted at its charge; one that a killed gateway had not noted, perhaps because it had just written the
    # answer, at its highest cost, below twice that
    settled = (spent.requests - abandoned) * COST
    assert found["200"] <= service.requests <= spent.requests, figures
    assert abandoned * COST <= spent.cost_usd - settled <= abandoned * 2 * COST, figures
    assert spent.output_tokens == spent.requests * BODY["max_tokens"], figures


def _wait_until_settled(store: GatewayStore, key: Any) -> None:
    """Wait until the running gateways have settled what they answered."""
    before = -1
    while (requests := store.spent(key).requests) != before:
        before = requests
        time.sleep(1)

"""A budget is never overspent: by many at once, by two gateways, by callers who leave, by a gateway that dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua.errors import OverloadedError
from interlingua_gateway.spending import Spending
from interlingua_gateway.store import GatewayStore, Use
from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.loopback import send_bytes
from tests.support.postgresql import address
from tests.support.waiting import until

MODEL = "anthropic:claude-haiku-4-5"  # 1 USD for a million input tokens, 5 for output: anthropic.com/pricing
ROUTES: Any = [{"match": "*", "to": [MODEL], "retries": 0}]
BODY: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}


class Charging:
    """A service of the Messages API that adds up what it charges."""

    def __init__(self, *, seconds: float = 0.0, usage: bool = True) -> None:
        self.charged, self.requests = Decimal(0), 0
        self._seconds, self._usage = seconds, usage
        self._lock = threading.Lock()

    def __call__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        time.sleep(self._seconds)
        with self._lock:
            self.requests += 1
            self.charged += Decimal(9) / 1_000_000 + Decimal(5 * body["max_tokens"]) / 1_000_000
        whole: dict[str, Any] = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
            "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": body["max_tokens"]} if self._usage else {},
        }  # fmt: skip
        with suppress(OSError):
            send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


def _settings(upstream: Upstream) -> dict[str, Any]:
    return {"settings": {"anthropic": {"base_url": upstream.url, "api_key": "k"}}, "routes": ROUTES, "auth": "keys"}


def _places(tmp_path: Path) -> list[Any]:
    return [f"sqlite:///{tmp_path}/g.db", *([address()] if address() else [])]


def test_many_at_once_through_two_gateways_stay_within_the_budget(upstream: Upstream, tmp_path: Path) -> None:
    for place in _places(tmp_path):
        service = Charging(seconds=0.02)
        upstream.answers = [service]
        store = new_store(place)
        key, secret = store.add_key("Ann", budget_usd=Decimal("0.01"))
        ask = ThreadPoolExecutor(24)
        config = _settings(upstream) | {"store": place}
        with gateway(upstream, **config) as one, gateway(upstream, **config) as other:

            def post(number: int, urls: tuple[str, str] = (one, other), secret: str = secret) -> int:
                headers = {"x-api-key": secret}
                return httpx.post(f"{urls[number % 2]}/v1/messages", json=BODY, headers=headers, timeout=60).status_code

            found = list(ask.map(post, range(60)))
        ask.shutdown()
        assert set(found) <= {200, 402, 403, 429}
        assert found.count(200) == service.requests > 5
        assert service.charged <= Decimal("0.01")
        assert store.spent(key).cost_usd == service.charged
        assert store.spent(key).requests == service.requests
        store.revoke_key(key.id)
        store.close()


def test_many_at_once_through_two_gateways_stay_within_the_tokens_of_a_minute(
    upstream: Upstream, tmp_path: Path
) -> None:
    for place in _places(tmp_path):
        service = Charging(seconds=0.02)
        upstream.answers = [service]
        store = new_store(place)
        key, secret = store.add_key("Ann", tokens_per_minute=3_000)  # an answer takes 109
        ask = ThreadPoolExecutor(40)
        config = _settings(upstream) | {"store": place}
        if time.time() % 60 > 30:  # all within one minute of the clock
            time.sleep(60 - time.time() % 60)
        with gateway(upstream, **config) as one, gateway(upstream, **config) as other:

            def post(number: int, urls: tuple[str, str] = (one, other), secret: str = secret) -> httpx.Response:
                headers = {"x-api-key": secret}
                return httpx.post(f"{urls[number % 2]}/v1/messages", json=BODY, headers=headers, timeout=60)

            found = list(ask.map(post, range(200)))
        ask.shutdown()
        statuses = [answer.status_code for answer in found]
        assert set(statuses) == {200, 429}
        assert all("retry-after" in answer.headers for answer in found if answer.status_code == 429)
        spent = store.spent(key)
        assert statuses.count(200) == service.requests == spent.requests
        assert 3_000 - 2 * 150 < spent.input_tokens + spent.output_tokens <= 3_000
        store.revoke_key(key.id)
        store.close()


def test_an_answer_is_limited_to_the_tokens_that_are_left_in_a_minute(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", tokens_per_minute=5_000)
    upstream.answers = [Charging()]
    chat = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}  # no limit, as most callers of this API
    headers = {"authorization": f"Bearer {secret}"}
    with gateway(upstream, store=place, **_settings(upstream)) as url:
        too_long = httpx.post(f"{url}/v1/chat/completions", json={**chat, "max_tokens": 5_000}, headers=headers)
        first = httpx.post(f"{url}/v1/chat/completions", json=chat, headers=headers)
    assert too_long.status_code in (402, 403, 429)
    assert "5000 a minute" in too_long.json()["error"]["message"]
    assert "retry-after" not in too_long.headers  # it never fits
    assert first.status_code == 200
    assert 4_500 < upstream.requests[0][1]["max_tokens"] < 5_000
    assert "minute" in first.headers["x-interlingua-losses"]
    assert store.spent(key).output_tokens < 5_000
    store.close()


def test_a_model_without_a_price_is_refused_for_a_key_with_a_budget(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, limited = store.add_key("Ann", budget_usd=Decimal(1))
    _, free = store.add_key("Bob")
    store.close()
    upstream.answers = [Charging()]
    config = _settings(upstream) | {"routes": [{"match": "*", "to": ["anthropic:claude-of-tomorrow"], "retries": 0}]}
    with gateway(upstream, store=place, **config) as url:
        answers = [httpx.post(f"{url}/v1/messages", json=BODY, headers={"x-api-key": key}) for key in (limited, free)]
    assert [answer.status_code for answer in answers] == [400, 200]
    assert "no price" in answers[0].json()["error"]["message"]


def test_an_answer_is_limited_to_what_the_budget_pays_for(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.02"))
    upstream.answers = [Charging()]
    chat = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}  # no limit, as most callers of this API
    headers = {"authorization": f"Bearer {secret}"}
    with gateway(upstream, store=place, **_settings(upstream)) as url:
        first = httpx.post(f"{url}/v1/chat/completions", json=chat, headers=headers)
        asked = httpx.post(f"{url}/v1/chat/completions", json={**chat, "max_tokens": 9_000}, headers=headers)
    assert first.status_code == 200
    assert 3_000 < upstream.requests[0][1]["max_tokens"] <= 4_000
    assert "budget" in first.headers["x-interlingua-losses"]
    assert asked.status_code in (402, 403, 429)
    assert len(upstream.requests) == 1
    assert store.spent(key).cost_usd <= Decimal("0.02")
    store.close()


def test_callers_who_leave_and_answers_without_usage_are_counted(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal(1))
    service = Charging(seconds=0.4)
    upstream.answers = [service]
    headers = {"x-api-key": secret}
    with gateway(upstream, store=place, **_settings(upstream)) as url:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{url}/v1/messages", json=BODY, headers=headers, timeout=0.2)
        until(lambda: store.spent(key).requests == 3)
        assert store.spent(key).cost_usd == service.charged
        upstream.answers = [Charging(usage=False)]
        assert httpx.post(f"{url}/v1/messages", json=BODY, headers=headers).status_code == 200
        until(lambda: store.spent(key).requests == 4)
    spent = store.spent(key)
    assert service.charged < spent.cost_usd < service.charged + Decimal("0.001")
    store.close()


@pytest.mark.parametrize("stream", [False, True])
def test_each_attempt_is_reserved_and_counted(upstream: Upstream, tmp_path: Path, stream: bool) -> None:
    """An answer that broke before its first event may have been charged: its highest cost counts."""

    def cut(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        kind = "text/event-stream" if stream else "application/json"
        send_bytes(handler, 200, kind, b"", **{"content-length": "1000"})
        handler.close_connection = True

    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.00165"))  # three attempts, not four
    upstream.answers = [cut]
    routes: Any = [{"match": "*", "to": [MODEL], "retries": 5}]
    config = {**_settings(upstream), "routes": routes, "store": place}
    with gateway(upstream, **config) as url:
        asked = {**BODY, "stream": stream}
        answer = httpx.post(f"{url}/v1/messages", json=asked, headers={"x-api-key": secret}, timeout=60)
    assert answer.status_code in (402, 403, 429)
    assert "budget" in answer.text
    spent = store.spent(key)
    assert len(upstream.requests) == 3
    assert spent.output_tokens == 300
    assert Decimal("0.0015") < spent.cost_usd <= Decimal("0.00165")
    store.close()


def test_what_a_killed_gateway_had_in_progress_is_counted(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal(1))
    upstream.answers = [Charging(seconds=30)]
    config = tmp_path / "gateway.toml"
    config.write_text(f'auth = "keys"\nstore = "{place}"\n[[routes]]\nmatch = "*"\nto = ["{MODEL}"]\n')
    environ = {**os.environ, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": upstream.url, "HOME": str(tmp_path)}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        environ[name] = str(tmp_path / name)
    command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "serving on" in line)
        url = line.split()[2].rstrip(";")
        ask = ThreadPoolExecutor(5)
        for _ in range(5):
            ask.submit(httpx.post, f"{url}/v1/messages", json=BODY, headers={"x-api-key": secret}, timeout=60)
        until(lambda: len(upstream.requests) == 5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    ask.shutdown(cancel_futures=True)
    assert store.spent(key).requests == 0
    assert store.settle_abandoned(time.time() + 1) == 5
    assert store.settle_abandoned(time.time() + 1) == 0
    spent = store.spent(key)
    assert spent.requests == 5
    assert spent.output_tokens == 500
    assert Decimal("0.0025") < spent.cost_usd < Decimal("0.003")
    store.close()


def test_what_ends_while_the_database_is_away_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    key, _ = store.add_key("Ann")
    used = Use(input_tokens=1, output_tokens=2, cost_usd=Decimal("0.25"))

    async def run(folder: Path | None) -> None:
        spending = Spending(store, folder)
        name, _ = await spending.reserve(key, used)
        assert name is not None
        with monkeypatch.context() as away:
            away.setattr(GatewayStore, "settle", _fail)
            await spending.settle(name, used)
            with pytest.raises(OverloadedError):
                await spending.tend()
        after = spending if folder is None else Spending(store, folder)  # a file outlives its gateway
        for file in folder.iterdir() if folder else ():
            os.utime(file, (0, 0))
        await after.tend()
        await after.tend()

    asyncio.run(run(None))
    asyncio.run(run(tmp_path / "unwritten"))
    assert store.spent(key).requests == 2
    assert store.spent(key).cost_usd == Decimal("0.5")
    assert list((tmp_path / "unwritten").iterdir()) == []
    store.close()


def _fail(*_arguments: Any) -> None:
    raise OverloadedError("the database is away")


def test_gateways_that_start_at_once_make_the_tables_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as start:
        for number in range(5):
            places = [f"sqlite:///{tmp_path}/{number}.db"] * 8
            for store in start.map(GatewayStore, places):
                store.close()

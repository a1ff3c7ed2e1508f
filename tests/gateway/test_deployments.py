"""Several deployments of a model: their order, limits, rests after failures, and what operators see of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua.errors import CallerError, DecodeError
from interlingua.fallback import ModelHealth
from interlingua_gateway import config_of, create_app, health
from interlingua_gateway.config import read_config
from tests.gateway.conftest import Upstream, gateway, new_store, refuse, say
from tests.support.waiting import until


@pytest.fixture
def services() -> Iterator[tuple[Upstream, Upstream]]:
    made = (Upstream(), Upstream())
    yield made
    for each in made:
        each.close()


def _config(services: tuple[Upstream, Upstream], balance: str = "order", **limits: Any) -> dict[str, Any]:
    places = [
        {"name": name, "model": "llamacpp:up-1", "base_url": f"{service.url}/v1", **limits.get(name, {})}
        for name, service in zip(("east", "west"), services, strict=True)
    ]
    route = {"match": "m", "to": ["east", "west"], "retries": 1, "balance": balance}
    return {"deployments": places, "routes": [route], "settings": {}}


def _ask(url: str, text: str = "Hi", **headers: str) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=30)


def _counts(services: tuple[Upstream, Upstream]) -> tuple[int, int]:
    return len(services[0].requests), len(services[1].requests)


class Clock:
    """The clock of rests, which only a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(health, "ModelHealth", partial(ModelHealth, clock=made))
    return made


def test_a_dead_first_deployment_costs_nothing_after_the_first_failures(
    services: tuple[Upstream, Upstream], clock: Clock
) -> None:
    services[0].answers = [refuse(503)]
    config = _config(services)
    config["routes"][0]["retries"] = 2
    with gateway(services[1], **config, rest=10) as url:
        assert _ask(url).status_code == 200
        assert _counts(services) == (3, 1)
        took = []
        for _ in range(10):
            before = time.monotonic()
            assert _ask(url).status_code == 200
            took.append(time.monotonic() - before)
        assert _counts(services) == (3, 11)
        assert min(took) < 0.4  # a retry alone waits as long
        clock.now += 10
        with ThreadPoolExecutor(8) as pool:  # the rest is over: one request tries it, once
            assert {answer.status_code for answer in pool.map(lambda _: _ask(url), range(8))} == {200}
        assert _counts(services) == (4, 19)
        services[0].answers = [say("Hello.")]
        clock.now += 9.9
        assert _ask(url).status_code == 200
        assert _counts(services) == (4, 20)
        clock.now += 0.1
        assert [_ask(url).status_code for _ in range(3)] == [200] * 3
        assert _counts(services) == (7, 20)


def test_a_refused_connection_and_a_wait_that_the_service_asks_for_are_rests(
    services: tuple[Upstream, Upstream],
) -> None:
    services[0].answers = [refuse(429, retry_after="30")]
    with gateway(services[1], **_config(services)) as url:
        assert [_ask(url).status_code for _ in range(4)] == [200] * 4
    assert _counts(services) == (1, 4)
    dead = _config(services, east={"base_url": "http://127.0.0.1:9/v1"})
    with gateway(services[1], **dead, rest_after=2) as url:
        assert [_ask(url).status_code for _ in range(4)] == [200] * 4
        metrics = httpx.get(f"{url}/metrics").text
    assert 'interlingua_gateway_model_failures_total{error="APIConnectionError",model="east"} 2.0' in metrics
    assert 'interlingua_gateway_model_healthy{model="east"} 0.0' in metrics
    assert 'interlingua_gateway_model_open_requests{model="west"} 0.0' in metrics


def test_what_a_caller_did_wrong_is_no_failure_of_a_deployment(services: tuple[Upstream, Upstream]) -> None:
    services[0].answers = [refuse(400)]
    with gateway(services[1], **_config(services), rest_after=1) as url:
        for _ in range(3):
            _ask(url)
        assert _counts(services)[0] == 3


def test_if_every_deployment_rests_they_are_asked_still(services: tuple[Upstream, Upstream]) -> None:
    for each in services:
        each.answers = [refuse(503)]
    with gateway(services[1], **_config(services), rest_after=1) as url:
        assert _ask(url).status_code == 503
        ready = httpx.get(f"{url}/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "down")
        assert ready.json()["routes"]["m"]["east"]["status"] == "rests"
        assert _counts(services) == (1, 2)  # the last one is asked again
        services[1].answers = [say("Hello.")]
        assert _ask(url).status_code == 200
        assert _counts(services) == (2, 3)  # in the order in which their rests end
        ready = httpx.get(f"{url}/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "ok")
        assert ready.json()["routes"]["m"]["west"] == {"status": "ok", "failures": 0, "open": 0}


def test_weights_divide_conversations_which_stay_where_they_are(services: tuple[Upstream, Upstream]) -> None:
    with gateway(services[1], **_config(services, "weights", east={"weight": 3})) as url:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: _ask(url, f"question {number}"), range(200)))
        east, west = _counts(services)
        assert east + west == 200
        assert 125 < east < 175
        for number in range(20):
            _ask(url, f"question {number}")
        asked = [Counter(body["messages"][0]["content"] for _, body in each.requests) for each in services]
    assert not asked[0].keys() & asked[1].keys()


def test_the_least_busy_deployment_is_asked(services: tuple[Upstream, Upstream]) -> None:
    def slowly(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        time.sleep(0.5)
        say("Hello.")(handler, body)

    for each in services:
        each.answers = [slowly]
    with gateway(services[1], **_config(services, "least-busy")) as url, ThreadPoolExecutor(10) as pool:
        assert {answer.status_code for answer in pool.map(lambda _: _ask(url), range(10))} == {200}
    east, west = _counts(services)
    assert abs(east - west) <= 2


def test_a_deployment_at_its_limit_is_left_out(services: tuple[Upstream, Upstream]) -> None:
    limits: Any = {"east": {"requests_per_minute": 3}, "west": {"tokens_per_minute": 15}}
    while time.time() % 60 > 50:
        time.sleep(1)
    with gateway(services[1], **_config(services, **limits)) as url:
        answers = [_ask(url) for _ in range(7)]
        assert _counts(services) == (3, 2)  # 10 tokens each
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


def test_a_deployment_has_its_own_key_which_no_other_service_gets(services: tuple[Upstream, Upstream]) -> None:
    config = _config(services, east={"api_key_env": "EAST_KEY"})
    with gateway(services[1], environ={"EAST_KEY": "east-secret"}, **config) as url:
        _ask(url)
        services[0].answers = [refuse(503)]
        _ask(url)
    assert services[0].headers[0]["authorization"] == "Bearer east-secret"
    assert "east-secret" not in json.dumps([dict(one) for one in services[1].headers])
    config.pop("settings")
    with pytest.raises(CallerError, match=r"deployments\[0\]\.api_key_env: EAST_KEY is not set"):
        create_app(config_of(config), environ={})


def test_only_admins_see_the_deployments(services: tuple[Upstream, Upstream], tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, admin = store.add_key("Ann", admin=True)
    _, plain = store.add_key("Bob")
    store.close()
    with gateway(services[1], **_config(services), auth="keys", store=place) as url:
        found = [httpx.get(f"{url}/health/ready", headers=h).json() for h in ({}, {"x-api-key": plain})]
        assert found == [{"status": "ok"}] * 2
        seen = until(lambda: httpx.get(f"{url}/health/ready", headers={"x-api-key": admin}).json())
    assert set(seen["routes"]["m"]) == {"east", "west"}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("weight = 2", "weight = 0", 4, "deployments[0].weight must be > 0"),
        ("weight = 2", "wait = 2", 1, "deployments[0] has no setting wait"),
        ('name = "west"', 'name = "east"', 7, "deployments[1].name is used twice: east"),
        ('name = "west"', 'name = "a:b"', 7, "deployments[1].name must match"),
        ('"llamacpp:a"', '"a"', 3, "deployments[0].model must match"),
        ('balance = "weights"', 'balance = "random"', 13, "routes[0].balance must be in"),
        ('balance = "weights"', "balance = 1", 13, "routes[0].balance must be a string"),
    ],
)
def test_a_wrong_deployment_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    lines = [
        "[[deployments]]", 'name = "east"', 'model = "llamacpp:a"', "weight = 2", "", "[[deployments]]",
        'name = "west"', 'model = "llamacpp:b"', "", "[[routes]]", 'match = "m"', 'to = ["east", "west"]',
        'balance = "weights"',
    ]  # fmt: skip
    file = tmp_path / "gateway.toml"
    file.write_text("\n".join(lines))
    assert [one.name for one in read_config(file).deployments] == ["east", "west"]
    file.write_text("\n".join(lines).replace(old, new))
    with pytest.raises(DecodeError) as refused:
        read_config(file)
    assert f"line {line}, {words}" in refused.value.message

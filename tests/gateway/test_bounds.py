"""Names that callers make up do not grow what the gateway keeps or sends: metrics and the header of losses."""

from __future__ import annotations

import json
import time

import httpx

from interlingua.plugins import Loss
from interlingua_gateway.upstream_request import ledger_text
from tests.gateway.apis import APIS
from tests.gateway.conftest import Upstream, gateway, refuse, wait_for_metric


def test_names_that_callers_invent_make_no_metrics(upstream: Upstream) -> None:
    def lines(url: str) -> int:
        until = time.monotonic() + 10
        while True:  # answers are counted behind their end
            found = httpx.get(f"{url}/metrics").text.splitlines()
            waiting = [line for line in found if "open_requests{" in line and not line.endswith(" 0.0")]
            if not waiting or time.monotonic() > until:
                return len(found)

    def ask(url: str, number: int) -> None:
        for api in APIS:
            path = api.path.replace("/m:", f"/m{number}:")
            httpx.post(url + path, json={**api.body, **({"model": f"m{number}"} if "model" in api.body else {})})
            bad = {"model": f"nobody{number}:m", **{key: api.body[key] for key in api.body if key != "model"}}
            httpx.post(url + api.path.replace("/m:", f"/nobody{number}:m:"), json=bad)

    routes = [{"match": "nobody*:m", "to": ["{model}"]}, {"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]
    with gateway(upstream, routes=routes) as url:
        ask(url, 0)
        first = lines(url)
        for number in range(1, 6):
            ask(url, number)
        assert lines(url) == first


def test_a_name_that_the_service_refuses_makes_no_metric(upstream: Upstream) -> None:
    upstream.answers = [refuse(404)]
    with gateway(upstream, routes=[]) as url:
        for number in range(5):
            body = {**APIS[1].body, "model": f"llamacpp:invented-{number}"}
            assert httpx.post(url + APIS[1].path, json=body).status_code == 404
        assert "invented" not in httpx.get(f"{url}/metrics").text


def test_names_that_a_service_answers_to_are_counted_together_from_some_number_on(upstream: Upstream) -> None:
    settings = {"match": "*", "to": ["llamacpp:{model}"], "retries": 0}
    with gateway(upstream, routes=[settings]) as url, httpx.Client(base_url=url) as caller:
        for number in range(210):
            assert caller.post(APIS[1].path, json={**APIS[1].body, "model": f"any-{number}"}).status_code == 200
        metrics = wait_for_metric(url, 'model="other",outcome="ok"} 10.0')
    assert len([line for line in metrics.splitlines() if line.startswith("interlingua_gateway_requests_total")]) == 201
    assert 'model="other",outcome="ok"} 10.0' in metrics


def test_the_header_of_losses_is_bounded_and_counts_the_rest() -> None:
    for reason in ("short", "long " * 400, "é\r\n" * 50):
        rows = [
            Loss(path=f"messages[{at}]", block_type="text", verdict="dropped", reason=reason) for at in range(5_000)
        ]
        text = ledger_text(rows)
        assert len(text) <= 4_000
        assert text.isascii()
        assert text.isprintable()
        kept = json.loads(text)
        assert len(kept) - 1 + kept[-1]["more"] == 5_000


def test_a_request_of_many_losses_is_answered(upstream: Upstream) -> None:
    many = [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "citations": {"enabled": True}, "x": "é" * 50}]}
    ]
    with gateway(upstream) as url:
        body = {"model": "m", "max_tokens": 5, "messages": many * 300, "metadata": {f"k{at}": at for at in range(300)}}
        answer = httpx.post(f"{url}/v1/messages", json=body)

    assert answer.status_code in (200, 400)
    assert len(answer.headers.get("x-interlingua-losses", "")) <= 4_000

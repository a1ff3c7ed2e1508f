"""Members of a request with which it would cost more, or use other models, than its model and `max_tokens` say."""

from __future__ import annotations

import json
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua_serving import ServedApi
from tests.gateway.apis import APIS, Api, error_message
from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.loopback import send_bytes
from tests.support.waiting import until

BY_NAME = {api.name: api for api in APIS}
COUNTS = [("chat", {"n": 2}), ("chat", {"n": "5"}), ("generate", {"generationConfig": {"candidateCount": 8}})]
OTHERS = [
    ("messages", {"fallbacks": [{"model": "claude-opus-4-8"}]}),  # docs of the Messages API: `fallbacks`
    ("messages", {"fallbacks": "default"}),
    ("chat", {"models": ["openai/o1-pro"]}),  # openrouter.ai/docs: fallback models, and presets that name a model
    ("chat", {"preset": "mine"}),
    ("responses", {"models": ["openai/o1-pro"]}),
]


@pytest.mark.parametrize(("name", "more"), COUNTS)
@pytest.mark.parametrize("stream", [True, False])
def test_more_than_one_answer_is_refused(upstream: Upstream, name: str, more: dict[str, Any], stream: bool) -> None:
    """One is returned, and all would cost."""
    api = BY_NAME[name]
    path = api.path if stream else api.path.replace("streamGenerateContent?alt=sse", "generateContent")
    body = {**api.body, **({"stream": stream} if "stream" in api.body else {})}
    with gateway(upstream) as url:
        refused = httpx.post(url + path, json={**body, **more})
        one = httpx.post(url + path, json={**body, "n": 1} if name == "chat" else body)
    assert (refused.status_code, one.status_code) == (400, 200)
    assert "one answer" in error_message(api, refused.json())
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(("name", "more"), OTHERS)
@pytest.mark.parametrize("limits", [{"models": ("m",)}, {"budget_usd": Decimal(1)}, {"team": "red"}, {}])
def test_a_limited_key_names_no_other_models(
    upstream: Upstream, tmp_path: Path, name: str, more: dict[str, Any], limits: dict[str, Any]
) -> None:
    api, place = BY_NAME[name], f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    store.set_team("red")
    _, secret = store.add_key("Ann", **limits)
    headers = {"authorization": f"Bearer {secret}"}
    with gateway(upstream, auth="keys", store=place) as url:
        answer = httpx.post(url + api.path, json={**api.body, **more}, headers=headers)
    assert answer.status_code == (403 if limits else 200), answer.text
    assert len(upstream.requests) == (0 if limits else 1)


@pytest.mark.parametrize(("name", "more"), OTHERS)
def test_with_routes_only_no_other_models_are_named(upstream: Upstream, name: str, more: dict[str, Any]) -> None:
    api = BY_NAME[name]
    with gateway(upstream, routes_only=True) as url:
        assert httpx.post(url + api.path, json={**api.body, **more}).status_code == 403
    assert upstream.requests == []


def test_an_api_names_neither_by_default() -> None:
    api = ServedApi(name="x")
    assert (api.other_models, api.answer_counts) == ((), ())


def _fast_answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    usage = {"input_tokens": 9, "output_tokens": body["max_tokens"], "speed": body.get("speed", "standard")}
    whole = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None,
        "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn", "usage": usage,
    }  # fmt: skip
    send_bytes(handler, 200, "application/json", json.dumps(whole).encode())


def test_a_dearer_tier_is_reserved_at_its_price(upstream: Upstream, tmp_path: Path) -> None:
    """Fast mode of this model costs 10 and 50 USD for a million tokens instead of 5 and 25: anthropic.com/pricing."""
    upstream.answers = [_fast_answer]
    place, model = f"sqlite:///{tmp_path}/g.db", "anthropic:claude-opus-4-8"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.03"))  # 1,000 tokens cost 0.025, fast 0.05
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    body = {"model": model, "max_tokens": 1_000, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"x-api-key": secret, "anthropic-beta": "fast-mode-2026-02-01"}
    routes = [{"match": "*", "to": ["{model}"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, auth="keys", store=place) as url:
        fast = httpx.post(f"{url}/v1/messages", json={**body, "speed": "fast"}, headers=headers)
        spent = store.spent(key).cost_usd
        plain = httpx.post(f"{url}/v1/messages", json=body, headers=headers)
    assert fast.status_code in (402, 403, 429), (fast.text, spent)
    assert plain.status_code == 200
    assert len(upstream.requests) == 1
    assert store.spent(key).cost_usd <= Decimal("0.03")


UNPRICED: list[tuple[str, dict[str, Any], str]] = [
    ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools"),
    ("messages", {"mcp_servers": [{"type": "url", "url": "https://mcp.example.com", "name": "x"}]}, "mcp_servers"),
    ("messages", {"inference_geo": "us"}, "inference_geo"),
]


@pytest.mark.parametrize(("name", "more", "member"), UNPRICED, ids=[member for *_, member in UNPRICED])
@pytest.mark.parametrize("unpriced_usd", [None, 0.02, 0.5])
def test_what_has_no_price_is_refused_or_reserved_for_a_key_with_a_budget(
    upstream: Upstream, tmp_path: Path, name: str, more: dict[str, Any], member: str, unpriced_usd: float | None
) -> None:
    """Searches cost 0.01 USD each, and their results are input: docs of the web search tool."""
    upstream.answers = [_fast_answer]
    place, model = f"sqlite:///{tmp_path}/g.db", "anthropic:claude-opus-4-8"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.05"))
    _, free = store.add_key("Bob")
    route: dict[str, Any] = {"match": "*", "to": ["{model}"], "retries": 0}
    route |= {} if unpriced_usd is None else {"unpriced_usd": unpriced_usd}
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    body = {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
    with gateway(upstream, settings=settings, routes=[route], auth="keys", store=place) as url:

        def ask(secret: str, **given: Any) -> httpx.Response:
            return httpx.post(f"{url}/v1/messages", json={**body, **given}, headers={"x-api-key": secret})

        assert ask(free, **more).status_code == 200  # without a budget
        answer = ask(secret, **more)
        if answer.status_code == 200:
            until(lambda: store.spent(key).requests)
        spent = store.spent(key).cost_usd
        assert ask(secret).status_code == 200
    if unpriced_usd is None:
        assert answer.status_code == 400
        assert f"no price of {member} is known" in answer.json()["error"]["message"]
    else:
        assert answer.status_code == (200 if unpriced_usd < 0.05 else 402)
    tokens = Decimal(9 * 5 + 10 * 25) / 1_000_000
    assert spent == (tokens + Decimal("0.02") if answer.status_code == 200 else 0)


def test_without_such_members_nothing_more_is_reserved(upstream: Upstream, tmp_path: Path) -> None:
    """Members that another API's model does not get cost nothing."""
    place = f"sqlite:///{tmp_path}/g.db"
    _, secret = new_store(place).add_key("Ann", budget_usd=Decimal("0.05"))
    with gateway(upstream, auth="keys", store=place) as url:
        for name, more, _ in UNPRICED:
            api: Api = BY_NAME[name]
            asked: dict[str, Any] = {**api.body, "stream": False, **more}
            answer = httpx.post(url + api.path, json=asked, headers={"x-api-key": secret})
            assert answer.status_code == 200, answer.text

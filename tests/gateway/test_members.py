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
    ("messages", {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "code_execution_20250825"),
    ("messages", {"mcp_servers": [{"type": "url", "url": "https://mcp.example.com", "name": "x"}]}, "mcp_servers"),
    ("messages", {"inference_geo": "us"}, "inference_geo"),
]


@pytest.mark.parametrize(("name", "more", "member"), UNPRICED, ids=[member for *_, member in UNPRICED])
@pytest.mark.parametrize("unpriced_usd", [None, 0.02, 0.5])
def test_what_has_no_price_is_refused_or_reserved_for_a_key_with_a_budget(
    upstream: Upstream, tmp_path: Path, name: str, more: dict[str, Any], member: str, unpriced_usd: float | None
) -> None:
    """A container of code execution is billed by time: docs of the code execution tool."""
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
        assert f"no price of {member} is known: set " in answer.json()["error"]["message"]
    else:
        assert answer.status_code == (200 if unpriced_usd < 0.05 else 402)
    tokens = Decimal(9 * 5 + 10 * 25) / 1_000_000
    assert spent == (tokens + Decimal("0.02") if answer.status_code == 200 else 0)


SEARCH = Decimal("0.01")  # USD: https://developers.openai.com/api/docs/pricing, https://claude.com/pricing
CODEX = {"type": "web_search", "external_web_access": True}  # as Codex 0.171.0 sends it with each request


def _searching(searches: int) -> Any:
    """Answer as the Responses API does after searches."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        action = {"type": "search", "query": "Io"}
        calls = [
            {"type": "web_search_call", "id": f"ws_{at}", "status": "completed", "action": action}
            for at in range(searches)
        ]
        text = {"type": "output_text", "text": "3,643 km.", "annotations": []}
        said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        usage = {"input_tokens": 9_000, "output_tokens": 10, "total_tokens": 9_010}
        whole = {
            "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.1", "status": "completed",
            "output": [*calls, said], "usage": usage,
        }  # fmt: skip
        send_bytes(handler, 200, "application/json", json.dumps(whole).encode())

    return answer


@pytest.mark.parametrize(
    ("tools", "more", "searches", "status"),
    [
        ([CODEX], {}, 0, 200),
        ([CODEX], {}, 3, 200),
        ([CODEX], {"max_tool_calls": 1}, 1, 200),
        ([CODEX], {"max_tool_calls": 100}, 1, 429),  # 1 USD; "insufficient_quota" of this API
        ([{"type": "web_search_2025_08_26"}], {}, 1, 200),
        ([{"type": "web_search_preview"}], {}, 1, 400),
        ([CODEX, {"type": "image_generation"}], {}, 1, 400),
    ],
)
def test_a_search_is_reserved_and_charged_at_its_price(
    upstream: Upstream, tmp_path: Path, tools: list[Any], more: dict[str, Any], searches: int, status: int
) -> None:
    upstream.answers = [_searching(searches)]
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.5"))
    settings = {"openai": {"base_url": f"{upstream.url}/v1", "api_key": "k"}}
    routes = [{"match": "*", "to": ["openai:gpt-5.1"], "retries": 0}]
    body = {"model": "gpt-5.1", "input": "How wide is Io?", "max_output_tokens": 100, "tools": tools, **more}
    with gateway(upstream, settings=settings, routes=routes, auth="keys", store=place) as url:
        answer = httpx.post(f"{url}/v1/responses", json=body, headers={"authorization": f"Bearer {secret}"})
        assert answer.status_code == status, answer.text
        if status == 200:
            until(lambda: store.spent(key).requests)
    tokens = (9_000 * Decimal("1.25") + 10 * 10) / 1_000_000  # USD a million: the same page
    assert store.spent(key).cost_usd == (tokens + SEARCH * searches if status == 200 else 0)
    if status == 200:
        assert upstream.requests[0][1]["tools"] == tools
        assert upstream.requests[0][1]["max_tool_calls"] == more.get("max_tool_calls", 5)
        assert ("max_tool_calls" in answer.headers["x-interlingua-losses"]) == (not more)


def test_tools_that_a_message_brings_are_priced_too(upstream: Upstream, tmp_path: Path) -> None:
    """Responses' items `additional_tools` add tools in the middle of a conversation."""
    upstream.answers = [_searching(1)]
    place = f"sqlite:///{tmp_path}/g.db"
    key, secret = (store := new_store(place)).add_key("Ann", budget_usd=Decimal("0.5"))
    settings = {"openai": {"base_url": f"{upstream.url}/v1", "api_key": "k"}}
    routes = [{"match": "*", "to": ["openai:gpt-5.1"], "retries": 0}]
    with gateway(upstream, settings=settings, routes=routes, auth="keys", store=place) as url:
        for tool, status in ((CODEX, 200), ({"type": "image_generation"}, 400)):
            added = {"type": "additional_tools", "role": "developer", "tools": [tool]}
            body = {"model": "gpt-5.1", "max_output_tokens": 100, "input": [added, {"role": "user", "content": "Hi"}]}
            answer = httpx.post(f"{url}/v1/responses", json=body, headers={"authorization": f"Bearer {secret}"})
            assert answer.status_code == status, answer.text
        until(lambda: store.spent(key).requests)
    assert next(item for item in upstream.requests[0][1]["input"] if "tools" in item)["tools"] == [CODEX]


def _search_then_break(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    """Begin a streamed answer of the Messages API after searches, and break off."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Io is"}},
    ]
    data = "".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events])
    send_bytes(handler, 200, "text/event-stream", data.encode())


def test_an_answer_that_breaks_off_is_charged_for_all_its_searches(upstream: Upstream, tmp_path: Path) -> None:
    """How many there were is reported at the end only."""
    upstream.answers = [_search_then_break]
    place, model = f"sqlite:///{tmp_path}/g.db", "anthropic:claude-opus-4-8"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal(1))
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    routes = [{"match": "*", "to": [model], "retries": 0}]
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 4}
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
    with gateway(upstream, settings=settings, routes=routes, auth="keys", store=place) as url:
        httpx.post(f"{url}/v1/messages", json={**body, "stream": True}, headers={"x-api-key": secret})
        until(lambda: store.spent(key).requests)
    assert 4 * SEARCH < store.spent(key).cost_usd < 1


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


@pytest.mark.parametrize("has_budget", [True, False])
def test_searches_are_limited_to_what_is_reserved(upstream: Upstream, tmp_path: Path, *, has_budget: bool) -> None:
    """A service may search as often as the request allows; other requests are left as they are."""
    upstream.answers = [_fast_answer]
    place, model = f"sqlite:///{tmp_path}/g.db", "anthropic:claude-opus-4-8"
    store = new_store(place)
    _, secret = store.add_key("Ann", budget_usd=Decimal(10) if has_budget else None)
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}}
    search = {"type": "web_search_20250305", "name": "web_search"}
    tools = [search, {**search, "max_uses": 2}, {"type": "web_fetch_20250910", "name": "web_fetch"}]
    body = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}], "tools": tools}
    with gateway(upstream, settings=settings, routes=[{"match": "*", "to": [model]}], auth="keys", store=place) as url:
        answer = httpx.post(f"{url}/v1/messages", json=body, headers={"x-api-key": secret})
    store.close()
    assert answer.status_code == 200, answer.text
    sent = upstream.requests[0][1]["tools"]
    assert [each.get("max_uses") for each in sent] == [5 if has_budget else None, 2, None]
    assert ("provider_options.tools" in answer.headers["x-interlingua-losses"]) == has_budget

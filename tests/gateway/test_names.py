"""The name of a model that a caller sends is data: it opens no other path, no other model and no header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua.errors import InterlinguaError
from interlingua.plugins import Registry
from interlingua_gateway import config_of
from interlingua_gateway.models import choose_models
from tests.gateway.conftest import Upstream, gateway, new_store
from tests.support.loopback import send_bytes

NAMES = [
    "gemini-2.5-flash/../models/gemini-2.5-pro", "gemini-2.5-flash/../../cachedContents?x=", "google:../../v1/files/x",
    "..", "a/..", "a//b", "gemini-2.5-flash%2f..%2fgemini-2.5-pro", "a?b", "a#b", "a\\..\\b", "a\r\nx-evil: 1",
    "a\nb", "a\x00b", "a\u202eb", "gemini\u20102.5-flash", "g\u0435mini-2.5-flash", "x" * 10_000, " ", "a b", "",
]  # fmt: skip
BODY: dict[str, Any] = {"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}


def _google(upstream: Upstream) -> dict[str, Any]:
    def answer(handler: Any, _body: Any) -> None:
        candidate = {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}
        send_bytes(handler, 200, "application/json", json.dumps({"candidates": [candidate]}).encode())

    upstream.answers = [answer]
    return {"settings": {"google": {"base_url": f"{upstream.url}/v1beta", "api_key": "k"}}, "routes": []}


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_of_no_model_is_refused_before_a_service_is_asked(upstream: Upstream, name: str) -> None:
    with gateway(upstream, **_google(upstream)) as url:
        own = name if name.startswith("google:") else f"google:{name}"
        answers = [httpx.post(f"{url}/v1/messages", json={**BODY, "model": asked}) for asked in (own, name)]
        open_requests = httpx.get(f"{url}/metrics").text
    assert [400 <= answer.status_code < 500 for answer in answers] == [True, True]
    assert all(answer.json()["error"]["message"] for answer in answers)
    assert upstream.requests == []
    assert 'open_requests{api="anthropic"} 0.0' in open_requests or "open_requests{" not in open_requests


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("gemini-2.5-flash*", ["gemini-2.5-flash", "google:gemini-2.5-flash", "models/gemini-2.5-flash"],
         ["gemini-2.5-pro", "gemini-2.5-flash-unknown", "google:gemini-2.5-pro", "openai:gemini-2.5-flash"]),
        ("google:*", ["gemini-2.5-pro"], ["openai:gpt-5", "google:no-such-model"]),
        ("fast", ["fast"], ["gemini-2.5-flash", "fast-1"]),
        ("any-*", ["any-thing"], ["gemini-2.5-flash"]),
        ("gemini-2.5-flash-unknown", ["gemini-2.5-flash-unknown"], ["gemini-2.5-flash"]),
    ],
)  # fmt: skip
def test_a_key_is_checked_by_the_model_that_answers(pattern: str, allowed: list[str], refused: list[str]) -> None:
    routes = [{"match": "fast", "to": ["google:gemini-2.5-flash"]}, {"match": "any-*", "to": ["openai:gpt-5"]}]
    config, registry = config_of({"routes": routes}), Registry()

    def is_allowed(name: str) -> bool:
        try:
            return choose_models(config, registry, name, "google").is_allowed([pattern])
        except InterlinguaError:
            return False

    assert {name: is_allowed(name) for name in [*allowed, *refused]} == {
        **dict.fromkeys(allowed, True), **dict.fromkeys(refused, False),
    }  # fmt: skip


def test_a_limited_key_reaches_its_models_only(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    _, secret = store.add_key("Ann", models=("gemini-2.5-flash*",))
    store.close()

    def ask(name: str) -> int:
        path = f"/v1beta/models/{name}:generateContent"
        body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        return httpx.post(url + path, json=body, headers={"x-goog-api-key": secret}).status_code

    with gateway(upstream, auth="keys", store=place, **_google(upstream)) as url:
        assert ask("gemini-2.5-flash") == 200
        assert ask("gemini-2.5-pro") == 403
        assert ask("gemini-2.5-flash%2F..%2Fmodels%2Fgemini-2.5-pro") in (400, 403, 404)
        assert ask("gemini-2.5-flash%2e%2e") in (400, 403, 404)
    assert [path for path, _ in upstream.requests] == ["/v1beta/models/gemini-2.5-flash:generateContent"]


def test_with_routes_only_no_other_name_is_served(upstream: Upstream) -> None:
    config = _google(upstream) | {"routes": [{"match": "fast", "to": ["google:gemini-2.5-flash"]}]}
    with gateway(upstream, routes_only=True, **config) as url:
        found = [
            httpx.post(f"{url}/v1/messages", json={**BODY, "model": name}).status_code
            for name in ("fast", "google:gemini-2.5-flash", "gemini-2.5-flash")
        ]
    assert found == [200, 404, 404]

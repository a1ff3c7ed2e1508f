"""Members of a request with which it would cost more, or use other models, than its model and its limit of tokens say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua_serving import ServedApi
from tests.gateway.apis import APIS, error_message
from tests.gateway.conftest import Upstream, gateway, new_store

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

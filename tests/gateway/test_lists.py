"""Requests that are not conversations: the list of models, and the number of tokens of a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
from google import genai

from interlingua_gateway.store import GatewayStore
from tests.gateway.conftest import Upstream, gateway

NAMED: Any = [{"match": name, "to": ["llamacpp:up-1"], "retries": 0} for name in ("one", "two")]
QUESTION: Any = [{"role": "user", "content": "Hi"}]


def test_every_sdk_lists_the_models_of_the_routes(upstream: Upstream) -> None:
    with (
        gateway(upstream, routes=NAMED) as url,
        anthropic.Anthropic(base_url=url, api_key="x") as messages,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x") as chat,
        genai.Client(api_key="x", http_options={"base_url": url}) as generate,
        ollama.Client(host=url) as own,
    ):
        assert [model.id for model in messages.models.list()] == ["one", "two"]
        assert [model.id for model in chat.models.list()] == ["one", "two"]
        assert [model.name for model in generate.models.list()] == ["models/one", "models/two"]
        assert [model.model for model in own.list().models] == ["one", "two"]


def test_without_named_routes_the_models_are_those_that_have_a_key(upstream: Upstream) -> None:
    with gateway(upstream, {"ANTHROPIC_API_KEY": "k"}) as url:  # its one route is a pattern
        names = [model["id"] for model in httpx.get(f"{url}/v1/models").json()["data"]]

    assert any(name.startswith("anthropic:") for name in names)
    assert not [name for name in names if name.startswith(("openai:", "azure:", "google:"))]


def test_lists_ask_for_a_key_too(upstream: Upstream, tmp_path: Path) -> None:
    store = GatewayStore(f"sqlite:///{tmp_path}/g.db")
    _, secret = store.add_key("tests")
    store.close()
    with gateway(upstream, routes=NAMED, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        for path in ("/v1/models", "/v1beta/models", "/api/tags"):
            assert httpx.get(url + path).status_code == 401
            assert httpx.get(url + path, headers={"authorization": f"Bearer {secret}"}).status_code == 200
        assert httpx.get(f"{url}/v1beta/models?key={secret}").status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/v1/messages/count_tokens", {"model": "m", "messages": QUESTION}, "input_tokens"),
        ("/v1/responses/input_tokens", {"model": "m", "input": "Hi"}, "input_tokens"),
        ("/v1beta/models/m:countTokens", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, "totalTokens"),
    ],
)
def test_tokens_are_counted_by_the_next_model_where_one_cannot(
    upstream: Upstream, path: str, body: dict[str, Any], name: str
) -> None:
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5", "llamacpp:up-1"], "retries": 0}]
    with gateway(upstream, routes=routes) as url:  # the first one has no key
        answer = httpx.post(url + path, json=body)

    assert answer.status_code == 200
    assert answer.json()[name] > 0
    assert answer.headers["x-interlingua-model"] == "llamacpp:up-1"

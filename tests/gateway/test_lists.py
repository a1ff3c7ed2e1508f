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

from tests.gateway.conftest import Upstream, gateway, new_store, say

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
    store = new_store(f"sqlite:///{tmp_path}/g.db")
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


def test_every_sdk_reads_one_model(upstream: Upstream) -> None:
    with (
        gateway(upstream, routes=NAMED) as url,
        anthropic.Anthropic(base_url=url, api_key="x") as messages,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x") as chat,
        genai.Client(api_key="x", http_options={"base_url": url}) as generate,
        ollama.Client(host=url) as own,
    ):
        assert messages.models.retrieve("one").id == "one"
        assert chat.models.retrieve("two").id == "two"
        assert generate.models.get(model="one").name == "models/one"
        shown = own.show("one")
        assert "completion" in (shown.capabilities or [])
        assert httpx.get(f"{url}/api/version").json()["version"].count(".") == 2
        assert httpx.get(f"{url}/v1beta/models/m:generateContent").status_code == 426
        for path in ("none:x", "claude-of-tomorrow", "a/../b", "a%0d%0ab"):
            assert httpx.get(f"{url}/v1/models/{path}").status_code in (400, 404), path
        with pytest.raises(anthropic.NotFoundError):
            messages.models.retrieve("claude-of-tomorrow")
        with pytest.raises(ollama.ResponseError):
            own.show("none:x")


def test_a_key_sees_only_models_that_it_may_use(upstream: Upstream, tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    _, secret = store.add_key("tests", models=("one",))
    store.close()
    with gateway(upstream, routes=NAMED, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        headers = {"authorization": f"Bearer {secret}"}
        assert httpx.get(f"{url}/v1/models/one").status_code == 401
        assert httpx.get(f"{url}/v1/models/one", headers=headers).status_code == 200
        assert httpx.get(f"{url}/v1/models/two", headers=headers).status_code == 404


def test_a_completion_is_answered_in_its_own_form(upstream: Upstream) -> None:
    with gateway(upstream, routes=NAMED) as url, ollama.Client(host=url) as own:
        upstream.answers = [say("Blue ", "sky.")]
        whole = own.generate("one", "Why?", system="Be brief.", options={"temperature": 0.5, "num_predict": 9})
        pieces = list(own.generate("one", "Why?", stream=True))
        lossy = httpx.post(f"{url}/api/generate", json={"model": "one", "prompt": "a", "suffix": "b", "stream": False})
        wrong = httpx.post(f"{url}/api/generate", json={"model": "one"})
    assert (whole.response, whole.done, whole.eval_count) == ("Blue sky.", True, 3)
    assert [piece.response for piece in pieces] == ["Blue ", "sky.", ""]
    assert pieces[-1].done_reason == "stop"
    body = upstream.requests[0][1]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["temperature"], body["max_tokens"]) == (0.5, 9)
    assert "suffix" in lossy.headers["x-interlingua-losses"]
    assert wrong.status_code == 400
    assert "message" not in lossy.json()

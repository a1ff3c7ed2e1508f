"""Requests that no model can answer are refused in the caller's API: models without a key, state kept elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from interlingua_cli.context import CommandContext
from interlingua_cli.root import cli
from interlingua_gateway import config_of, create_app
from tests.gateway.apis import APIS, Api, error_message
from tests.gateway.conftest import Upstream, gateway, new_store, say, serving
from tests.support.loopback import send_bytes

each_api = pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
CLAUDE: Any = [{"match": "*", "to": ["anthropic:claude-opus-4-5"], "retries": 0}]


@each_api
def test_a_model_without_a_key_says_which_variable_to_set(api: Api) -> None:
    with serving(create_app(config_of({"routes": CLAUDE}), environ={})) as url:
        answer = httpx.post(url + api.path, json=dict(api.body))

    assert answer.status_code == 503
    assert answer.headers["x-should-retry"] == "false"
    assert answer.json()["error"].get("code", 503) in (503, None, "unavailable") if api.name != "ollama" else True
    assert error_message(api, answer.json()) == (
        "the gateway has no key for anthropic: set ANTHROPIC_API_KEY in the gateway's environment"
    )


def test_tenants_are_told_no_names_of_variables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    _, secret = store.add_key("tests")
    store.close()
    config = {"routes": CLAUDE, "auth": "keys", "store": f"sqlite:///{tmp_path}/g.db"}
    with serving(create_app(config_of(config), environ={})) as url:
        answer = httpx.post(url + APIS[0].path, json=dict(APIS[0].body), headers={"x-api-key": secret})

    assert answer.json()["error"]["message"] == "the gateway has no key for anthropic"


def test_the_next_model_answers_where_one_has_no_key(upstream: Upstream) -> None:
    routes = [{"match": "*", "to": ["anthropic:claude-opus-4-5", "llamacpp:up-1"], "retries": 0}]
    with gateway(upstream, routes=routes) as url:
        answer = httpx.post(url + APIS[0].path, json=dict(APIS[0].body))

    assert answer.headers["x-interlingua-model"] == "llamacpp:up-1"


def test_a_count_of_tokens_says_it_too() -> None:
    with serving(create_app(config_of({"routes": CLAUDE}), environ={})) as url:
        body = {name: value for name, value in APIS[0].body.items() if name not in ("stream", "max_tokens")}
        answer = httpx.post(f"{url}/v1/messages/count_tokens", json=body)

    assert answer.status_code == 503
    assert "no key for anthropic" in answer.json()["error"]["message"]


def test_a_start_warns_of_models_that_will_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gateway.toml"
    to = ["anthropic:a", "llamacpp:b", "openai:d", "{model}"]
    file.write_text(f'store = "sqlite:///{tmp_path}/g.db"\n[[routes]]\nmatch = "*"\nto = {json.dumps(to)}')
    monkeypatch.setattr(
        "interlingua_gateway.server.serve",
        lambda app, *_arguments, **_options: asyncio.run(app.state.services.close()),
    )
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-ours")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    result = CliRunner().invoke(cli, ["gateway", "--port", "0", "--config", str(file)], obj=CommandContext())

    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "no key for anthropic: its models will not answer until ANTHROPIC_API_KEY is set" in warnings[0]
    assert "a-key-of-ours" not in result.output


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("see https://docs.example.com/errors for help", "see https://docs.example.com/errors for help"),
        ("upstream http://10.0.0.3:8000/v1 failed", "upstream (address) failed"),
        ("connect to 10.0.0.3:8000 failed", "connect to (address) failed"),
        ("no route to model-7.svc.cluster.local:80", "no route to (address)"),
        ("[fd00::1]:443 refused", "(address) refused"),
        ("localhost:11434 is away", "(address) is away"),
        ("no answer of fe80::1, 2001:db8::7 and ::ffff:10.0.0.3", "no answer of (address), (address) and (address)"),
        ("at 12:30:45, std::vector: x::y :: c", "at 12:30:45, std::vector: x::y :: c"),
        ("version 1.2.3 of gpt-5.1 costs 1.25 USD", "version 1.2.3 of gpt-5.1 costs 1.25 USD"),
    ],
)
def test_errors_of_a_service_show_no_address(
    upstream: Upstream, said: str, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(handler: Any, _body: Any) -> None:
        text = f"{said}; base {upstream.url}/v1"
        send_bytes(handler, 400, "application/json", json.dumps({"error": {"message": text}}).encode())

    caplog.set_level(logging.INFO, "interlingua")
    upstream.answers = [answer]
    with gateway(upstream) as url:
        found = httpx.post(f"{url}/v1/messages", json={**APIS[0].body, "stream": False}).json()["error"]["message"]
    assert f"{shown}; base (address)" in found
    assert "127.0.0.1" not in found
    assert upstream.url in caplog.text  # for the operator


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_service_that_is_away_is_not_named(stream: bool, upstream: Upstream) -> None:
    settings = {"llamacpp": {"base_url": "http://127.0.0.1:9/v1"}}
    with gateway(upstream, settings=settings) as url:
        answer = httpx.post(f"{url}/v1/messages", json={**APIS[0].body, "stream": stream})
    assert "127.0.0.1" not in answer.text
    assert "(address)" in answer.text


RESPONSES = {"model": "m", "input": "Hi"}
GENERATE = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("target", ["llamacpp:up-1", "anthropic:claude-haiku-4-5"])
@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}], ids=["create", "continue"]
)
def test_a_thread_of_messages_is_refused_so_that_callers_send_all(
    upstream: Upstream, thread: dict[str, Any], target: str, stream: bool
) -> None:
    """Claude Code sends the whole conversation after this code of the Messages API."""
    routes = [{"match": "*", "to": [target], "retries": 0}]
    settings = {"anthropic": {"base_url": upstream.url, "api_key": "k"}, "llamacpp": {"base_url": f"{upstream.url}/v1"}}
    with gateway(upstream, routes=routes, settings=settings) as url:
        body = {**APIS[0].body, "stream": stream, "thread": thread}
        answer = httpx.post(f"{url}/v1/messages", json=body, headers={"anthropic-version": "2023-06-01"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.json()["error"]["details"] == {"error_code": "thread_unsupported_request"}
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/v1/responses", {**RESPONSES, "previous_response_id": "resp_1"}, "previous_response_id"),
        ("/v1/responses", {**RESPONSES, "conversation": {"id": "conv_1"}}, "conversation"),
        ("/v1/responses", {**RESPONSES, "prompt": {"id": "pmpt_1"}}, "prompt"),
        ("/v1/responses", {**RESPONSES, "input": [{"type": "item_reference", "id": "msg_1"}]}, "item_reference"),
        ("/v1beta/interactions", {"model": "m", "input": "x", "previous_interaction_id": "v1_1"}, "previous_inter"),
        ("/v1beta/models/m:generateContent", {**GENERATE, "cachedContent": "cachedContents/1"}, "cachedContent"),
        ("/v1/messages", {**APIS[0].body, "stream": False, "container": "container_1"}, "container"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_only_the_apis_own_service_keeps_is_refused(
    upstream: Upstream, path: str, body: dict[str, Any], name: str, stream: bool
) -> None:
    if stream:
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
        body = body if "alt=sse" in path else {**body, "stream": True}
    with gateway(upstream) as url:
        answer = httpx.post(url + path, json=body)

    assert answer.status_code == 400
    assert name in answer.json()["error"]["message"]
    assert upstream.requests == []


def test_the_apis_own_service_gets_it(upstream: Upstream) -> None:
    upstream.answers = [say("no answer of this API")]
    settings = {"openai": {"base_url": f"{upstream.url}/v1", "api_key": "k"}}
    routes = [{"match": "*", "to": ["openai:gpt-5-mini"], "retries": 0}]
    body = {"model": "gpt-5-mini", "previous_response_id": "resp_1", "input": [{"type": "item_reference", "id": "m_1"}]}
    with gateway(upstream, settings=settings, routes=routes) as url:
        httpx.post(f"{url}/v1/responses", json=body)

    [(path, sent)] = upstream.requests
    assert path == "/v1/responses"
    assert sent["previous_response_id"] == "resp_1"
    assert sent["input"] == [{"type": "item_reference", "id": "m_1"}]


@each_api
def test_nothing_of_the_databases_library_is_in_an_error(api: Api, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/g.db"
    store = new_store(url)
    _, secret = store.add_key("tests", budget_usd=1)
    store.close()
    engine = sa.create_engine(url)
    app = create_app(config_of({"routes": CLAUDE, "auth": "keys", "store": url}), environ={})
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE gateway_used"))
    engine.dispose()
    with serving(app) as served:
        answer = httpx.post(served + api.path, json=dict(api.body), headers={"authorization": f"Bearer {secret}"})

    assert answer.status_code in (503, 529)
    assert error_message(api, answer.json()) == "the gateway's database does not respond; try again later"


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
NEW_PICTURE = {"model": "any", "messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}, PICTURE]}]}


def _look(upstream: Upstream, to: list[str], **setting: object) -> httpx.Response:
    settings = {key: {"base_url": upstream.url, "api_key": "k"} for key in ("anthropic", "groq")}
    routes: Any = [{"match": "*", "to": to, "retries": 0, **setting}]
    with gateway(upstream, settings=settings, routes=routes) as url:
        return httpx.post(f"{url}/v1/chat/completions", json=NEW_PICTURE)


def test_a_new_picture_that_the_model_cannot_take_is_refused_without_names_of_other_models(upstream: Upstream) -> None:
    answer = _look(upstream, ["groq:llama-3.1-8b-instant"])

    assert (answer.status_code, upstream.requests) == (400, [])
    assert "cannot read the image (image/png) in block 1 of message 0" in answer.text
    assert "models that can" not in answer.text


def test_the_next_model_of_the_route_gets_it(upstream: Upstream) -> None:
    _look(upstream, ["groq:llama-3.1-8b-instant", "anthropic:claude-haiku-4-5"])

    [(path, body)] = upstream.requests
    assert path == "/v1/messages"
    assert "iVBORw0KGgo=" in str(body)


def test_a_route_may_allow_the_loss(upstream: Upstream) -> None:
    answer = _look(upstream, ["groq:llama-3.1-8b-instant"], allow_loss=True)

    assert answer.status_code == 200
    assert "[image not sent: this target takes no image]" in str(upstream.requests)

"""Presets of users over Responses, Messages and generateContent: identity, address, catalogue, facts, and errors."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import PluginError
from interlingua.plugins import ConnectionSettings, Registry
from tests.support.fake_provider import Got, Reply, served

MODEL = {
    "id": "acme-1",
    "max_context_tokens": 1000,
    "prices": [{"from": None, "input_per_mtok_usd": "2", "output_per_mtok_usd": "4"}],
}
BASE: dict[str, Any] = {"key_env": ["ACME_KEY"], "drops": ["user_id", "stop"], "models": [MODEL]}
RESPONSE = {
    "id": "resp_1", "object": "response", "status": "completed", "model": "acme-1",
    "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}],
    "usage": {"input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500},
}  # fmt: skip
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "acme-1", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1000, "output_tokens": 500},
}  # fmt: skip
GENERATED = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 500, "totalTokenCount": 1500},
}
# format, the path below the address, the header of the key, an answer in the format
FORMATS = [
    ("openai", "/responses", ("authorization", "Bearer k"), RESPONSE),
    ("anthropic", "/v1/messages", ("x-api-key", "k"), MESSAGE),
    ("google", "/models/acme-1:generateContent", ("x-goog-api-key", "k"), GENERATED),
]


@pytest.mark.parametrize(("name", "path", "key", "answer"), FORMATS)
def test_a_service_answers_under_its_own_key(
    name: str, path: str, key: tuple[str, str], answer: dict[str, Any]
) -> None:
    got: list[Got] = []

    def choose(request: Got) -> Reply:
        got.append(request)
        return Reply(body=(json.dumps(answer).encode(),))

    with served(choose=choose) as server:
        registry = Registry(presets={"acme": {**BASE, "format": name, "base_url": server.url}})
        with il.Client("acme:acme-1", registry=registry, environ={"ACME_KEY": "k"}) as client:
            message = client.send("x", user_id="u", stop=["."])

    (request,) = got
    assert (request.path, request.headers[key[0]]) == (path, key[1])
    assert (message.text, message.metadata.model) == ("Hi", "acme:acme-1")
    assert message.usage.cost_usd == Decimal("0.004")  # 1000 at 2 and 500 at 4 dollars a million
    assert {row.path for row in message.metadata.losses} == {"options.user_id", "options.stop"}
    assert b'"u"' not in request.body


@pytest.mark.parametrize("name", [name for name, *_ in FORMATS])
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("base_url", None, "base_url is missing"),
        ("base_url", "acme.example", "must start with http"),
        ("colour", "red", "colour is not a field of a preset"),
        ("key_env", 7, "key_env must be a list of strings"),
        ("capabilities", {"supports_smell": True}, "capabilities.supports_smell is not a field"),
        ("models", "x.json", "models must be a list"),
        ("self_hosted", 1, "self_hosted must be a bool"),
    ],
)
def test_an_error_names_the_preset_and_the_field(name: str, field: str, value: Any, said: str) -> None:
    table = {**BASE, "format": name, "base_url": "https://acme.example", field: value}
    if value is None:
        del table[field]
    with pytest.raises(PluginError, match=f"preset 'acme': .*{said}"):
        Registry(presets={"acme": table}).provider("acme")


def test_capabilities_and_facts_are_those_of_the_preset() -> None:
    facts = {"thinking": ["enabled", "disabled"], "thinking_omitted": "on", "effort_beside_budget": True}
    messages = {**BASE, "format": "anthropic", "base_url": "https://m.example", "facts": facts, "bearer": True}
    efforts = {"efforts": ["low", "high"], "sampling": True}
    responses = {**BASE, "format": "openai", "base_url": "https://r.example", "facts": efforts}
    registry = Registry(presets={"m": messages | {"capabilities": {"supports_images": False}}, "r": responses})

    assert not registry.provider("m").capabilities("acme-1").supports_images
    assert registry.provider("m").capabilities("acme-1").max_context_tokens == 1000
    connection = registry.provider("m").connection(ConnectionSettings(api_key="k"))
    wrote = il.Client("m:acme-1", registry=registry, api_key="k").build_request("x", thinking=True, effort="low")
    assert connection.auth(wrote) == {"authorization": "Bearer k"}
    body = json.loads(wrote.body)
    assert (body["thinking"]["type"], body["output_config"]) == ("enabled", {"effort": "low"})
    body = json.loads(
        il.Client("r:acme-1", registry=registry, api_key="k").build_request("x", effort="max", temperature=0.5).body
    )
    assert (body["reasoning"], body["temperature"]) == ({"effort": "high"}, 0.5)


def test_what_a_model_of_google_takes_has_no_facts() -> None:
    table = {"format": "google", "base_url": "https://g.example", "facts": {"thinking": "levels"}}
    with pytest.raises(PluginError, match="facts has no meaning"):
        Registry(presets={"g": table}).provider("g")

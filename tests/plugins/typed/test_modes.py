"""Which mode each service is asked in for a typed answer, and that the request is one it takes."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from interlingua import Client, Registry
from interlingua.plugins import WireRequest
from interlingua_cli.lint import lint_request
from interlingua_output import Output
from tests.oracle.test_request_bodies import REGISTRY, sdk_errors
from tests.plugins.typed.kinds import KINDS, City, Tree, Wide
from tests.support.adapter import READ
from tests.support.counts import FULL
from tests.support.quiet import quiet_ledger

# model -> mode alone, beside tools, streamed, while thinking (WIRE.md of each, its part on schemas)
MODES = {
    "anthropic:claude-haiku-4-5": ("native", "native", "native", "native"),
    "anthropic:claude-opus-4-1": ("tool", "tool", "tool", "tool"),
    "azure:gpt-5": ("native", "native", "native", "native"),
    "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0": ("native", "native", "native", "native"),
    "bedrock:amazon.nova-lite-v1:0": ("tool", "tool", "tool", "tool"),
    "cerebras:gpt-oss-120b": ("native", "tool", "tool", "native"),
    "cohere:command-a-03-2025": ("native", "tool", "native", "native"),
    "compatible:any": ("native", "tool", "native", "native"),
    "deepseek:deepseek-chat": ("tool", "tool", "tool", "tool"),
    "deepseek-messages:deepseek-v4-pro": ("tool", "tool", "tool", "tool"),
    "fireworks:any": ("native", "tool", "native", "native"),
    "google:gemini-2.5-flash": ("native", "tool", "native", "native"),
    "google:gemini-3-pro-preview": ("native", "native", "native", "native"),
    "groq:openai/gpt-oss-120b": ("native", "tool", "tool", "native"),
    "llamacpp:any": ("native", "tool", "native", "native"),
    "lmstudio:any": ("native", "tool", "native", "native"),
    "mistral:mistral-large-latest": ("native", "tool", "native", "native"),
    "moonshot:kimi-k2.6": ("tool", "tool", "tool", "tool"),
    "ollama:any": ("native", "tool", "native", "native"),
    "openai:gpt-5-mini": ("native", "native", "native", "native"),
    "openrouter:openai/gpt-5.2": ("native", "native", "native", "native"),
    "openrouter:deepseek/deepseek-v3.2": ("native", "tool", "native", "native"),
    "together:any": ("tool", "tool", "tool", "tool"),
    "vertex:gemini-2.5-flash": ("native", "tool", "native", "native"),
    "vllm:any": ("native", "tool", "native", "native"),
    "xai:grok-4": ("native", "native", "native", "native"),
    "xai:grok-3-mini": ("native", "tool", "native", "native"),
    "xai-responses:grok-4.5": ("native", "native", "native", "native"),
    "openrouter-responses:openai/gpt-5.2": ("native", "native", "native", "native"),
    "mistral-responses:mistral-large-latest": ("native", "native", "native", "native"),
    "groq-responses:openai/gpt-oss-120b": ("native", "tool", "tool", "native"),
    "baseten:zai-org/GLM-5.3": ("native", "tool", "native", "native"),
    "huggingface:openai/gpt-oss-120b": ("native", "tool", "native", "native"),
    "meta:muse-spark-1.3": ("native", "tool", "native", "native"),
    "nebius:Qwen/Qwen3-235B-A22B-Instruct-2507": ("tool", "tool", "tool", "tool"),
    "novita:zai-org/glm-5.3": ("native", "tool", "native", "native"),
    "nvidia:nvidia/nemotron-3-super-120b-a12b": ("native", "tool", "native", "native"),
    "perplexity:sonar-pro": ("native", "tool", "native", "native"),
    "qwen:qwen3.8-max": ("tool", "tool", "tool", "tool"),
    "sambanova:gpt-oss-120b": ("native", "tool", "native", "native"),
    "minimax-messages:MiniMax-M2.7": ("tool", "tool", "tool", "tool"),
    "zai:glm-5": ("tool", "tool", "tool", "tool"),
}
ASKED = ("auto", "tool", "prompt")
WAYS: tuple[dict[str, Any], ...] = ({}, {"tools": [READ]}, {"stream": True}, {"thinking": True})


def test_every_service_has_a_row() -> None:
    assert {provider.key for provider in REGISTRY.providers()} <= {model.partition(":")[0] for model in MODES}


@pytest.mark.parametrize("model", MODES)
def test_the_mode_is_the_first_that_the_service_takes(model: str) -> None:
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        assert tuple(client.plan_output(City, **way).mode for way in WAYS) == MODES[model]


@pytest.mark.parametrize(
    ("model", "mode"),
    [(model, ASKED[at % 3]) for at, model in enumerate(MODES)] if not FULL else list(product(MODES, ASKED)),
)
def test_every_request_is_one_that_the_sdk_and_the_linter_take(model: str, mode: Any) -> None:
    key = model.partition(":")[0]
    wrong: list[Any] = []

    def errors(request: WireRequest) -> set[str]:
        # Ollama's SDK describes one level of a schema; the service hands deeper ones to the model's template
        types = (one for one in sdk_errors(key, api, request) if not one.endswith("unknown to Property"))
        return {*types, *(one.rule for one in lint_request(provider, request))}

    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        provider = client.registry.provider(key)
        api = provider.capabilities(model.partition(":")[2]).api
        for way in (*WAYS, {"tools": [READ], "stream": True, "thinking": True}):
            without = errors(client.build_request("go", **way))
            for kind in KINDS:
                found = errors(client.build_request("go", output=Output(kind, mode=mode), **way))
                wrong += [(kind, way, one) for one in found - without]
    assert not wrong


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "groq:openai/gpt-oss-120b", "mistral:mistral-large-latest"])
def test_schemas_of_answers_are_strict_where_strict_is_what_is_kept(model: str) -> None:
    with quiet_ledger(), Client(model, registry=Registry(), environ={}) as client:
        for kind in KINDS:
            if client.plan_output(kind).mode == "native":
                body = json.loads(client.build_request("go", output=kind).body)
                form = body["text"]["format"] if "text" in body else body["response_format"]["json_schema"]
                assert form["strict"], kind


# key -> what stands in the body of a request that asks in words, from the WIRE.md of each; None: there is no JSON mode
_CHAT_JSON = {"response_format": {"type": "json_object"}}
_RESPONSES_JSON = {"text": {"format": {"type": "json_object"}}}
_GEMINI_JSON = {"generationConfig": {"responseMimeType": "application/json"}}
JSON_MODES: dict[str, dict[str, Any] | None] = {
    "anthropic": None, "azure": _RESPONSES_JSON, "bedrock": None, "cerebras": _CHAT_JSON, "cohere": _CHAT_JSON,
    "compatible": None, "deepseek": _CHAT_JSON,
    "deepseek-messages": None, "fireworks": _CHAT_JSON, "google": _GEMINI_JSON, "groq": _CHAT_JSON,
    "llamacpp": _CHAT_JSON, "lmstudio": None, "mistral": _CHAT_JSON, "moonshot": _CHAT_JSON,
    "ollama": {"format": "json"}, "openai": _RESPONSES_JSON, "openrouter": _CHAT_JSON, "together": None,
    "vertex": _GEMINI_JSON, "vllm": _CHAT_JSON, "xai": _CHAT_JSON,
    **dict.fromkeys(("xai-responses", "openrouter-responses", "mistral-responses", "groq-responses"), _RESPONSES_JSON),
    "zai": _CHAT_JSON, "minimax-messages": None, "perplexity": None,
    **dict.fromkeys(("nvidia", "huggingface", "qwen", "meta", "baseten", "sambanova", "nebius", "novita"), _CHAT_JSON),
}  # fmt: skip
_FORMS = ("response_format", "text", "format", "generationConfig", "output_config", "outputConfig")


@pytest.mark.parametrize("model", MODES)
def test_words_switch_on_the_json_mode_where_the_service_has_one(model: str) -> None:
    expected = JSON_MODES[model.partition(":")[0]]
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        wire = client.build_request("Which?", output=Output(City, mode="prompt"))
        body = json.loads(wire.body)
        assert {name: body[name] for name in _FORMS if name in body} == (expected or {})
        assert b"json" in wire.body.lower().replace(json.dumps(expected).encode().lower(), b"")
        rows = [loss for loss in wire.losses if "JSON mode" in loss.reason]
        assert bool(rows) == (expected is not None)
        beside = json.loads(client.build_request("Which?", output=Output(City, mode="prompt"), tools=[READ]).body)
        can = client.plan_output(City, tools=[READ]).mode == "native"
        assert (any(name in beside for name in _FORMS)) == (can and expected is not None)


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", "azure:gpt-5"])
def test_chat_completions_has_a_json_mode_where_responses_has_none_to_rely_on(model: str) -> None:
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        body = json.loads(client.build_request("Which?", output=Output(City, mode="prompt"), api="chat").body)
    assert body["response_format"] == {"type": "json_object"}


def test_what_the_caller_writes_in_the_services_words_stays_beside_the_json_mode() -> None:
    given = {"generationConfig": {"responseMimeType": "text/plain", "candidateCount": 1}, "labels": {"a": "b"}}
    with quiet_ledger(), Client("google:gemini-3-flash-preview", registry=REGISTRY, environ={}) as client:
        body = json.loads(
            client.build_request("Which?", output=Output(City, mode="prompt"), provider_options=given).body
        )
    assert (body["generationConfig"], body["labels"]) == (given["generationConfig"], given["labels"])


def test_a_schema_goes_to_upstreams_of_a_router_that_keep_to_it() -> None:
    with quiet_ledger(), Client("openrouter:openai/gpt-5.2", registry=REGISTRY, environ={}) as client:
        schema = {"type": "object", "properties": {}}
        asked = [
            client.build_request("Which?", **way)
            for way in (
                {"output": City}, {"response_schema": schema}, {},
                {"output": City, "provider_options": {"provider": {"sort": "price", "require_parameters": False}}},
            )
        ]  # fmt: skip
    preferences = [json.loads(one.body).get("provider") for one in asked]
    demanded = {"require_parameters": True}
    assert preferences == [demanded, demanded, None, {"sort": "price", "require_parameters": False}]


@pytest.mark.parametrize("model", MODES)
def test_no_tool_is_strict_unasked(model: str) -> None:
    """One strict tool beside adaptive thinking hung for 180 s and failed (anthropics/anthropic-sdk-typescript#885)."""
    with quiet_ledger(), Client(model, registry=REGISTRY, environ={}) as client:
        body = client.build_request("go", output=Output(City, mode="tool"), tools=[READ], thinking=True).body
    assert b'"strict":true' not in body


def test_a_service_that_hides_the_schema_from_the_model_has_it_in_words_too() -> None:
    """A schema was enforced and never shown (ollama/ollama#8162)."""
    shown = set()
    with quiet_ledger():
        for model in MODES:
            with Client(model, registry=REGISTRY, environ={}) as client:
                plan = client.plan_output(City)
                can = client.registry.provider(model.partition(":")[0]).capabilities(model.partition(":")[2])
                if plan.mode == "native":
                    body = client.build_request("go", output=City).body
                    in_words = b"follows this JSON Schema" in body
                    assert in_words != can.structured_in_prompt, model
                    shown.add(in_words)
    assert shown == {True, False}


def test_limits_of_a_service_are_counted_before_anything_is_sent() -> None:
    with quiet_ledger(), Client("anthropic:claude-haiku-4-5", registry=REGISTRY, environ={}) as client:
        wide, tree = client.plan_output(Wide), client.plan_output(Tree)
    assert (wide.mode, tree.mode) == ("tool", "tool")
    assert "25 optional, and this service takes 24" in wide.losses[0].reason
    assert "refers to itself" in tree.losses[0].reason

"""A request for some JSON object, read in one API, asks for one in every other API that has a JSON mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import Registry, WireRequest, build_request
from interlingua_serving import ServeContext, find_serving_plugin

REGISTRY = Registry()
SAID = "Write json."
# API -> path, and a body with that API's JSON mode, as its SDK's types have it
CALLERS: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("openai", "chat"): (
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": SAID}], "response_format": {"type": "json_object"}},
    ),
    ("openai", "responses"): (
        "/v1/responses",
        {"model": "m", "input": SAID, "text": {"format": {"type": "json_object"}}},
    ),
    ("google", "generate"): (
        "/v1beta/models/m:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": SAID}]}],
            "generationConfig": {"responseMimeType": "application/json", "temperature": 0.5},
        },
    ),
    ("ollama", "chat-native"): (
        "/api/chat",
        {"model": "m", "messages": [{"role": "user", "content": SAID}], "format": "json", "stream": False},
    ),
}
TARGETS = {
    "openai:gpt-5-mini": '"text":{"format":{"type":"json_object"}}',
    "google:gemini-2.5-flash": '"responseMimeType":"application/json"',
    "ollama:qwen3": '"format":"json"',
    "mistral:mistral-large-latest": '"response_format":{"type":"json_object"}',
    "zai:glm-5": '"response_format":{"type":"json_object"}',
    "cohere:command-a-03-2025": '"response_format":{"type":"json_object"}',
    "openrouter:deepseek/deepseek-v3": '"response_format":{"type":"json_object"}',
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("caller", CALLERS, ids="-".join)
def test_json_mode_crosses(caller: tuple[str, str], target: str) -> None:
    path, body = CALLERS[caller]
    key, api = caller
    request = WireRequest(path=path, body=json.dumps(body).encode(), api=api)
    read = find_serving_plugin(REGISTRY, key).from_wire_request(request, ServeContext(provider=key, api=api))
    provider = REGISTRY.provider(target.partition(":")[0])
    can = provider.capabilities(target.partition(":")[2])
    messages, options, losses = read.for_upstream(provider.key, can.api, target.partition(":")[2], can.json_mode)
    written = build_request(provider, messages, (), options).body.decode()

    assert TARGETS[target] in written
    assert [loss.path for loss in losses if loss.path.startswith("provider_options.")] == []


def test_a_target_without_one_is_told_in_the_ledger() -> None:
    path, body = CALLERS["openai", "chat"]
    request = WireRequest(path=path, body=json.dumps(body).encode(), api="chat")
    context = ServeContext(provider="openai", api="chat")
    read = find_serving_plugin(REGISTRY, "openai").from_wire_request(request, context)
    can = REGISTRY.provider("anthropic").capabilities("claude-sonnet-5")
    _, options, losses = read.for_upstream("anthropic", can.api, "claude-sonnet-5", can.json_mode)

    assert not options.provider_options
    assert [loss.path for loss in losses] == ["options.provider_options.response_format"]

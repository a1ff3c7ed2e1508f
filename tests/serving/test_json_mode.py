"""A request for some JSON object, read in one API, asks for one in every other API that has a JSON mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import Loss, Registry, WireRequest, build_request
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
    messages, options, losses = read.for_upstream(provider.key, can.api, target.partition(":")[2], can)
    written = build_request(provider, messages, (), options).body.decode()

    assert TARGETS[target] in written
    assert [loss.path for loss in losses if loss.path.startswith("provider_options.")] == []


@pytest.mark.parametrize("target", ["openai:gpt-5-mini", "mistral:mistral-large-latest"])
def test_a_prompt_that_does_not_name_json_names_it_once_it_crosses(target: str) -> None:
    """Services refuse a JSON mode without that word: plugins/openai/WIRE.md and chat-completions/WIRE.md."""
    key, _, model = target.partition(":")
    provider = REGISTRY.provider(key)
    turns = [("user", "Where is Oslo?"), ("model", "North."), ("user", "How warm?")]
    for said, added in (("Where is Oslo?", 1), ("Where is Oslo? As JSON.", 0)):
        contents = [{"role": role, "parts": [{"text": text}]} for role, text in [("user", said), *turns[1:]]]
        body = {
            "contents": contents,
            "systemInstruction": {"parts": [{"text": "You write JSON."}]},
            "generationConfig": {"responseMimeType": "application/json"},
        }
        request = WireRequest(path="/v1beta/models/m:generateContent", body=json.dumps(body).encode(), api="generate")
        context = ServeContext(provider="google", api="generate")
        read = find_serving_plugin(REGISTRY, "google").from_wire_request(request, context)
        can = provider.capabilities(model)
        messages, options, losses = read.for_upstream(key, can.api, model, can)
        written = json.loads(build_request(provider, messages, (), options).body)
        first = next(item for item in written.get("input") or written["messages"] if item["role"] == "user")
        assert "json" in json.dumps(first).lower()
        assert json.dumps(written).count("Answer with one JSON object") == added
        assert len([row for row in losses if row.verdict == "rewritten"]) == added


WORDS = "Answer with one JSON object"
_SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
_SHAPE = {"type": "json_schema", "json_schema": {"name": "place", "schema": _SCHEMA}}
_TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def _from_chat(target: str, **more: Any) -> tuple[Any, list[Loss]]:
    """Return the body for a target of a request of Chat Completions, and the losses before it was written."""
    body = {**CALLERS["openai", "chat"][1], **more}
    request = WireRequest(path="/v1/chat/completions", body=json.dumps(body).encode(), api="chat")
    context = ServeContext(provider="openai", api="chat")
    read = find_serving_plugin(REGISTRY, "openai").from_wire_request(request, context)
    key, _, model = target.partition(":")
    provider = REGISTRY.provider(key)
    can = provider.capabilities(model)
    messages, options, losses = read.for_upstream(key, can.api, model, can)
    return json.loads(build_request(provider, messages, read.tools, options).body), list(losses)


@pytest.mark.parametrize("target", ["anthropic:claude-sonnet-5", "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0"])
def test_a_target_without_a_json_mode_is_asked_in_words(target: str) -> None:
    system = {"role": "system", "content": "You are brief."}
    for before in ([], [system]):
        body, losses = _from_chat(target, messages=[*before, {"role": "user", "content": SAID}])
        texts = [part["text"] for part in body["system"]] if isinstance(body["system"], list) else [body["system"]]
        assert WORDS in texts[-1]
        assert (len(before) == 1) == ("You are brief." in texts[0])
        assert "response_format" not in body
        assert [(row.path, row.verdict) for row in losses] == [
            ("options.provider_options.response_format", "rewritten")
        ]


@pytest.mark.parametrize(
    ("target", "place"),
    [("google:gemini-2.5-flash", "generationConfig"), ("ollama:qwen3", "format"), ("cohere:command-a-03-2025", None)],
)
@pytest.mark.parametrize("shape", [{"type": "json_object"}, _SHAPE], ids=["mode", "schema"])
def test_a_model_that_takes_no_shape_beside_tools_is_asked_in_words(
    target: str, place: str | None, shape: dict[str, Any]
) -> None:
    body, losses = _from_chat(target, tools=[_TOOL], response_format=shape)
    assert WORDS in json.dumps(body)
    assert ('\\"place\\"' in json.dumps(body)) == (shape is _SHAPE)
    assert not any("json" in str(value) or "place" in str(value) for value in [body.get(place or "response_format")])
    assert [row.verdict for row in losses] == ["rewritten"]

    body, losses = _from_chat(target, response_format=shape)
    assert WORDS not in json.dumps(body)
    assert not losses


def test_a_model_with_a_json_mode_and_no_schemas_gets_both_the_mode_and_words() -> None:
    for target in ("deepseek:deepseek-chat", "zai:glm-5"):
        body, losses = _from_chat(target, response_format=_SHAPE)
        assert body["response_format"] == {"type": "json_object"}
        assert WORDS in json.dumps(body["messages"])
        assert [(row.path, row.verdict) for row in losses] == [("options.response_schema", "rewritten")]


def test_a_stream_of_a_model_that_streams_no_json_is_asked_in_words() -> None:
    body, losses = _from_chat("groq:llama-3.3-70b-versatile", response_format=_SHAPE, stream=True)
    assert "response_format" not in body
    assert WORDS in json.dumps(body["messages"])
    assert [row.verdict for row in losses] == ["rewritten"]


def test_the_requested_model_of_the_own_service_gets_its_request_unchanged() -> None:
    key, model = "mistral", "mistral-large-latest"
    body = {**CALLERS["openai", "chat"][1], "model": model, "response_format": _SHAPE, "tools": [_TOOL]}
    request = WireRequest(path="/v1/chat/completions", body=json.dumps(body).encode(), api="chat")
    context = ServeContext(provider=key, api="chat")
    read = find_serving_plugin(REGISTRY, "openai").from_wire_request(request, context)
    _, options, losses = read.for_upstream(key, "chat", model, REGISTRY.provider(key).capabilities(model))
    assert options.provider_options["response_format"] == _SHAPE
    assert not losses

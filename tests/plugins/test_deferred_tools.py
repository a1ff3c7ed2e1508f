"""Tools that a service finds by searching: deferred where a search is asked for, whole at every other service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import ToolUnionParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from interlingua.plugins import Registry, RequestContext, WireRequest, WireResponse, build_request
from interlingua.types import CacheHint, Message, Origin, RequestOptions, ToolDefinition, WireTool, change, user
from interlingua_cli.lint import lint_request
from interlingua_serving import ServeContext, find_serving_plugin

REGISTRY = Registry()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
MODELS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "messages": ("anthropic", "claude-opus-5-5", REGEX),
    "responses": ("openai", "gpt-5.4", {"type": "tool_search"}),
    "interactions": ("google", "gemini-3.8-flash", {"type": "tool_search", "execution": "server"}),
}
WEATHER = ToolDefinition(
    name="get_weather", description="Weather", input_schema=SCHEMA, side_effects="read", deferred=True
)
PLAIN = attrs.evolve(WEATHER, name="plain", deferred=False)
ASKED = [user("Is it raining in Oslo?")]


def _written(api: str, tools: list[ToolDefinition], *, search: bool, model: str = "") -> tuple[list[Any], list[Any]]:
    """Return the tools of a request and the rows about them."""
    key, usual, own = MODELS[api]
    options = RequestOptions(
        model=model or usual, api=api, max_tokens=64, provider_options={"tools": [own]} if search else {}
    )
    request = build_request(REGISTRY.provider(key), ASKED, tools, options)
    assert lint_request(REGISTRY.provider(key), request) == ()
    found: list[Any] = json.loads(request.body)["tools"]
    return found, [(row.path, row.verdict, row.severity) for row in request.losses]


@pytest.mark.parametrize("api", MODELS)
def test_a_deferred_tool_is_sent_with_the_search_that_finds_it(api: str) -> None:
    (plain, tool, search), rows = _written(api, [PLAIN, WEATHER], search=True)

    assert (tool["name"], tool["defer_loading"]) == ("get_weather", True)
    assert SCHEMA in tool.values()
    assert "defer_loading" not in plain
    assert search == MODELS[api][2]
    assert rows == []
    if api == "messages":
        TypeAdapter(ToolUnionParam).validate_python(tool)
    if api == "responses":
        TypeAdapter(FunctionToolParam).validate_python(tool)


@pytest.mark.parametrize("api", MODELS)
def test_without_a_search_the_tool_is_sent_whole_with_a_row(api: str) -> None:
    (tool,), rows = _written(api, [WEATHER], search=False)

    assert "defer_loading" not in tool
    assert rows == [("tools[0]", "rewritten", "form")]


def test_a_model_without_tool_search_gets_the_tool_whole_with_a_row() -> None:
    (tool, _), rows = _written("responses", [WEATHER], search=True, model="gpt-5.2")

    assert "defer_loading" not in tool
    assert rows == [("tools[0]", "rewritten", "form")]


@pytest.mark.parametrize("key", ["mistral", "cohere", "ollama", "bedrock", "groq", "deepseek-messages"])
def test_services_without_tool_search_get_the_tool_whole_with_a_row(key: str) -> None:
    options = RequestOptions(model="anthropic.claude-opus-4-8" if key == "bedrock" else "m", max_tokens=64)
    options = attrs.evolve(options, capabilities={"supports_tools": True})
    request = build_request(REGISTRY.provider(key), ASKED, [PLAIN, WEATHER], options)

    assert b"get_weather" in request.body
    assert b"defer_loading" not in request.body
    assert [row.path for row in request.losses if row.block_type == "tool"] == ["tools[1]"]


def test_a_marker_on_a_deferred_tool_is_that_of_the_last_tool_of_the_prompt() -> None:
    hinted = attrs.evolve(WEATHER, cache=CacheHint())
    (plain, tool, _), rows = _written("messages", [PLAIN, hinted], search=True)
    assert plain["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in tool
    assert rows == []

    (first, _), rows = _written("messages", [hinted], search=True)
    assert "cache_control" not in first
    assert rows == [("tools[0]", "dropped", "form")]

    marked = attrs.evolve(PLAIN, cache=CacheHint(ttl="1h"))
    (plain, _, _), rows = _written("messages", [marked, hinted], search=True)
    assert plain["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert rows == [("tools[1]", "dropped", "form")]


@pytest.mark.parametrize("api", ["messages", "responses"])
def test_a_deferred_tool_that_a_change_adds_is_sent_whole_with_a_row(api: str) -> None:
    key, model, own = MODELS[api]
    options = RequestOptions(model=model, api=api, max_tokens=64, provider_options={"tools": [own]})
    request = build_request(REGISTRY.provider(key), [*ASKED, change(add=[WEATHER])], [PLAIN], options)

    assert b"get_weather" in request.body
    assert b"defer_loading" not in request.body
    assert [(row.path, row.block_type) for row in request.losses] == [("messages[1].content[0]", "change")]


# ---- served


def _served(api: str, definition: Mapping[str, Any], provider: str, model: str) -> tuple[list[Any], list[str]]:
    """Return the tools that a service gets of a request to the gateway, and the reasons of the rows about tools."""
    asked = {"messages": [{"role": "user", "content": "q"}], "input": [{"role": "user", "content": "q"}]}
    body = {"model": model, "max_tokens": 64, "tools": [definition, MODELS[api][2]]}
    body |= {name: value for name, value in asked.items() if (name == "messages") is (api == "messages")}
    key = MODELS[api][0]
    context = ServeContext(provider=key, api=api)
    read = find_serving_plugin(REGISTRY, key).from_wire_request(
        WireRequest(path="/", body=json.dumps(body).encode(), api=api), context
    )
    upstream = REGISTRY.provider(provider)
    target = upstream.capabilities(model, RequestOptions(model=model)).api
    messages, options, _ = read.for_upstream(provider, target, model)
    made = build_request(upstream, messages, read.tools, attrs.evolve(options, api=target))
    return json.loads(made.body)["tools"], [row.reason for row in made.losses if row.block_type == "tool"]


SERVED = [
    ("messages", {"name": "get_weather", "description": "W", "input_schema": SCHEMA, "defer_loading": True}),
    ("responses", {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True,
                   "defer_loading": True}),
]  # fmt: skip


@pytest.mark.parametrize(("api", "definition"), SERVED)
def test_a_served_deferred_tool_reaches_its_service_unchanged(api: str, definition: Mapping[str, Any]) -> None:
    key, model, search = MODELS[api]

    assert _served(api, definition, key, model) == ([definition, search], [])


def test_another_host_of_the_same_api_gets_a_served_deferred_tool_unchanged() -> None:
    _, definition = SERVED[1]

    assert _served("responses", definition, "azure", "gpt-5.5")[0][0] == definition
    assert _served("responses", definition, "azure", "gpt-5.5")[1] == []


@pytest.mark.parametrize(("api", "definition"), SERVED)
def test_a_served_deferred_tool_is_whole_at_another_service(api: str, definition: Mapping[str, Any]) -> None:
    (tool,), reasons = _served(api, definition, "mistral", "mistral-medium-latest")

    assert tool["function"]["parameters"] == SCHEMA
    assert "defer_loading" not in json.dumps(tool)
    assert reasons == ["no search of this target finds deferred tools; the tool is sent whole"]


# ---- what the search found

_FOUND = {
    "messages": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9},
        "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_regex",
             "input": {"pattern": "weather"}},
            {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}],
            }},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
        ],
    },
    "responses": {
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.4",
        "output": [
            {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server",
             "arguments": {"paths": ["tools"]}, "status": "completed"},
            {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
             "status": "completed", "tools": [
                 {"type": "function", "name": "get_weather", "description": "Weather", "parameters": SCHEMA,
                  "strict": False, "defer_loading": True}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
             "namespace": "get_weather", "arguments": "{\"city\":\"Oslo\"}", "status": "completed"},
        ],
    },
}  # fmt: skip


def _found(api: str) -> Message:
    key, model, _ = MODELS[api]
    response = WireResponse(body=json.dumps(_FOUND[api]).encode())
    return REGISTRY.provider(key).from_wire_response(response, RequestContext(origin=Origin(key, api, model)))


def test_the_sdk_reads_the_search_of_these_answers() -> None:
    read = SdkMessage.model_validate(_FOUND["messages"])

    assert [block.type for block in read.content] == ["server_tool_use", "tool_search_tool_result", "tool_use"]


@pytest.mark.parametrize(("api", "listed"), [("messages", "content"), ("responses", "output")])
def test_a_search_goes_back_to_its_service_unchanged_and_nowhere_else(api: str, listed: str) -> None:
    key, model, own = MODELS[api]
    answer = _found(api)
    (call,) = answer.tool_calls
    assert (call.name, call.input) == ("get_weather", {"city": "Oslo"})

    options = RequestOptions(model=model, api=api, max_tokens=64, provider_options={"tools": [own]})
    body = json.loads(build_request(REGISTRY.provider(key), [*ASKED, answer], [PLAIN, WEATHER], options).body)
    sent = body["messages"][1]["content"] if api == "messages" else body["input"][1:4]
    assert sent == _FOUND[api][listed]

    other = RequestOptions(model="mistral-medium-latest")
    made = build_request(REGISTRY.provider("mistral"), [*ASKED, answer], [PLAIN, WEATHER], other)
    assert b"tool_search" not in made.body
    assert json.loads(made.body)["messages"][1]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert [row.verdict for row in made.losses if row.block_type == "opaque"] == ["dropped", "dropped"]


# ---- a definition in an API's own words


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("declared_for", MODELS)
def test_a_definition_in_the_words_of_one_api_is_plain_at_the_others(api: str, declared_for: str) -> None:
    tool = WireTool(
        name="get_weather", description="Weather", input_schema=SCHEMA, extra={"defer_loading": True}, api=declared_for
    )
    (found, *_), rows = _written(api, [tool], search=True)

    assert found.get("defer_loading", False) is (api == declared_for)
    assert SCHEMA in found.values()
    assert rows == []

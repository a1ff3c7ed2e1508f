"""Requests of clients of Responses, generateContent and Ollama's chat, and what other APIs' services receive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._request.prepare import RequestDraft
from interlingua.errors import CallerError, ContextWindowExceededError, PluginError, QuotaExceededError, RateLimitError
from interlingua.plugins import RequestContext, WireRequest
from interlingua.types import Message, Origin, Role, ToolUseBlock
from interlingua_serving import InboundRequest, ServeContext, answer_events, find_serving_plugin
from tests.serving.answers import context
from tests.serving.compare import REGISTRY

ELSEWHERE = Origin("elsewhere", "chat", "m-1")
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}
ADD = {"type": "function", "name": "add", "description": "d", "strict": False, "parameters": {"type": "object"}}


def _read(key: str, api: str, body: Any, path: str = "/", **facts: Any) -> InboundRequest:
    request = WireRequest(path=path, body=json.dumps(body).encode(), api=api)
    return find_serving_plugin(REGISTRY, key).from_wire_request(request, ServeContext(provider=key, api=api, **facts))


def _sent(read: InboundRequest, key: str, api: str, model: str) -> tuple[dict[str, Any], list[str]]:
    """Return the body that an upstream gets, and the paths of what was lost."""
    messages, options, losses = read.for_upstream(key, api, model)
    wire = RequestDraft(REGISTRY.provider(key), messages, read.tools, options).build({})
    return json.loads(wire.body), [row.path for row in (*losses, *wire.losses)]


def _responses(body: dict[str, Any], **facts: Any) -> InboundRequest:
    return _read("openai", "responses", {"model": "gpt-5.1", **body}, **facts)


# ---- Responses


def test_functions_of_a_namespace_are_tools_everywhere_and_called_in_their_namespace() -> None:
    space = {"type": "namespace", "name": "agents", "description": "d", "tools": [{**ADD, "name": "spawn"}, ADD]}
    call = {"type": "function_call", "call_id": "call_1", "name": "spawn", "namespace": "agents", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    read = _responses({"input": [USER, call, output], "tools": [ADD, space]})

    assert [tool.name for tool in read.tools] == ["add", "agents__spawn", "agents__add"]
    same, lost = _sent(read, "openai", "responses", "gpt-5.1")
    assert (same["tools"], same["input"][1], lost) == ([ADD, space], call, [])
    other, lost = _sent(read, "anthropic", "messages", "claude-sonnet-4-5")
    assert [tool["name"] for tool in other["tools"]] == ["add", "agents__spawn", "agents__add"]
    assert other["messages"][1]["content"][0]["name"] == "agents__spawn"
    assert lost == []

    asked = context("openai", "responses", ELSEWHERE, echo=read.echo)
    answer = Message(role=Role.ASSISTANT, content=(ToolUseBlock(id="tu_1", name="agents__spawn", input={"a": 1}),))
    body = json.loads(find_serving_plugin(REGISTRY, "openai").to_wire_response(answer, asked).body)
    (item,) = body["output"]
    assert (item["name"], item["namespace"], item["arguments"]) == ("spawn", "agents", '{"a":1}')


def test_a_custom_tool_is_a_function_of_one_text_elsewhere() -> None:
    tool = {"type": "custom", "name": "patch", "description": "d", "format": {"type": "text"}}
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "*** x"}
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}
    read = _responses({"input": [USER, call, output], "tools": [tool]})

    same, _ = _sent(read, "openai", "responses", "gpt-5.1")
    assert (same["tools"], same["input"][1:]) == ([tool], [call, output])
    other, _ = _sent(read, "anthropic", "messages", "claude-sonnet-4-5")
    assert other["messages"][1]["content"][0]["input"] == {"input": "*** x"}
    assert other["tools"][0]["input_schema"]["required"] == ["input"]

    asked = context("openai", "responses", ELSEWHERE, echo=read.echo)
    answer = Message(role=Role.ASSISTANT, content=(ToolUseBlock(id="tu_1", name="patch", input={"input": "*** y"}),))
    writer = find_serving_plugin(REGISTRY, "openai").stream_to_wire(asked)
    stream = writer.feed(answer_events(answer)) + writer.end()
    assert b'"response.custom_tool_call_input.done"' in stream
    assert b'"input":"*** y"' in stream
    whole = json.loads(find_serving_plugin(REGISTRY, "openai").to_wire_response(answer, asked).body)
    assert (whole["output"][0]["type"], whole["output"][0]["input"]) == ("custom_tool_call", "*** y")


def test_developer_items_stay_items_and_keep_their_ids() -> None:
    items = [{**USER, "role": "developer", "id": "msg_1"}, {**USER, "role": "system"}, {**USER, "id": "msg_2"}]
    read = _responses({"input": items, "instructions": "Be brief."})

    same, _ = _sent(read, "openai", "responses", "gpt-5.1")
    assert (same["input"], same["instructions"]) == (items, "Be brief.")
    assert "store" not in same
    assert "include" not in same
    other, _ = _sent(read, "anthropic", "messages", "claude-sonnet-4-5")
    assert [block["text"] for block in other["system"]] == ["Be brief.", "q", "q"]


def test_a_stored_item_of_reasoning_goes_to_its_own_service_alone() -> None:
    stored = {"type": "reasoning", "id": "rs_1", "summary": []}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "a", "annotations": []}]}  # fmt: skip
    read = _responses({"input": [USER, stored, said, USER]})

    assert _sent(read, "openai", "responses", "gpt-5.1")[0]["input"] == [USER, stored, said, USER]
    other, lost = _sent(read, "google", "generate", "gemini-2.5-pro")
    assert [content["parts"] for content in other["contents"]] == [[{"text": "q"}], [{"text": "a"}], [{"text": "q"}]]
    assert "messages[1].content[0]" in lost


def test_a_result_whose_call_the_service_has_goes_there() -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    read = _responses({"input": [output], "previous_response_id": "resp_1"})

    body, _ = _sent(read, "openai", "responses", "gpt-5.1")
    assert (body["input"], body["previous_response_id"]) == ([output], "resp_1")


def test_what_only_responses_can_say_is_lost_elsewhere_with_a_row() -> None:
    read = _responses(
        {"input": "q", "store": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
         "tools": [{"type": "web_search"}], "reasoning": {"effort": "high", "summary": "auto"}, "temperature": None},
    )  # fmt: skip

    _, lost = _sent(read, "anthropic", "messages", "claude-sonnet-4-5")
    assert lost == ["options.provider_options.prompt_cache_key", "options.provider_options.tools"]
    assert (read.options.effort, read.options.thinking) == ("high", True)
    same, lost = _sent(read, "openai", "responses", "gpt-5.1")
    assert (same["reasoning"], lost) == ({"effort": "high", "summary": "auto"}, [])


def test_a_refused_seal_is_left_out_with_a_row() -> None:
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    said = {"type": "message", "role": "assistant", "content": "a"}
    read = _responses({"input": [USER, sealed, said]}, unseal=lambda _text: {})

    assert [block.type for block in read.messages[1].content] == ["text"]
    assert [row.verdict for row in read.losses] == ["dropped"]


# ---- generateContent


def _generate(body: dict[str, Any], path: str = "/v1beta/models/gemini-2.5-pro:generateContent") -> InboundRequest:
    return _read("google", "generate", body, path)


def test_the_path_names_model_and_method() -> None:
    body = {"contents": [{"parts": [{"text": "q"}]}]}
    streamed = _generate(body, "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse")
    assert (streamed.options.model, streamed.options.stream, streamed.echo) == ("gemini-3-pro-preview", True, {})
    array = _generate(body, "/v1beta/models/x:streamGenerateContent")
    assert array.echo == {"array": True}
    counted = _generate({"generateContentRequest": {"model": "models/x", **body}}, "/v1beta/models/x:countTokens")
    assert counted.messages[0].text == "q"
    with pytest.raises(CallerError):
        _generate(body, "/v1beta/models/x:embedContent")


def test_a_stream_without_sse_is_one_array() -> None:
    asked = context("google", "generate", ELSEWHERE, echo={"array": True})
    writer = find_serving_plugin(REGISTRY, "google").stream_to_wire(asked)
    events = answer_events(Message(role=Role.ASSISTANT, content="Hello there"))
    data = b"".join([writer.feed([event]) for event in events]) + writer.end()

    chunks = json.loads(data)
    assert (
        "".join(part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"])
        == "Hello there"
    )
    assert writer.content_type.startswith("application/json")


def test_schemas_in_the_services_own_form_are_json_schemas_elsewhere() -> None:
    array = {"type": "ARRAY", "minItems": "1", "items": {"type": "INTEGER"}}
    properties = {"a": {"type": "STRING", "nullable": True}, "b": array}
    own = {"type": "OBJECT", "properties": properties, "required": ["a"]}
    read = _generate(
        {
            "contents": [{"role": "user", "parts": [{"text": "q"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": own}]}],
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": own},
        }
    )
    plain = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
        },
        "required": ["a"],
    }

    assert read.tools[0].input_schema == plain
    assert read.options.response_schema == plain
    same, _ = _sent(read, "google", "generate", "gemini-2.5-pro")
    assert same["tools"][0]["functionDeclarations"] == [{"name": "f", "parameters": own}]
    assert same["generationConfig"]["responseJsonSchema"] == own


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"thinkingBudget": 8192, "includeThoughts": True}, (True, 8192, None)),
        ({"thinkingBudget": 0}, (False, None, None)),
        ({"thinkingBudget": -1}, (True, None, None)),
        ({"thinkingLevel": "HIGH", "includeThoughts": True}, (True, None, "high")),
    ],
)
def test_how_hard_to_think_is_read(config: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    read = _generate({"contents": [{"parts": [{"text": "q"}]}], "generationConfig": {"thinkingConfig": config}})

    assert (read.options.thinking, read.options.thinking_budget, read.options.effort) == wanted
    assert _sent(read, "google", "generate", "gemini-2.5-pro")[0]["generationConfig"] == {"thinkingConfig": config}


def test_results_find_their_calls_by_id_or_by_name() -> None:
    calls = [{"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"id": "c2", "name": "f", "args": {}}}]
    results = [
        {"functionResponse": {"id": "c2", "name": "f", "response": {"output": "two"}}},
        {"functionResponse": {"name": "f", "response": {"error": "one"}}},
    ]
    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": results},
    ]
    read = _generate({"contents": contents})

    found = {block.tool_use_id: block for message in read.messages for block in message.tool_results}
    ids = [call.id for call in read.messages[1].tool_calls]
    assert [(found[each].is_error, found[each].content[0].text) for each in ids] == [(True, "one"), (False, "two")]


# ---- Ollama


def test_results_of_ollamas_clients_find_their_calls_by_order() -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [call, call]},
        {"role": "tool", "tool_name": "f", "content": "one"},
        {"role": "tool", "content": "two"},
    ]
    read = _read("ollama", "chat-native", {"model": "m", "messages": messages, "options": {"num_ctx": 9, "top_k": 2}})

    assert _sent(read, "ollama", "chat-native", "m")[0] == {
        "model": "m", "messages": messages, "options": {"num_ctx": 9, "top_k": 2}
    }  # fmt: skip
    ids = [each.id for each in read.messages[1].tool_calls]
    assert [message.metadata.parent_tool_use_id for message in read.messages[2:]] == ids
    assert (read.options.stream, read.options.top_k) == (True, 2)
    assert _sent(read, "anthropic", "messages", "claude-sonnet-4-5")[1] == ["options.provider_options.num_ctx"]


def test_what_ollama_cannot_hold_is_a_row() -> None:
    answer = Message(role=Role.ASSISTANT, content=(ToolUseBlock(id="tu_1", name="f", signature="s"),))
    writer = find_serving_plugin(REGISTRY, "ollama").stream_to_wire(context("ollama", "chat-native", ELSEWHERE))
    body = writer.feed(answer_events(answer)) + writer.end()

    assert b'"s"' not in body
    assert [row.verdict for row in writer.losses] == ["dropped"]


# ---- all


@pytest.mark.parametrize(
    ("key", "api", "path"),
    [("openai", "responses", "/"), ("google", "generate", "/models/m:generateContent"), ("ollama", "chat-native", "/")],
)
def test_a_failure_is_read_as_what_it_was(key: str, api: str, path: str) -> None:
    provider, plugin = REGISTRY.provider(key), find_serving_plugin(REGISTRY, key)
    for error in (RateLimitError("slow", retry_after=2), ContextWindowExceededError("no"), PluginError("a secret")):
        response = plugin.to_wire_error(error, context(key, api, None))
        again = provider.from_wire_error(response, RequestContext(origin=Origin(key, api, "m")))
        assert b"secret" not in response.body
        assert isinstance(error, PluginError) or type(again) is type(error)
        assert again.retry_after == error.retry_after
    assert plugin.to_wire_error(QuotaExceededError("x"), context(key, api, None)).status in (402, 403, 429)
    for body in ([], {"model": 3, "contents": 4}, {"model": "m", "messages": [3], "input": [3], "contents": [3]}):
        with pytest.raises(CallerError):
            _read(key, api, body, path)

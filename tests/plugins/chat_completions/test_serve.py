"""Chat Completions requests as clients make them, read; answers of other origins, written for those clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._response.decode import StreamDecoder
from interlingua._response.framing import SseFramer
from interlingua.errors import CallerError, PluginError
from interlingua.plugins import Registry, RequestContext, WireRequest, build_request
from interlingua.types import (
    BlockEnd,
    Message,
    MessageComplete,
    MessageMetadata,
    Origin,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolChoice,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua_serving import InboundRequest, find_serving_plugin
from tests.serving.answers import context, seal, unseal

REGISTRY = Registry()
SERVICES = ("openai", "groq", "mistral", "openrouter")
READ = {"type": "function", "function": {"name": "read", "strict": False, "parameters": {"type": "object", "not": {}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}


def _read(body: dict[str, Any], key: str = "openai") -> InboundRequest:
    request = WireRequest(path="/chat/completions", body=json.dumps(body).encode(), api="chat")
    return find_serving_plugin(REGISTRY, key).from_wire_request(request, context(key, "chat", None))


def _asking(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"model": "m-1", "messages": list(messages) or [{"role": "user", "content": "q"}], **members}


def test_a_request_of_pi_is_read() -> None:
    read = _read(
        _asking(
            {"role": "developer", "content": "You are an assistant."},
            {"role": "user", "content": [{"type": "text", "text": "What does note.txt say?"}]},
            stream=True,
            stream_options={"include_usage": True},
            store=False,
            max_completion_tokens=8000,
            tools=[READ],
            tool_choice={"type": "function", "function": {"name": "read"}},
            reasoning_effort="medium",
        )
    )

    assert [message.role for message in read.messages] == ["system", "user"]
    assert (read.options.max_tokens, read.options.effort, read.options.stream) == (8000, "medium", True)
    assert read.options.tool_choice == ToolChoice("read")
    assert read.echo == {"include_usage": True}
    assert read.extra["store"] is False
    assert read.tools[0].extra_of("chat") == {"function": {"strict": False}}


@pytest.mark.parametrize("key", SERVICES)
def test_a_request_is_written_back_as_it_was(key: str) -> None:
    asked = _asking(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a."},
        {"role": "assistant", "content": "So be it.", "tool_calls": [{**CALL, "id": "abcdefghi"}]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "text"},
        tools=[READ],
        temperature=0.5,
        logit_bias={"1": 2},
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        tool_choice="auto",
    )
    read = _read(asked, key)
    messages, options, losses = read.for_upstream(key, "chat", "m-1")
    provider = REGISTRY.provider(key)
    wire = json.loads(build_request(provider, messages, read.tools, options).body)

    assert losses == ()
    assert wire["messages"][0]["content"] in ("Be brief.", [{"type": "text", "text": "Be brief."}])
    assert wire["messages"][2:] == asked["messages"][2:]
    assert wire["tools"] == [READ]
    for name in ("temperature", "logit_bias", "response_format", "tool_choice"):
        assert wire[name] == asked[name]


def test_results_without_an_id_are_those_of_the_calls_in_order() -> None:
    second = {**CALL, "id": "call_2"}
    read = _read(
        _asking(
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [CALL, second]},
            {"role": "tool", "content": "1"},
            {"role": "tool", "content": "2"},
        )
    )

    assert [message.metadata.parent_tool_use_id for message in read.messages[2:]] == ["call_1", "call_2"]


def test_a_sealed_state_gives_the_answer_back_to_its_origin() -> None:
    blocks = [
        {"type": "thinking", "length": 3, "signature": "s1"},
        {"type": "text", "length": 3},
        {"type": "thinking", "length": 4, "signature": "s2"},
        {"type": "tool_use", "length": 0, "id": "call_1", "provider_id": "fc_1"},
    ]
    state = {"origin": ["acme", "talk", "big"], "replay": {"x": 1}, "blocks": blocks, "whole": True}
    details = [{"type": "reasoning.encrypted", "id": "call_1", "data": seal(state), "index": 0}]
    answer = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.More", "tool_calls": [CALL]}
    read = _read(_asking({"role": "user", "content": "q"}, {**answer, "reasoning_details": details}))
    (back,) = [message for message in read.messages if message.role == "assistant"]

    assert [block.type for block in back.content] == ["thinking", "text", "thinking", "tool_use"]
    assert [(block.text, block.signature) for block in back.thinking_blocks] == [("Hm.", "s1"), ("More", "s2")]
    assert back.tool_calls[0].provider_id == "fc_1"
    assert back.metadata.origin == Origin("acme", "talk", "big")


@pytest.mark.parametrize(
    "change",
    [
        {"model": None},
        {"messages": "x"},
        {"messages": [{"role": "robot"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "user", "content": [{"text": "no type"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "x", "arguments": {}}}]}]},
        {"tools": [{"type": "function"}]},
        {"temperature": "hot"},
    ],
    ids=str,
)
def test_what_the_format_does_not_allow_is_the_callers_mistake(change: dict[str, Any]) -> None:
    with pytest.raises(CallerError):
        _read(_asking() | change)


DETAIL = {"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0}
FOREIGN = Origin("google", "generate", "gemini")


def test_parallel_calls_are_streamed_as_they_come_and_the_state_behind_them() -> None:
    writer = find_serving_plugin(REGISTRY, "openai").stream_to_wire(context("openai", "chat", FOREIGN))
    body = writer.feed(
        [
            ThinkingDelta(index=0, text="Hm."),
            BlockEnd(index=0, block=ThinkingBlock(text="", signature="c2ln")),
            TextDelta(index=1, text="Both."),
            ToolUseStart(index=2, id="tu_1", name="a", provider_id="x 1"),
            ToolUseStart(index=3, id="tu_2", name="b"),
            ToolUseInputDelta(index=3, partial_json="{}"),
            ToolUseInputDelta(index=2, partial_json='{"p":1}'),
            ToolUseEnd(index=2),
            ToolUseEnd(index=3),
            MessageComplete(stop_reason=StopReason.TOOL_USE),
        ]
    )
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    pieces = [
        (call["index"], call.get("id"), call["function"]["arguments"])
        for delta in deltas
        for call in delta.get("tool_calls", ())
    ]
    (details,) = [delta["reasoning_details"] for delta in deltas if "reasoning_details" in delta]
    state = unseal(details[0]["data"])

    assert pieces == [(0, "tu_1", ""), (1, "tu_2", ""), (1, None, "{}"), (0, None, '{"p":1}')]
    assert deltas[-2] == {"reasoning_details": details}
    assert details[0]["id"] == "tu_1"
    assert [(entry["type"], entry.get("signature")) for entry in state["blocks"]] == [
        ("thinking", "c2ln"), ("text", None), ("tool_use", None), ("tool_use", None),
    ]  # fmt: skip
    assert state["blocks"][2]["provider_id"] == "x 1"


def test_a_call_whose_name_comes_last_is_written_then() -> None:
    writer = find_serving_plugin(REGISTRY, "openai").stream_to_wire(context("openai", "chat", FOREIGN))
    call = ToolUseBlock(id="tu_1", name="read", input={"p": 1})
    body = writer.feed(
        [
            ToolUseStart(index=0, id="tu_1", name=""),
            ToolUseInputDelta(index=0, partial_json='{"p":1}'),
            ToolUseEnd(index=0, block=call),
            MessageComplete(stop_reason=StopReason.TOOL_USE),
        ]
    )
    lines = [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: {")]
    calls = [call for line in lines for choice in line["choices"] for call in choice["delta"].get("tool_calls", ())]

    assert [(call.get("id"), call["function"]) for call in calls] == [
        ("tu_1", {"name": "read", "arguments": ""}),
        (None, {"arguments": '{"p":1}'}),
    ]


def test_reasoning_that_details_repeat_is_read_once() -> None:
    """OpenRouter streams the text in `reasoning`; a gateway may send the details in a chunk of their own."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"reasoning": "Hm."}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"reasoning_details": [DETAIL]}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]},
    ]
    provider = REGISTRY.provider("openrouter")
    decoder = StreamDecoder(provider, SseFramer(), RequestContext(origin=Origin("openrouter", "chat", "m")))
    decoder.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))
    decoder.end()

    assert [block.text for block in decoder.message().thinking_blocks] == ["Hm."]


def test_a_router_gets_its_own_details_back() -> None:
    details = [DETAIL]
    raw = {"origin": ["openrouter", "chat", "m"], "replay": {"reasoning_details": details}, "trace": {}}
    metadata = MessageMetadata(provider="openrouter", api="chat", model="openrouter:m", provider_raw=raw)
    content = (ThinkingBlock(text="Hm."), TextBlock(text="Hi."))
    message = Message(role="assistant", content=content, metadata=metadata)
    own = context("openrouter", "chat", Origin("openrouter", "chat", "m"))
    body = json.loads(find_serving_plugin(REGISTRY, "openrouter").to_wire_response(message, own).body)

    assert body["choices"][0]["message"]["reasoning_details"] == details


def test_a_plugins_mistake_is_not_told() -> None:
    response = find_serving_plugin(REGISTRY, "groq").to_wire_error(PluginError("secret"), context("groq", "chat", None))

    assert (response.status, b"secret" in response.body) == (500, False)


def test_models_are_listed() -> None:
    asked = context("groq", "chat", None)
    listed = json.loads(find_serving_plugin(REGISTRY, "groq").to_wire_auxiliary("models", ["a"], asked).body)

    assert (listed["object"], [model["id"] for model in listed["data"]]) == ("list", ["a"])

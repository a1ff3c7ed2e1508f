"""Forms that clients of other libraries send: results without calls, streamed pieces that an SDK keeps separate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import WireRequest
from interlingua.types import (
    MessageComplete,
    Origin,
    Role,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    ToolResultBlock,
)
from interlingua_serving import InboundRequest, ServeContext, find_serving_plugin
from tests.serving.compare import REGISTRY, written_back

TOOL = {"type": "function", "function": {"name": "weather", "description": "", "parameters": {"type": "object"}}}
OTHER = {"type": "function", "function": {"name": "time", "description": "", "parameters": {"type": "object"}}}
SEALED = ServeContext(
    provider="google", api="generate", model="m", origin=Origin("anthropic", "messages", "claude"),
    seal=lambda _state: "c2VhbA==",
)  # fmt: skip


def _ollama(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "m", "stream": False, "messages": messages, "tools": tools}


def _read(key: str, api: str, path: str, body: dict[str, Any]) -> InboundRequest:
    wire = WireRequest(path=path, body=json.dumps(body).encode(), api=api)
    return find_serving_plugin(REGISTRY, key).from_wire_request(wire, ServeContext(provider=key, api=api))


@pytest.mark.parametrize(
    ("results", "tools", "names"),
    [
        ([{"content": "sunny"}], [TOOL], ["weather"]),  # litellm's `ollama_chat/`
        ([{"content": "sunny", "tool_name": "time"}, {"content": "4 pm"}], [TOOL], ["time", "weather"]),
        ([{"content": "sunny"}, {"content": "4 pm"}], [TOOL, OTHER], ["unknown_tool", "unknown_tool"]),
    ],
)
def test_ollamas_results_without_calls_are_attached_in_order(
    results: list[dict[str, Any]], tools: list[dict[str, Any]], names: list[str]
) -> None:
    asked = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": ""}]
    body = _ollama([*asked, *({"role": "tool", **each} for each in results)], tools)

    read = _read("ollama", "chat-native", "/api/chat", body)
    answer, *rest = read.messages[1:]
    found = [block for message in rest for block in message.content if isinstance(block, ToolResultBlock)]
    sent = written_back("ollama", "chat-native", "/api/chat", {}, body, "m")

    assert [call.name for call in answer.tool_calls] == names
    assert [result.tool_use_id for result in found] == [call.id for call in answer.tool_calls]
    assert [row.verdict for row in read.losses] == ["rewritten"] * len(results)
    assert json.loads(sent.body)["messages"] == body["messages"]


def test_a_result_of_ollama_before_any_answer_gets_no_call() -> None:
    body = _ollama([{"role": "user", "content": "Hi"}, {"role": "tool", "content": "sunny"}], [TOOL])

    assert [message.role for message in _read("ollama", "chat-native", "/api/chat", body).messages] == [
        Role.USER, Role.TOOL,
    ]  # fmt: skip


def _streamed(*events: Any) -> list[dict[str, Any]]:
    writer = find_serving_plugin(REGISTRY, "google").stream_to_wire(SEALED)
    data = b"".join([writer.feed([event]) for event in (*events, MessageComplete(stop_reason=StopReason.END_TURN))])
    lines = (data + writer.end()).decode().splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if "candidates" in line]
    return [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]


def test_a_streamed_text_without_state_has_no_seal() -> None:
    """langchain-google-genai reads signed text as a list, and joining its pieces fails there."""
    spoken = _streamed(
        TextDelta(index=0, text="Hello "), TextDelta(index=0, text="there"), TextDelta(index=0, text=".")
    )
    thought = _streamed(ThinkingDelta(index=0, text="Hm."), TextDelta(index=1, text="Hello"))

    assert spoken == [{"text": "Hello "}, {"text": "there"}, {"text": "."}]
    assert "thoughtSignature" in thought[-1]


def test_pieces_of_a_text_are_one_answer_and_reach_the_own_service_as_they_came() -> None:
    """Chats of Google's SDK keep each chunk of a stream as a separate content."""
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"text": "Hello "}, {"text": "the"}]},
        {"role": "model", "parts": [{"text": "re."}]},
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    read = _read("google", "generate", path, {"contents": contents})
    sent = written_back("google", "generate", path, {}, {"contents": contents}, "gemini-2.5-flash")

    assert [message.content for message in read.messages][1] == (TextBlock(text="Hello there."),)
    assert json.loads(sent.body)["contents"] == contents

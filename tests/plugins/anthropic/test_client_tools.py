"""Tools of the service that the caller runs, by the SDK's types: declared, called, answered, and sent elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.beta import BetaToolUnionParam
from pydantic import TypeAdapter

from interlingua.plugins import Registry, WireResponse, build_request
from interlingua.types import ImageBlock, MediaSource, RequestOptions, StopReason, ToolKind, tool_result, user
from interlingua_anthropic import client_tool
from interlingua_serving import find_serving_plugin
from tests.plugins.anthropic.asking import ANTHROPIC as PROVIDER
from tests.plugins.anthropic.asking import context
from tests.serving import answers

TOOLS = [
    client_tool("bash_20250124"),
    client_tool("text_editor_20250728", max_characters=10_000),
    client_tool("computer_20251124", display_width_px=1024, display_height_px=768),
    client_tool("memory_20250818"),
]
DECLARED = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
    {"type": "computer_20251124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
    {"type": "memory_20250818", "name": "memory"},
]
MODEL = "claude-opus-4-8"


def _request(*messages: Any, tools: Any = TOOLS) -> Any:
    return build_request(PROVIDER, list(messages), tools, RequestOptions(model=MODEL))


def test_they_are_declared_by_their_types() -> None:
    made = _request(user("go"))

    assert json.loads(made.body)["tools"] == DECLARED
    assert made.headers["anthropic-beta"] == "computer-use-2025-11-24"
    TypeAdapter(list[BetaToolUnionParam]).validate_python(DECLARED)


def test_a_call_is_answered_with_a_screenshot() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "computer", "input": {"action": "screenshot"}}
    body = {"type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use"}
    answer = PROVIDER.from_wire_response(WireResponse(body=json.dumps(body).encode()), context())
    picture = ImageBlock(source=MediaSource(kind="base64", data="aGk="), media_type="image/png")
    sent = json.loads(_request(user("go"), answer, tool_result(answer.tool_calls[0], picture)).body)["messages"]

    assert answer.metadata.stop_reason is StopReason.TOOL_USE
    assert sent[1]["content"] == [call]
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "image", "source": source}]}
    ]


def test_another_service_gets_plain_functions() -> None:
    provider = Registry().provider("openai")
    body = json.loads(build_request(provider, [user("go")], TOOLS, RequestOptions(model="gpt-5.5")).body)

    assert [tool["type"] for tool in body["tools"]] == ["function"] * 4
    assert body["tools"][1]["parameters"]["required"] == ["command", "path"]


def test_a_served_request_declares_them() -> None:
    plugin = find_serving_plugin(Registry(), "anthropic")
    asked = {"model": MODEL, "max_tokens": 9, "tools": DECLARED, "messages": [{"role": "user", "content": "go"}]}
    inbound = plugin.from_wire_request(
        _request(user("x")).__class__(path="/v1/messages", body=json.dumps(asked).encode(), api="messages"),
        answers.context("anthropic", "messages", None),
    )

    assert [tool.name for tool in inbound.tools] == [tool["name"] for tool in DECLARED]
    assert json.loads(_request(user("go"), tools=inbound.tools).body)["tools"] == DECLARED
    assert inbound.tools[0].kind is ToolKind.EXECUTE


@pytest.mark.parametrize("kind", ["code_execution_20260120", "bash", "web_search_20250305"])
def test_other_tools_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="not a tool that the caller runs"):
        client_tool(kind)

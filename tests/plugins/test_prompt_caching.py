"""Prompt caching as one intent: the same hints, asked of every installed provider, end as markers or in the ledger.

What each wire has is from its plugin's WIRE.md; the providers are found by entry points, so a new one is asked too.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.plugins import WireRequest, build_request
from interlingua.types.blocks import CacheHint, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua.types.messages import Message, MessageMetadata, Role
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition

REGISTRY = Registry()
SHORT, LONG = CacheHint(), CacheHint(ttl="1h")
MARKED = {  # model on a wire with markers -> most markers (each WIRE.md)
    "anthropic:claude-opus-5-5": 4,
    "openai:gpt-5.6-sol": 4,
    "openrouter:anthropic/claude-opus-5.5": 4,
}
PLAIN = [
    "openai:gpt-4.1",
    "google:gemini-3.8-flash",
    "ollama:qwen3",
    "mistral:mistral-medium-latest",
    "zai:glm-5.3",
    "deepseek:deepseek-chat",
    "groq:llama-3.3-70b-versatile",
]
_MARKER = re.compile(rb'"(cache_control|prompt_cache_breakpoint)":')


def history(*ttls: CacheHint | None, session: str = "default") -> list[Message]:
    """System, then per hint a user text; a call and its result where there are more than two."""
    texts = [TextBlock(text=f"text {at}", cache=hint) for at, hint in enumerate(ttls)]
    made = [Message(role=Role.SYSTEM, content=[TextBlock(text="be brief")], session_id=session)]
    return made + [Message(role=Role.USER, content=[text], session_id=session) for text in texts]


def tool(hint: CacheHint | None = None) -> ToolDefinition:
    schema = {"type": "object", "properties": {}}
    return ToolDefinition(name="look", description="", input_schema=schema, side_effects=SideEffects.READ, cache=hint)


def asked(
    model: str, messages: list[Message], tools: list[ToolDefinition] | None = None, **options: Any
) -> WireRequest:
    name = REGISTRY.resolve(model)
    provider = REGISTRY.provider(name.provider)
    return build_request(provider, messages, tools or [], RequestOptions(model=name.name, **options))


def lost(request: WireRequest) -> list[str]:
    return [loss.path for loss in request.losses if "cach" in loss.reason]


@pytest.mark.parametrize("model", MARKED)
def test_hints_become_markers_four_at_most_and_the_rest_are_in_the_ledger(model: str) -> None:
    request = asked(model, history(*[SHORT] * 6))

    assert len(_MARKER.findall(request.body)) == MARKED[model]
    assert len(lost(request)) == 2
    assert all(f"text {at}".encode() in request.body for at in range(6))


@pytest.mark.parametrize("model", ["openai:gpt-5.6-sol"])
def test_the_chat_wire_of_the_same_model_marks_likewise(model: str) -> None:
    request = asked(model, history(*[SHORT] * 6), api="chat")

    assert len(_MARKER.findall(request.body)) == 4
    assert len(lost(request)) == 2


@pytest.mark.parametrize("model", PLAIN)
def test_without_markers_each_hint_is_a_ledger_line_and_nothing_else_changes(model: str) -> None:
    request = asked(model, history(SHORT, None, LONG))

    assert _MARKER.search(request.body) is None
    assert lost(request) == ["messages[1].content[0]", "messages[3].content[0]"]
    assert request.body == asked(model, history(None, None, None)).body


@pytest.mark.parametrize("model", [*MARKED, *PLAIN])
def test_hints_on_tools_and_results_are_markers_or_ledger_lines(model: str) -> None:
    call = ToolUseBlock(id="tu_1", name="look", input={})
    result = ToolResultBlock(tool_use_id="tu_1", content="seen", cache=SHORT)
    metadata = MessageMetadata(parent_tool_use_id="tu_1")
    messages = [
        *history(None),
        Message(role=Role.ASSISTANT, content=[call]),
        Message(role=Role.TOOL, content=[result], metadata=metadata),
    ]
    request = asked(model, messages, [tool(SHORT)])

    assert len(_MARKER.findall(request.body)) + len(lost(request)) == 2


@pytest.mark.parametrize("model", ["anthropic:claude-opus-5-5", "openrouter:anthropic/claude-opus-5.5"])
def test_case_33_an_hour_stands_before_five_minutes(model: str) -> None:
    in_order = asked(model, history(LONG, LONG, SHORT))
    assert (in_order.body.count(b'"ttl":"1h"'), lost(in_order)) == (2, [])

    mixed = asked(model, history(LONG, SHORT, LONG))
    assert mixed.body.count(b'"ttl":"1h"') == 1
    assert lost(mixed) == ["messages[3].content[0]"]
    after_tool = asked(model, history(LONG), [tool(SHORT)])
    assert (after_tool.body.count(b'"ttl":"1h"'), lost(after_tool)) == (0, ["messages[1].content[0]"])


def test_lifetimes_where_the_wire_has_its_own() -> None:
    responses = asked("openai:gpt-5.6-sol", history(SHORT, LONG))  # 30 minutes or 12 hours
    assert responses.body.count(b'"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}') == 1
    chat = asked("openai:gpt-5.6-sol", history(SHORT, LONG), api="chat")  # 12 hours land in Responses only
    assert chat.body.count(b'"prompt_cache_breakpoint":{"mode":"explicit"}') == 2
    assert lost(chat) == ["messages[2].content[0]"]
    assert "half an hour" in chat.losses[0].reason


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_a_named_session_with_hints_gets_a_key_so_that_its_requests_meet_one_cache(api: str) -> None:
    def key_of(hint: CacheHint | None, session: str) -> bytes | None:
        found = re.search(rb'"prompt_cache_key":"([^"]*)"', asked("openai:gpt-5.6-sol", history(hint, session=session),
                                                                  api=api).body)  # fmt: skip
        return found[1] if found else None

    key = key_of(SHORT, "s-1")
    assert key is not None
    assert 0 < len(key) <= 64  # chat-completions/WIRE.md, Request
    assert b"s-1" not in key
    assert key == key_of(LONG, "s-1") != key_of(SHORT, "s-2")
    assert key_of(None, "s-1") is None
    assert key_of(SHORT, "default") is None


def test_no_marker_stands_on_thinking_or_empty_text() -> None:
    """Case 33: thinking has no such field, and empty text is gone before markers are placed."""
    messages = [*history(SHORT), Message(role=Role.USER, content=[TextBlock(text=" ", cache=SHORT)])]
    request = asked("anthropic:claude-opus-5-5", messages)

    assert len(_MARKER.findall(request.body)) == 1
    assert [loss.verdict for loss in request.losses if loss.path == "messages[2].content[0]"] == ["dropped"]

"""Forcing a call on every installed provider and API: the choice names a tool of the same body, or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, build_request
from interlingua.types import RequestOptions, SideEffects, ToolChoice, ToolDefinition, WireTool, user
from interlingua_cli.lint import lint_request

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]
APIS = [
    (key, api) for key in KEYS for api in REGISTRY.provider(key).connection(ConnectionSettings(environ={})).endpoints
]
LONG = f"mcp__{'search_' * 20}all"  # longer than any service's limit on names
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
OTHER = ToolDefinition(name="look_up", description="", input_schema=SCHEMA, side_effects=SideEffects.READ)
TOOL = WireTool(name=LONG, description="Searches.", input_schema=SCHEMA, side_effects=SideEffects.READ, api="elsewhere")
pytestmark = pytest.mark.usefixtures("quiet")


def write(key: str, api: str | None, *tools: ToolDefinition, **options: Any) -> WireRequest:
    """Write a request that forces a call."""
    asked = RequestOptions(model=options.pop("model", "a-model-nobody-lists"), api=api, **options)
    return build_request(REGISTRY.provider(key), [user("go")], tools, asked)


@pytest.mark.parametrize(("key", "api"), APIS)
@pytest.mark.parametrize("tools", [(TOOL, OTHER), (TOOL,)], ids=["two", "alone"])
def test_a_forced_tool_has_the_name_that_it_is_declared_with(
    key: str, api: str, tools: tuple[ToolDefinition, ...]
) -> None:
    try:
        request = write(key, api, *tools, tool_choice=ToolChoice(LONG))
    except CapabilityError:
        pytest.skip("this service cannot force one tool of several")

    if request.tool_names:  # the service has no names of this length
        assert LONG not in request.body.decode()
        assert [*request.tool_names.values()] == [LONG]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("ollama", "qwen3"),
        ("llamacpp", "local"),
        ("openrouter", "x-ai/grok-4"),
        ("cohere", "command-r-08-2024"),
        ("cohere", "command-r-plus-08-2024"),
        ("anthropic", "claude-opus-5-5"),
        ("vertex", "claude-opus-5-5"),
        ("azure", "claude-opus-5-5"),
        ("bedrock", "anthropic.claude-opus-5-5"),
    ],
)
def test_a_tool_that_cannot_be_forced_by_its_name_is_sent_alone_with_a_row(key: str, model: str) -> None:
    """42 of langchain's standard tests, instructor, pydantic-ai and smolagents force a tool of several."""
    request = write(key, None, TOOL, OTHER, model=model, tool_choice=ToolChoice("look_up"))

    assert b"look_up" in request.body
    assert b"Searches." not in request.body
    assert ("options.tool_choice", "rewritten") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


def test_ollamas_tools_demand_the_call_and_the_messages_are_unchanged() -> None:
    free, told = write("ollama", None, OTHER), write("ollama", None, OTHER, tool_choice="required")
    before, after = json.loads(free.body), json.loads(told.body)

    assert after["messages"] == before["messages"]
    assert "Answer with a call" in after["tools"][0]["function"]["description"]

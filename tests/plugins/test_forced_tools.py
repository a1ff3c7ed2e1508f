"""Forcing a call on every installed provider and API: the choice names a tool of the same body, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import ConnectionSettings, WireRequest, write_request
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
    return write_request(REGISTRY.provider(key), [user("go")], tools, asked)


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

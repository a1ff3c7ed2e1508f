"""Tools that a service finds by searching: deferred at the API that they are declared for, whole at every other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.plugins import Registry, build_request
from interlingua.types import RequestOptions, WireTool, user
from interlingua_cli.lint import lint_request

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODELS = {
    "messages": ("anthropic", "claude-opus-5-5", {"type": "tool_search_tool_regex_20251119", "name": "search"}),
    "responses": ("openai", "gpt-5.4", {"type": "tool_search"}),
    "interactions": ("google", "gemini-3.8-flash", {"type": "tool_search", "execution": "server"}),
}


def _tools(api: str, declared_for: str) -> list[dict[str, Any]]:
    key, model, search = MODELS[api]
    tool = WireTool(
        name="get_weather", description="Weather", input_schema=SCHEMA, extra={"defer_loading": True}, api=declared_for
    )
    more = {"tools": [search]} if api == declared_for else {}
    options = RequestOptions(model=model, api=api, max_tokens=64, provider_options=more)
    provider = Registry().provider(key)
    request = build_request(provider, [user("Is it raining in Oslo?")], [tool], options)
    assert request.losses == ()
    assert lint_request(provider, request) == ()
    found: list[dict[str, Any]] = json.loads(request.body)["tools"]
    return found


@pytest.mark.parametrize("api", MODELS)
def test_a_deferred_tool_stands_before_the_search_that_finds_it(api: str) -> None:
    tool, search = _tools(api, api)

    assert (tool["name"], tool["defer_loading"]) == ("get_weather", True)
    assert SCHEMA in tool.values()
    assert search == MODELS[api][2]


@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("declared_for", MODELS)
def test_other_apis_get_the_tool_whole(api: str, declared_for: str) -> None:
    if api != declared_for:
        (tool,) = _tools(api, declared_for)

        assert "defer_loading" not in tool
        assert SCHEMA in tool.values()

"""Callers' tools whose schema has another root than an object, and demanded calls, on every host that refuses them.

OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
"""

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
APIS = [
    (provider.key, api)
    for provider in REGISTRY.providers()
    for api in provider.connection(ConnectionSettings(environ={})).endpoints
]
A = {"type": "object", "properties": {"a": {"type": "string"}, "both": {"type": "string"}}, "required": ["a", "both"]}
B = {"type": "object", "properties": {"b": {"type": "integer"}, "both": {"type": "string"}}, "required": ["b", "both"]}
ROOTS: dict[str, dict[str, Any]] = {
    "anyOf": {"anyOf": [A, B]},
    "oneOf": {"oneOf": [A, B]},
    "allOf": {"allOf": [A, B]},
    "reference": {"$ref": "#/$defs/x", "$defs": {"x": {"allOf": [A, B]}}},
    "beside properties": {**A, "anyOf": [B]},
}
WITH_ROOTS = {"google", "ollama", "vertex"}  # they take any JSON Schema, or the server reads no further
READ = ToolDefinition(name="read_file", description="Reads.", input_schema=A, side_effects=SideEffects.READ)
FIND = ToolDefinition(name="find", description="Finds.", input_schema=B, side_effects=SideEffects.READ)
pytestmark = pytest.mark.usefixtures("quiet")


def _parameters(request: WireRequest) -> dict[str, Any]:
    body = json.loads(request.body)
    (tool,) = body["tools"]
    return tool.get("function", tool).get("parameters") or tool["input_schema"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize(
    ("key", "api"), [(key, api) for key, api in APIS if key not in WITH_ROOTS and key not in ("bedrock", "cohere")]
)
def test_a_root_of_several_forms_is_one_object_with_a_row(key: str, api: str, root: str) -> None:
    tool = WireTool(name="look", description="d", input_schema=ROOTS[root], api="elsewhere")
    request = build_request(REGISTRY.provider(key), [user("go")], [tool], RequestOptions(model="a-model", api=api))
    sent = _parameters(request)

    assert sent["type"] == "object"
    assert not sent.keys() & {"anyOf", "oneOf", "allOf", "$ref"}
    assert sent["properties"].keys() == {"a", "b", "both"}
    assert sorted(sent["required"]) == (["both"] if root in ("anyOf", "oneOf") else ["a", "b", "both"])
    assert {loss.block_type for loss in request.losses} == {"tool"}
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize(("key", "api"), [("openai", "chat"), ("openai", "responses"), ("groq", "chat")])
@pytest.mark.parametrize(
    "root",
    [{"type": "text", "properties": "none"}, {"anyOf": [{"required": [["a"]]}, {"properties": [1]}], "description": 5}],
    ids=["properties", "required"],
)
def test_a_root_that_is_no_json_schema_is_an_object_with_a_row(key: str, api: str, root: dict[str, Any]) -> None:
    tool = WireTool(name="look", description="d", input_schema=root, api="elsewhere")
    request = build_request(REGISTRY.provider(key), [user("go")], [tool], RequestOptions(model="a-model", api=api))

    assert _parameters(request)["type"] == "object"
    assert {loss.path for loss in request.losses} == {"tools[0].input_schema"}


@pytest.mark.parametrize(("key", "api"), [("openai", "chat"), ("openai", "responses"), ("groq", "chat")])
def test_two_types_and_lists_of_items_are_written_as_services_take_them(key: str, api: str) -> None:
    schema = {"type": ["object", "null"], "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}
    tool = WireTool(name="look", description="d", input_schema=schema, api="elsewhere")
    request = build_request(REGISTRY.provider(key), [user("go")], [tool], RequestOptions(model="a-model", api=api))

    assert _parameters(request) == {
        "type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "string"}]}}},
    }  # fmt: skip
    assert [loss.path for loss in request.losses] == ["tools[0].input_schema"]


def test_a_callers_own_request_keeps_its_schema() -> None:
    extra = {"function": {}}
    tool = WireTool(name="look", description="d", input_schema=ROOTS["anyOf"], api="chat", extra=extra)
    request = build_request(REGISTRY.provider("groq"), [user("go")], [tool], RequestOptions(model="a-model"))

    assert _parameters(request) == ROOTS["anyOf"]
    assert request.losses == ()


UNFORCED = [
    ("zai", "glm-5", {}),
    ("moonshot", "kimi-k2-thinking", {}),
    ("moonshot", "kimi-k2.6", {"thinking": True}),
    ("deepseek", "deepseek-reasoner", {}),
    ("deepseek", "deepseek-v4-pro", {}),
    ("ollama", "qwen3:8b", {}),
]


@pytest.mark.parametrize(("key", "model", "options"), UNFORCED)
@pytest.mark.parametrize("choice", ["required", ToolChoice("find")], ids=["some", "named"])
def test_a_service_that_cannot_force_is_asked_in_the_descriptions(
    key: str, model: str, options: dict[str, Any], choice: Any
) -> None:
    asked = RequestOptions(model=model, tool_choice=choice, **options)
    request = build_request(REGISTRY.provider(key), [user("go")], [READ, FIND], asked)
    body = json.loads(request.body)
    names = ["read_file", "find"] if choice == "required" else ["find"]

    assert [tool["function"]["name"] for tool in body["tools"]] == names
    assert all("Answer with a call" in tool["function"]["description"] for tool in body["tools"])
    assert body.get("tool_choice", "auto") == "auto"
    assert body["messages"] == [{"role": "user", "content": "go"}]
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]
    assert lint_request(REGISTRY.provider(key), request) == ()


def test_deepseek_forces_a_call_without_thinking() -> None:
    """4 recorded requests, each a 200."""
    asked = RequestOptions(model="deepseek-v4-flash", tool_choice="required", thinking=False)
    request = build_request(REGISTRY.provider("deepseek"), [user("go")], [READ], asked)

    assert json.loads(request.body)["tool_choice"] == "required"
    assert request.losses == ()


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("vertex", "claude-sonnet-4-5"),
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
def test_an_answers_schema_that_refers_back_is_refused_before_it_is_sent(key: str, model: str) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    with pytest.raises(CapabilityError, match="back to itself") as refused:
        build_request(REGISTRY.provider(key), [user("go")], [], RequestOptions(model=model, response_schema=schema))
    assert refused.value.path == "options.response_schema"

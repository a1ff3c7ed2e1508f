"""Tool schemas on every installed wire: the definition is never changed, and what a wire leaves out is in the ledger.

The schema holds every keyword that format.md, Tools, allows. What each service reads is from its documentation;
the providers are found by entry points, so a new one is asked too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest, build_request
from interlingua.types.factories import user
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_chat_completions.tools import complete_schema, strict_schema
from interlingua_cli.lint import lint_request

REGISTRY = Registry()
KEYS = [provider.key for provider in REGISTRY.providers()]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "what to look for",
    "properties": {
        "text": {"type": "string", "description": "a word", "format": "email"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "deep": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}},
            "required": ["n"],
            "additionalProperties": False,
        },
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "null"}}}},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def asked(key: str, tool: ToolDefinition, api: str | None = None) -> WireRequest:
    options = RequestOptions(model="a-model-nobody-lists", api=api)
    return build_request(REGISTRY.provider(key), [user("go")], [tool], options)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}")
    else:
        yield path, value


def sent_schema(request: WireRequest) -> dict[str, Any]:
    """Find the schema wherever the wire has it: the innermost object that knows the property `text`."""

    def search(value: Any) -> dict[str, Any] | None:
        if isinstance(value, dict):
            if "text" in value.get("properties", {}):
                return value
            value = list(value.values())
        if isinstance(value, list):
            return next((found for item in value if (found := search(item)) is not None), None)
        return None

    found = search(json.loads(request.body))
    assert found is not None
    return found


@pytest.mark.parametrize("key", KEYS)
def test_case_23_each_keyword_is_on_the_wire_or_in_the_ledger_and_the_definition_is_unchanged(key: str) -> None:
    tool = ToolDefinition(name="look", description="", input_schema=SCHEMA, side_effects=SideEffects.READ)
    before = copy.deepcopy(SCHEMA)
    request = asked(key, tool)

    assert tool.input_schema == before == SCHEMA
    ledger = {loss.path for loss in request.losses if loss.block_type == "tool"}
    sent = dict(leaves(sent_schema(request)))
    for path, value in leaves(SCHEMA):
        in_ledger = f"tools[0].input_schema{path}" in ledger
        assert (sent.get(path) == value) != in_ledger, f"{path}: on the wire and in the ledger, or in neither"
    assert ledger <= {f"tools[0].input_schema{path}" for path, _ in leaves(SCHEMA)}
    assert request.body == asked(key, tool).body


def test_what_the_native_server_drops_is_named_and_the_rest_is_told_to_nobody() -> None:
    """Ollama: a property keeps type, items, description, enum, properties and required."""
    tool = ToolDefinition(name="look", description="", input_schema=SCHEMA, side_effects=SideEffects.READ)
    paths = sorted(loss.path for loss in asked("ollama", tool).losses)

    assert paths == [
        "tools[0].input_schema.additionalProperties",
        "tools[0].input_schema.description",
        "tools[0].input_schema.properties.deep.additionalProperties",
        "tools[0].input_schema.properties.text.format",
    ]


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_tool_is_not_made_strict_for_that_would_demand_what_is_optional(api: str) -> None:
    """openai/WIRE.md, Structured outputs: in strict mode all properties are required."""
    tool = ToolDefinition(name="look", description="", input_schema=SCHEMA, side_effects=SideEffects.READ)
    request = asked("openai", tool, api)
    (sent,) = json.loads(request.body)["tools"]

    assert sent.get("function", sent).get("strict", False) is False
    assert sent_schema(request)["required"] == ["text"]


def test_strict_is_a_copy_and_only_where_it_means_the_same() -> None:
    closed = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    before = copy.deepcopy(closed)

    assert strict_schema(closed) == {**closed, "additionalProperties": False}
    assert closed == before
    assert strict_schema(SCHEMA) is None  # it has optional properties


BARE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "array", "description": "as many MCP servers write it"},
        "deep": {"type": "array", "items": {"type": "object", "properties": {"more": {"type": "object"}}}},
    },
}

# "openai" is asked on both APIs; the others take such schemas (recorded 200, the server's code, the same format)
LENIENT = ("openai", "anthropic", "deepseek-messages", "minimax-messages", "ollama")


@pytest.mark.parametrize(
    ("key", "api"),
    [("openai", "chat"), ("openai", "responses"), *((key, None) for key in KEYS if key not in LENIENT)],
)
def test_what_services_demand_of_a_schema_is_added(key: str, api: str | None) -> None:
    """400 "object schema missing properties", "array schema missing items" (chat-completions/WIRE.md)."""
    bare = ToolDefinition(name="look", description="", input_schema=BARE, side_effects=SideEffects.READ)
    empty = ToolDefinition(name="now", description="", input_schema={"type": "object"}, side_effects=SideEffects.READ)
    options = RequestOptions(model="a-model-nobody-lists", api=api)
    request = build_request(REGISTRY.provider(key), [user("go")], [bare, empty], options)

    assert sent_schema(request)["properties"] == {
        "text": {"type": "array", "description": "as many MCP servers write it", "items": {}},
        "deep": {
            "type": "array",
            "items": {"type": "object", "properties": {"more": {"type": "object", "properties": {}}}},
        },
    }
    assert b'{"type":"object"}' not in request.body
    assert request.losses == ()
    assert not lint_request(REGISTRY.provider(key), request)


def test_what_is_whole_is_sent_as_it_is() -> None:
    assert complete_schema(SCHEMA) is SCHEMA
    tuples = {"type": "object", "properties": {"a": {"type": ["array", "null"], "items": True}}}
    assert complete_schema(tuples)["properties"]["a"] == {"type": ["array", "null"], "items": {}}
    assert "items" in tuples["properties"]["a"]  # type: ignore[index]
    assert complete_schema({"type": "array", "items": False}, root=False) == {"type": "array", "items": False}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]},  # items of any kind
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"description": "anything"}}, "required": ["a"]},
    ],
)
def test_a_schema_that_leaves_something_open_is_not_strict(schema: dict[str, Any]) -> None:
    """openai/WIRE.md, Structured outputs: every strict schema names its type."""
    assert strict_schema(schema) is None


ANSWER: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OF_OPENAI = [("openai", "gpt-5", "chat"), ("openai", "gpt-5", "responses"), ("openrouter", "openai/gpt-5", None)]


def answering(key: str, model: str, api: str | None, **options: Any) -> WireRequest:
    return build_request(REGISTRY.provider(key), [user("go")], [], RequestOptions(model=model, api=api, **options))


@pytest.mark.parametrize(("key", "model", "api"), OF_OPENAI)
@pytest.mark.parametrize("root", [{"type": "array", "items": ANSWER}, {"anyOf": [ANSWER]}, {"type": "string"}])
def test_an_answer_that_is_no_object_is_refused_where_the_service_refuses_it(
    key: str, model: str, api: str | None, root: dict[str, Any]
) -> None:
    with pytest.raises(CapabilityError, match="property") as refused:
        answering(key, model, api, response_schema=root)
    assert refused.value.path == "options.response_schema"


@pytest.mark.parametrize(
    ("key", "model"), [("openrouter", "google/gemini-2.5-pro"), ("llamacpp", "any"), ("vllm", "any")]
)
def test_an_answer_that_is_no_object_goes_to_services_that_take_it(key: str, model: str) -> None:
    form = json.loads(answering(key, model, None, response_schema={"type": "array"}).body)["response_format"]

    assert form["json_schema"]["schema"] == {"type": "array", "items": {}}


@pytest.mark.parametrize(("key", "model", "api"), [*OF_OPENAI, ("groq", "any", None), ("mistral", "any", None)])
@pytest.mark.parametrize(
    ("name", "sent"), [("my answer!", "my_answer_"), ("", "response"), ("é" * 70, "_" * 64), ("fine-1_a", "fine-1_a")]
)
def test_a_schemas_name_is_made_to_fit(key: str, model: str, api: str | None, name: str, sent: str) -> None:
    request = answering(key, model, api, response_schema=ANSWER, response_name=name)
    body = json.loads(request.body)
    form = body["text"]["format"] if api == "responses" else body["response_format"]["json_schema"]

    assert form["name"] == sent
    assert [loss.path for loss in request.losses] == ([] if name == sent else ["options.response_name"])
    assert not lint_request(REGISTRY.provider(key), request)


@pytest.mark.parametrize(
    ("key", "model", "api", "sent"),
    [("openai", "gpt-4.1", "responses", 16), ("openrouter", "openai/gpt-4.1", None, 16),
     ("openai", "gpt-4.1", "chat", 1), ("openrouter", "openai/gpt-4.1-mini", None, 1)],
)  # fmt: skip
def test_a_limit_on_tokens_is_at_least_what_the_service_takes(key: str, model: str, api: str | None, sent: int) -> None:
    """Recorded 400: "integer below minimum value. Expected a value >= 16"."""
    request = answering(key, model, api, max_tokens=1)
    body = json.loads(request.body)
    (limit,) = [body[name] for name in ("max_output_tokens", "max_tokens", "max_completion_tokens") if name in body]

    assert limit == sent
    assert [(loss.path, loss.verdict) for loss in request.losses] == (
        [] if sent == 1 else [("options.max_tokens", "rewritten")]
    )
    assert not lint_request(REGISTRY.provider(key), request)

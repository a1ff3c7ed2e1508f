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

from interlingua.plugins import write_request
from interlingua.plugins.registry import Registry
from interlingua.plugins.wire import WireRequest
from interlingua.types.factories import user
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_chat_completions.tools import strict_schema

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
    options = AdapterOptions(model="a-model-nobody-lists", api=api)
    return write_request(REGISTRY.provider(key), [user("go")], [tool], options)


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

    found = search(json.loads(request.body)["tools"])
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

"""Options -> body: requests, tools, thinking and schemas."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import CapabilityError
from interlingua.types.blocks import CacheHint
from interlingua.types.factories import system, user
from interlingua.types.options import ToolChoice
from interlingua.types.tools import SideEffects, ToolDefinition
from tests.plugins.google.wire import NEW, OLD, asked, body, body_of
from tests.support.adapter import READ

Q = [user("q")]


def _config(**options: Any) -> Any:
    return body(Q, **options).get("generationConfig")


@pytest.mark.parametrize(
    ("name", "value", "wire", "sent"),
    [("temperature", 2.5, "temperature", 2), ("top_p", 1.2, "topP", 1), ("temperature", 2, "temperature", 2)],
)
def test_sampling_outside_of_the_range_is_moved_into_it(name: str, value: float, wire: str, sent: float) -> None:
    request = asked(Q, **{name: value})

    assert body_of(request)["generationConfig"] == {wire: sent}
    assert [loss.path for loss in request.losses] == ([f"options.{name}"] if value != sent else [])


def test_more_stop_sequences_than_the_wire_takes_are_left_out() -> None:
    """At most 5: https://ai.google.dev/api/generate-content#generationconfig."""
    request = asked(Q, stop=["a", "b", "c", "d", "e", "f"])

    assert body_of(request)["generationConfig"] == {"stopSequences": ["a", "b", "c", "d", "e"]}
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.stop", "rewritten")]
    assert not asked(Q, stop=["a", "b", "c", "d", "e"]).losses


def test_sampling_and_limits_have_their_names() -> None:
    found = _config(max_tokens=9, temperature=0.5, top_p=0.9, top_k=3, seed=7, stop=["a", "b"])

    assert found == {
        "maxOutputTokens": 9, "temperature": 0.5, "topP": 0.9, "topK": 3, "seed": 7, "stopSequences": ["a", "b"],
    }  # fmt: skip


def test_case_32_zero_is_a_value() -> None:
    assert _config(temperature=0, top_p=0, seed=0) == {"temperature": 0, "topP": 0, "seed": 0}
    assert _config() is None


def test_tools_are_declared_with_their_json_schema() -> None:
    (tools,) = body(Q, [READ])["tools"]

    assert tools["functionDeclarations"] == [
        {"name": "read_file", "description": "Read a file.", "parametersJsonSchema": dict(READ.input_schema)}
    ]


def test_case_23_an_empty_description_is_left_out_and_the_schema_is_not_changed() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "enum": [1, 2]}}, "additionalProperties": False}
    tool = ToolDefinition(
        name="t", description="", input_schema=schema, side_effects=SideEffects.READ, cache=CacheHint()
    )
    request = asked(Q, [tool])

    assert body_of(request)["tools"] == [{"functionDeclarations": [{"name": "t", "parametersJsonSchema": schema}]}]
    assert [loss.path for loss in request.losses] == ["tools[0]"]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (ToolChoice("read_file"), {"mode": "ANY", "allowedFunctionNames": ["read_file"]}),
    ],
)
def test_tool_choice_is_a_mode(choice: Any, config: dict[str, Any]) -> None:
    assert body(Q, [READ], tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}


def test_a_forced_choice_without_tools_is_refused() -> None:
    with pytest.raises(CapabilityError):
        asked(Q, tool_choice="required")


def test_what_has_no_word_here_is_reported() -> None:
    request = asked(Q, [READ], parallel_tool_calls=False, user_id="u")

    assert {loss.path for loss in request.losses} == {"options.parallel_tool_calls", "options.user_id"}


def test_a_response_schema_is_sent_without_what_is_not_taken() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"a": {"const": "x"}, "b": {"type": "integer", "exclusiveMinimum": 0, "description": "b"},
                       "c": {"oneOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["a"],
    }  # fmt: skip
    request = asked(Q, response_schema=schema)
    config = body_of(request)["generationConfig"]

    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"]},
            "b": {"type": "integer", "description": "b; exclusiveMinimum: 0"},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["a"],
    }
    assert {loss.path.rpartition(".")[2] for loss in request.losses} == {"$schema", "const", "exclusiveMinimum"}


def test_a_schema_with_tools_is_for_the_third_generation() -> None:
    schema = {"type": "object", "properties": {}}
    with pytest.raises(CapabilityError):
        asked(Q, [READ], model=OLD, response_schema=schema)

    assert body(Q, [READ], model=NEW, response_schema=schema)["tools"]


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"model": OLD, "thinking_budget": 512}, {"includeThoughts": True, "thinkingBudget": 512}),
        ({"model": OLD, "thinking_budget": 0}, {"thinkingBudget": 0}),
        ({"model": OLD, "thinking": True}, {"includeThoughts": True, "thinkingBudget": -1}),
        ({"model": OLD, "thinking": False}, {"thinkingBudget": 0}),
        ({"model": OLD, "effort": "medium"}, {"thinkingBudget": 8192}),
        ({"model": NEW, "effort": "low"}, {"thinkingLevel": "LOW"}),
        ({"model": NEW, "effort": "minimal", "thinking": True}, {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ({"model": NEW}, None),
    ],
)
def test_thinking_is_a_budget_or_a_level(options: dict[str, Any], config: Any) -> None:
    request = asked(Q, **options)

    assert body_of(request).get("generationConfig", {}).get("thinkingConfig") == config
    assert request.losses == ()


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"model": "gemini-2.5-pro", "thinking": False}, {"thinkingBudget": 128}),  # refuses 0
        ({"model": "gemini-3-pro-preview", "effort": "minimal"}, {"thinkingLevel": "LOW"}),  # refuses MINIMAL
        ({"model": NEW, "thinking": False}, {"thinkingLevel": "MINIMAL"}),
        ({"model": NEW, "thinking_budget": 512}, {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ({"model": NEW, "effort": "max"}, {"thinkingLevel": "HIGH"}),
        ({"model": "gemini-2.0-flash", "effort": "low"}, None),
    ],
)
def test_thinking_a_model_cannot_do_is_reported(options: dict[str, Any], config: Any) -> None:
    request = asked(Q, **options)

    assert body_of(request).get("generationConfig", {}).get("thinkingConfig") == config
    assert len(request.losses) == 1


def test_provider_options_are_laid_over_the_body() -> None:
    extra = {
        "generationConfig": {"responseModalities": ["TEXT"]},
        "tools": [{"googleSearch": {}}],
        "toolConfig": {"includeServerSideToolInvocations": True},
        "safetySettings": [],
    }
    found = body(Q, [READ], model=NEW, temperature=0, tool_choice="auto", provider_options=extra)

    assert found["generationConfig"] == {"temperature": 0, "responseModalities": ["TEXT"]}
    assert [list(tool) for tool in found["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert found["toolConfig"].keys() == {"functionCallingConfig", "includeServerSideToolInvocations"}
    assert found["safetySettings"] == []


def test_a_cached_content_holds_the_system_and_the_tools() -> None:
    request = asked([system("s"), *Q], [READ], provider_options={"cachedContent": "cachedContents/x"})

    assert body_of(request).keys() == {"contents", "cachedContent"}
    assert len(request.losses) == 2

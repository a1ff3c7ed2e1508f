"""Cases about options and tools, by WIRE.md, Responses request."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.errors import CapabilityError
from interlingua.types.blocks import CacheHint, TextBlock
from interlingua.types.messages import Message, Role
from interlingua.types.options import ToolChoice
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_cli.lint import lint_request
from tests.plugins.openai.wire import PROVIDER, body_of, request

USER = Message(role=Role.USER, content="go")
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "deep": {"type": "boolean"}},
    "required": ["path"],
}


def tool(schema: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(name="read_file", description="", input_schema=schema, side_effects=SideEffects.NONE)


def test_case_23_tools_are_flat_with_strict_said_and_the_schema_untouched() -> None:
    made = tool(SCHEMA)
    assert body_of([USER], tools=[made])["tools"] == [
        {"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False}
    ]
    assert made.input_schema == SCHEMA


def test_case_23_an_answer_schema_is_strict_only_where_that_changes_nothing() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    text = body_of([USER], response_schema=closed)["text"]
    assert text["format"]["strict"] is True
    assert text["format"]["schema"] == closed | {"additionalProperties": False}
    assert "additionalProperties" not in closed
    made = request([USER], response_schema=SCHEMA)
    assert b'"strict":false' in made.body
    chat = request([USER], api="chat", response_schema=SCHEMA)
    assert b'"strict"' not in chat.body
    for asked in (made, chat):
        assert [loss.path for loss in asked.losses] == ["options.response_schema"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", "auto"), ("none", "none"), ("required", "required"),
     (ToolChoice("read_file"), {"type": "function", "name": "read_file"})],
)  # fmt: skip
def test_tool_choice(choice: Any, expected: Any) -> None:
    assert body_of([USER], tools=[tool(SCHEMA)], tool_choice=choice)["tool_choice"] == expected


def test_case_32_zero_is_a_value() -> None:
    body = body_of([USER], model="gpt-4.1", temperature=0, top_p=0)
    assert (body["temperature"], body["top_p"]) == (0, 0)
    made = request([USER], model="gpt-4.1", seed=0)
    assert [loss.path for loss in made.losses] == ["options.seed"]


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [("gpt-5.5", None, False), ("gpt-5.5", "none", True), ("gpt-5.4", None, True), ("gpt-5.4", "low", False),
     ("gpt-5", None, False), ("gpt-4o", None, True), ("never-heard-of", None, True)],
)  # fmt: skip
def test_case_32_no_temperature_while_reasoning(model: str, effort: str | None, sent: bool) -> None:
    made = request([USER], model=model, effort=effort, temperature=0.5)
    assert (b'"temperature":0.5' in made.body) is sent
    assert ("options.temperature" in [loss.path for loss in made.losses]) is not sent


def test_what_this_wire_has_no_field_for_is_reported() -> None:
    made = request([USER], model="gpt-4.1", stop="END", top_k=3, thinking_budget=100)
    assert {loss.path for loss in made.losses} == {"options.stop", "options.top_k", "options.thinking_budget"}


def test_reasoning_options() -> None:
    assert body_of([USER], effort="high", thinking=True)["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body_of([USER], thinking=False)["reasoning"] == {"effort": "none"}
    assert body_of([USER], model="gpt-5.4", thinking=True)["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert [loss.path for loss in request([USER], model="gpt-5", thinking=False).losses] == ["options.thinking"]
    merged = body_of([USER], effort="low", provider_options={"reasoning": {"summary": "detailed"}, "store": True})
    assert merged["reasoning"] == {"effort": "low", "summary": "detailed"}
    assert merged["store"] is True


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("gpt-5", "none", "minimal"), ("gpt-5-mini", "xhigh", "high"), ("gpt-5.1", "minimal", "low"),
        ("gpt-5.1", "xhigh", "high"), ("gpt-5.2", "minimal", "low"), ("gpt-5.4", "max", "xhigh"),
        ("gpt-5.5", "max", "xhigh"), ("gpt-5.6-luna", "minimal", "low"), ("gpt-5.6-sol", "max", "max"),
        ("o3", "minimal", "low"), ("o4-mini", "max", "high"), ("gpt-5.3-chat-latest", "high", "medium"),
        ("gpt-5-2025-08-07", "none", "minimal"), ("gpt-5.5", "none", "none"), ("never-heard-of", "max", "max"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_effort_is_one_that_the_model_takes(api: str, model: str, asked: str, sent: str) -> None:
    made = request([USER], model=model, api=api, effort=asked)
    body = body_of([USER], model=model, api=api, effort=asked)

    assert (body["reasoning_effort"] if api == "chat" else body["reasoning"]["effort"]) == sent
    assert [loss.path for loss in made.losses] == ([] if asked == sent else ["options.effort"])
    assert not lint_request(PROVIDER, made)


@pytest.mark.parametrize(
    ("model", "sent"), [("gpt-5-pro", "high"), ("o3-deep-research", "medium"), ("gpt-5.2-pro", "medium")]
)
def test_an_effort_of_models_on_one_api(model: str, sent: str) -> None:
    assert body_of([USER], model=model, effort="low")["reasoning"] == {"effort": sent}


def test_the_highest_effort_of_gpt_6_is_not_taken_in_chat() -> None:
    assert body_of([USER], model="gpt-6-astra", effort="max")["reasoning"] == {"effort": "max"}
    assert body_of([USER], model="gpt-6-astra", api="chat", effort="max")["reasoning_effort"] == "xhigh"


@pytest.mark.parametrize(
    ("model", "options", "sent", "losses"),
    [
        ("gpt-5.4", {}, None, []),  # it does not reason by itself
        ("gpt-5.4", {"effort": "high"}, "none", ["options.effort"]),
        ("gpt-5.4-mini", {"thinking": True}, "none", ["options.thinking"]),
        ("gpt-5.6-terra", {}, "none", ["options.thinking"]),  # refused even where no effort is asked for
        ("gpt-5.6-terra", {"effort": "none"}, "none", []),
        ("gpt-5.5", {"thinking": False}, "none", []),
        ("gpt-5.2", {"effort": "high"}, "high", []),
        ("gpt-5", {"effort": "low"}, "low", []),
    ],
)
def test_tools_in_chat_are_taken_without_reasoning_only(
    model: str, options: dict[str, Any], sent: str | None, losses: list[str]
) -> None:
    made = request([USER], tools=[tool(SCHEMA)], model=model, api="chat", **options)

    assert body_of([USER], tools=[tool(SCHEMA)], model=model, api="chat", **options).get("reasoning_effort") == sent
    assert [loss.path for loss in made.losses] == losses
    assert not lint_request(PROVIDER, made)
    assert "effort" not in body_of([USER], tools=[tool(SCHEMA)], model=model).get("reasoning", {})


def test_a_model_that_always_reasons_takes_no_tools_in_chat() -> None:
    with pytest.raises(CapabilityError, match="Responses"):
        request([USER], tools=[tool(SCHEMA)], model="gpt-6-astra", api="chat")
    assert request([USER], tools=[tool(SCHEMA)], model="gpt-6-astra").losses == ()


def test_the_last_four_cache_hints_become_breakpoints_outside_the_prefix() -> None:
    hint = CacheHint(ttl="1h")
    messages = [Message(role=Role.USER, content=(TextBlock(text=f"t{at}", cache=hint),)) for at in range(5)]
    made = request(messages, model="gpt-5.6-sol")
    assert made.body.count(b'"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}') == 4
    assert [loss.path for loss in made.losses] == ["messages[0].content[0]"]
    assert b"prompt_cache_breakpoint" not in request(messages, model="gpt-4.1").body


def test_an_api_this_provider_does_not_have_is_refused() -> None:
    with pytest.raises(CapabilityError):
        request([USER], api="messages")


def test_the_api_is_chosen_by_option_then_model() -> None:
    assert request([USER], api=None).path == "/responses"
    assert request([USER], api="chat").path == "/chat/completions"
    assert request([USER], api=None, model="gpt-5-codex").api == "responses"
    assert PROVIDER.capabilities("gpt-5.5") is PROVIDER.capabilities("gpt-5.5")
    assert PROVIDER.capabilities("never-heard-of").assumed


def test_chat_has_developer_messages_for_reasoning_models_only() -> None:
    system = Message(role=Role.SYSTEM, content="Be brief.")
    for model, role in (("gpt-5.5", "developer"), ("gpt-4o", "system")):
        assert body_of([system, USER], model=model, api="chat")["messages"][0] == {"role": role, "content": "Be brief."}
    assert "temperature" not in body_of([USER], api="chat", temperature=0.5)
    assert body_of([USER], api="chat", temperature=0.5, effort="none")["temperature"] == 0.5

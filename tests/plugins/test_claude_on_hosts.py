"""Requests to Claude follow the rules of Anthropic's own API on every host: one place has the family's rules."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import WireRequest, build_request
from interlingua.types import (
    Message,
    RequestOptions,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolDefinition,
    ToolUseBlock,
    tool_result,
    user,
)
from interlingua_cli.lint import lint_request
from tests.support.adapter import READ, Adapter

REGISTRY = Registry()
HOSTS = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "vertex": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "azure": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "bedrock": ("anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-5-5"),
}
pytestmark = pytest.mark.usefixtures("quiet")


def write(
    key: str, messages: list[Message], tools: list[ToolDefinition], model: str = "", **options: Any
) -> WireRequest:
    asked = RequestOptions(model=model or HOSTS[key][0], **options)
    return build_request(REGISTRY.provider(key), messages, tools, asked)


def answer(key: str, *content: Any, model: str = "") -> Message:
    """Return what a model of this host answered."""
    api = "converse" if key == "bedrock" else "messages"
    return Adapter(key, api, model or HOSTS[key][0]).answer(*content)


CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})


def thinking_of(request: WireRequest) -> Any:
    body = json.loads(request.body)
    return body.get("thinking") or body.get("additionalModelRequestFields", {}).get("thinking")


@pytest.mark.parametrize("key", HOSTS)
def test_thinking_does_not_begin_within_a_turn(key: str) -> None:
    history = [user("q"), answer(key, CALL), tool_result(CALL, "text")]
    request = write(key, history, [READ], thinking=True)

    assert thinking_of(request) is None
    assert ("options.thinking", "dropped") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize("key", HOSTS)
def test_a_turn_that_began_with_thinking_continues_with_it(key: str) -> None:
    thought = ThinkingBlock(text="Hm.", signature="c2ln")
    history = [user("q"), answer(key, thought, CALL), tool_result(CALL, "text")]
    request = write(key, history, [READ])

    assert thinking_of(request)["type"] == "enabled"
    assert ("options.thinking", "rewritten") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize("key", HOSTS)
def test_a_turn_goes_bare_when_its_thinking_is_switched_off(key: str) -> None:
    thought = ThinkingBlock(text="Hm.", signature="c2ln")
    history = [user("q"), answer(key, thought, CALL), tool_result(CALL, "text")]
    request = write(key, history, [READ], thinking=False)

    assert b"Hm." not in request.body
    assert ("messages[1].content[0]", "dropped") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize("key", HOSTS)
def test_a_blank_stop_sequence_is_not_sent(key: str) -> None:
    request = write(key, [user("q")], [], stop=("\n\n", "END"))

    assert json.dumps(["END"]).encode() in request.body.replace(b" ", b"")
    assert ("options.stop", "rewritten") in [(loss.path, loss.verdict) for loss in request.losses]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize("key", HOSTS)
@pytest.mark.parametrize("choice", ["required", ToolChoice("read_file")])
def test_tools_demand_the_call_that_a_model_refuses_to_be_forced_to(key: str, choice: Any) -> None:
    other = attrs.evolve(READ, name="look_up")
    request = write(key, [user("q")], [READ, other], model=HOSTS[key][1], tool_choice=choice)
    body = json.loads(request.body)
    tools = body.get("tools") or [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]

    names = ["read_file"] if isinstance(choice, ToolChoice) else ["read_file", "look_up"]
    assert [tool["name"] for tool in tools] == names
    assert all("Answer with a call of this tool" in tool["description"] for tool in tools)
    assert b"tool_choice" not in request.body
    assert b"toolChoice" not in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]
    assert lint_request(REGISTRY.provider(key), request) == ()


@pytest.mark.parametrize("key", HOSTS)
def test_a_call_cannot_be_demanded_beside_the_services_own_tools(key: str) -> None:
    own: dict[str, Any] = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    options = {"toolConfig": own} if key == "bedrock" else own
    with pytest.raises(CapabilityError, match="opus-5-5 refuses a forced tool choice"):
        write(key, [user("q")], [READ], model=HOSTS[key][1], tool_choice="required", provider_options=options)


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize("key", HOSTS)
def test_a_begun_answer_beside_a_schema_is_refused_before_it_is_sent(key: str) -> None:
    """Documented at "Structured outputs": incompatible with message prefilling."""
    begun = [user("q"), answer(key, TextBlock(text='{"a":'))]
    with pytest.raises(CapabilityError, match="takes no response schema for an answer whose beginning is given"):
        write(key, begun, [], response_schema=SCHEMA)

    body = write(key, begun, []).body  # each alone is taken
    with_schema = write(key, begun[:1], [], response_schema=SCHEMA)
    assert lint_request(REGISTRY.provider(key), with_schema) == ()
    both = {**json.loads(with_schema.body), "messages": json.loads(body)["messages"]}
    found = lint_request(REGISTRY.provider(key), attrs.evolve(with_schema, body=json.dumps(both).encode()))
    assert [finding.rule.removeprefix("bedrock-") for finding in found] == ["no-prefill-beside-a-schema"]


def test_an_earlier_turn_of_thinking_alone_is_left_out_where_the_host_reads_it_as_prefill() -> None:
    """Reported for Converse (NousResearch/hermes-agent#105780): newer models refuse it, older ones take it."""
    for model, kept in ((HOSTS["bedrock"][1], False), (HOSTS["bedrock"][0], True)):
        thought = ThinkingBlock(text="Hm.", signature="c2ln")
        history = [user("q"), answer("bedrock", thought, model=model), user("and?")]
        request = write("bedrock", history, [], model=model)

        assert (b"Hm." in request.body) is kept
        assert [loss.path for loss in request.losses] == ([] if kept else ["messages[1]"])


def test_only_claude_and_nova_take_the_name_of_a_tool_on_bedrock() -> None:
    other = attrs.evolve(READ, name="look_up")
    llama = "meta.llama3-1-70b-instruct-v1:0"
    request = write("bedrock", [user("q")], [READ], model=llama, tool_choice=ToolChoice("read_file"))

    assert json.loads(request.body)["toolConfig"]["toolChoice"] == {"any": {}}
    assert [loss.path for loss in request.losses] == ["options.tool_choice"]
    with pytest.raises(CapabilityError, match="offer 'read_file' alone"):
        write("bedrock", [user("q")], [READ, other], model=llama, tool_choice=ToolChoice("read_file"))


ROUTED = "anthropic/claude-sonnet-4.5"


def routed(messages: list[Message], tools: list[ToolDefinition], model: str = ROUTED, **options: Any) -> WireRequest:
    """Write a request to Claude through OpenRouter, which passes Anthropic's refusals on."""
    request = write("openrouter", messages, tools, model=model, **options)
    assert lint_request(REGISTRY.provider("openrouter"), request) == ()
    return request


@pytest.mark.parametrize("asked", [{"thinking": True}, {"thinking_budget": 2000}, {"effort": "high"}], ids=str)
def test_thinking_does_not_begin_within_a_turn_through_openrouter(asked: dict[str, Any]) -> None:
    """Reported: OpenRouterTeam/ai-sdk-provider#177."""
    adapter = Adapter("openrouter", "chat", ROUTED)
    bare = [user("q"), adapter.answer(CALL), tool_result(CALL, "t")]
    request = routed(bare, [READ], **asked)
    assert "reasoning" not in json.loads(request.body)
    assert [loss.path for loss in request.losses] == [f"options.{next(iter(asked))}"]

    begun = [user("q"), adapter.answer(ThinkingBlock(text="Hm.", signature="c2ln"), CALL), tool_result(CALL, "t")]
    assert "reasoning" in json.loads(routed(begun, [READ], **asked).body)
    assert "reasoning" in json.loads(routed([user("q")], [READ], **asked).body)


def test_a_blank_stop_sequence_is_not_sent_through_openrouter() -> None:
    request = routed([user("q")], [], stop=["\n", "x", " "])
    assert json.loads(request.body)["stop"] == ["x"]
    assert [loss.path for loss in request.losses] == ["options.stop"]
    assert b"stop" not in routed([user("q")], [], stop=["\n"]).body


@pytest.mark.parametrize("choice", ["required", ToolChoice("read_file")])
def test_forced_calls_through_openrouter_are_those_that_claude_takes(choice: Any) -> None:
    request = routed([user("q")], [READ], model="anthropic/claude-opus-5.5", tool_choice=choice)
    assert b"tool_choice" not in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.tool_choice", "rewritten")]

    request = routed([user("q")], [READ], tool_choice=choice, effort="high")
    assert b"tool_choice" in request.body
    assert b"reasoning" not in request.body
    assert [(loss.path, loss.verdict) for loss in request.losses] == [("options.effort", "dropped")]

"""Strict tools on both wires, where the caller asks for them (WIRE.md, Structured outputs; case 23).

What is expected is from WIRE.md, from the guide's list of formats, and from OpenAI's own SDK, whose strict schemas
close every object and require all of its properties.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel

from interlingua.errors import CapabilityError
from interlingua.plugins import RequestContext, WireRequest, build_request
from interlingua.types.factories import user
from interlingua.types.messages import Message, Origin
from interlingua.types.options import RequestOptions
from interlingua.types.tools import SideEffects, ToolDefinition
from interlingua_agents import validate_input
from interlingua_cli.lint import lint_request
from interlingua_contract.strategies import tools as tool_lists
from tests.plugins.openai.wire import PROVIDER
from tests.support import driving
from tests.support.counts import examples

MODEL = "gpt-5.6-sol"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "format": "uri"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "nothing": {"type": "null"},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["text", "day"],
    "additionalProperties": False,
}
LOOK = ToolDefinition(name="look", description="Look.", input_schema=SCHEMA, side_effects=SideEffects.READ)
apis = pytest.mark.parametrize("api", ["chat", "responses"])


def tool(schema: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(name="open", description="", input_schema=schema, side_effects=SideEffects.READ)


def asked(api: str, strict: Any, *tools: ToolDefinition) -> WireRequest:
    extra = {} if strict is None else {"strict_tools": strict}
    options = RequestOptions(model=MODEL, api=api, effort="none", provider_options=extra)
    return build_request(PROVIDER, [user("go")], tools, options)


def functions(request: WireRequest) -> list[dict[str, Any]]:
    return [one.get("function", one) for one in json.loads(request.body)["tools"]]


def _context(api: str, request: WireRequest) -> RequestContext:
    return RequestContext(origin=Origin("openai", api, MODEL), echo=request.echo)


def streamed(api: str, request: WireRequest, arguments: str) -> Message:
    half = len(arguments) // 2
    if api == "chat":
        calls = [
            {"index": 0, "id": "call_1", "function": {"name": "look", "arguments": arguments[:half]}},
            {"index": 0, "function": {"arguments": arguments[half:]}},
        ]
        said = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
        events = [*said, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        return driving.streamed(PROVIDER, body.encode(), _context(api, request))
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": ""}
    whole = {**item, "arguments": arguments}
    ended = {"id": "r", "object": "response", "status": "completed", "output": [whole]}
    spoken: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": ended},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in spoken)
    return driving.streamed(PROVIDER, body.encode(), _context(api, request))


def answered(api: str, request: WireRequest, arguments: str) -> Message:
    context = _context(api, request)
    if api == "chat":
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments}}
        choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
        return driving.whole(PROVIDER, json.dumps({"id": "c", "choices": [choice]}).encode(), context)
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": arguments}
    body = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    return driving.whole(PROVIDER, json.dumps(body).encode(), context)


@apis
def test_case_23_a_strict_schema_is_closed_and_whole_and_the_ledger_tells_each_change(api: str) -> None:
    before = copy.deepcopy(SCHEMA)
    request = asked(api, True, LOOK)
    (sent,) = functions(request)

    assert sent["strict"] is True
    assert sent["parameters"] == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"type": ["string", "null"], "enum": ["a", "b", None]},
            "deep": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"n": {"type": "integer"}},
                        "required": ["n"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
            "list": {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"x": {"type": ["string", "null"]}},
                            "required": ["x"],
                            "additionalProperties": False,
                        },
                    },
                    {"type": "null"},
                ]
            },
            "nothing": {"type": "null"},
            "day": {"type": "string", "format": "date"},
        },
        "required": ["text", "kind", "deep", "list", "nothing", "day"],
        "additionalProperties": False,
    }
    assert sorted((loss.path.removeprefix("tools[0].input_schema."), loss.verdict) for loss in request.losses) == [
        ("properties.deep", "rewritten"),
        ("properties.deep.additionalProperties", "rewritten"),
        ("properties.kind.enum", "rewritten"),
        ("properties.kind.type", "rewritten"),
        ("properties.list", "rewritten"),
        ("properties.list.items.additionalProperties", "rewritten"),
        ("properties.list.items.properties.x.type", "rewritten"),
        ("properties.list.items.required", "rewritten"),
        ("properties.text.format", "dropped"),
        ("required", "rewritten"),
    ]
    assert LOOK.input_schema == before == SCHEMA
    assert lint_request(PROVIDER, request) == ()
    assert "strict_tools" not in json.loads(request.body)


@apis
def test_only_the_named_tools_are_strict_and_a_name_that_is_not_there_is_told(api: str) -> None:
    other = tool({"type": "object", "properties": {}})
    request = asked(api, ["open", "shut"], LOOK, other)

    assert [one.get("strict", False) for one in functions(request)] == [False, True]
    assert functions(request)[0]["parameters"] == SCHEMA
    assert [loss.path for loss in request.losses] == [
        "options.provider_options.strict_tools",
        "tools[1].input_schema.additionalProperties",
    ]


@apis
@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}, ""),
        ({"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}, ".properties.a"),
        ({"type": "object", "properties": {"a": {"description": "any"}}, "required": ["a"]}, ".properties.a"),
        ({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}, ".properties.a"),
    ],
    ids=["open", "free", "untyped", "items"],
)
def test_what_the_subset_cannot_say_goes_as_it_is_and_the_ledger_tells_why(
    api: str, schema: dict[str, Any], where: str
) -> None:
    request = asked(api, True, tool(schema))
    (sent,) = functions(request)

    bare = {"type": "object"}, {"type": "array"}  # what every schema needs is added to them
    whole = {"type": "object", "properties": {}}, {"type": "array", "items": {}}
    inner = schema["properties"]["a"]
    expected = {**schema, "properties": {"a": whole[bare.index(inner)] if inner in bare else inner}}
    assert (sent.get("strict", False), sent["parameters"]) == (False, expected)
    assert [loss.path for loss in request.losses] == [f"tools[0].input_schema{where}"]
    assert not request.echo


@apis
def test_what_is_no_choice_of_tools_is_refused(api: str) -> None:
    with pytest.raises(CapabilityError, match="strict_tools must be true, false or a list of tool names"):
        asked(api, "look", LOOK)


@apis
def test_nobody_is_strict_unasked(api: str) -> None:
    assert asked(api, None, LOOK).body == asked(api, False, LOOK).body
    assert functions(asked(api, None, LOOK))[0].get("strict", False) is False


@apis
def test_a_null_that_stands_for_absence_is_absent_again_and_goes_back_as_it_came(api: str) -> None:
    """The definition takes no null for `kind`: the arguments the tool gets fit it, and what the model said is kept."""
    raw = '{"text":"t","kind":null,"deep":null,"list":[{"x":null},{"x":"y"}],"nothing":null,"day":"2026-11-22"}'
    request = asked(api, True, LOOK)
    message = answered(api, request, raw)
    (call,) = message.tool_calls

    assert call.input == {"text": "t", "list": [{}, {"x": "y"}], "nothing": None, "day": "2026-11-22"}
    assert call.raw_input == raw
    assert not validate_input(LOOK, call.input)
    (same,) = streamed(api, request, raw).tool_calls
    assert (same.input, same.raw_input) == (call.input, call.raw_input)
    again = build_request(PROVIDER, [user("go"), message], [LOOK], RequestOptions(model=MODEL, api=api))
    assert json.dumps(raw) in again.body.decode()
    assert answered(api, asked(api, None, LOOK), raw).tool_calls[0].input == json.loads(raw)


@apis
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_whatever_is_strict_keeps_to_the_subset(api: str, data: st.DataObject) -> None:
    tools = data.draw(tool_lists())
    request = asked(api, True, *tools)

    assert [finding for finding in lint_request(PROVIDER, request) if "strict" in finding.rule] == []
    for definition, sent in zip(tools, functions(request) if tools else (), strict=True):
        if sent.get("strict", False) is False:
            assert any("not sent as strict" in loss.reason for loss in request.losses), definition


class _Deep(BaseModel):
    n: int


class _Look(BaseModel):
    text: str
    kind: str | None
    deep: _Deep


@apis
def test_the_sdks_own_strict_schema_says_the_same(api: str) -> None:
    """But for titles, which ours never have, and a null told by `anyOf`, where ours is a list of types."""
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"type": "string"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
        "required": ["text", "deep"],
    }
    theirs = to_strict_json_schema(_Look)
    (ours,) = functions(asked(api, True, tool(schema)))

    assert ours["parameters"]["required"] == theirs["required"]
    assert ours["parameters"]["additionalProperties"] is theirs["additionalProperties"] is False
    assert ours["parameters"]["properties"]["kind"]["type"] == [
        one["type"] for one in theirs["properties"]["kind"]["anyOf"]
    ]
    assert ours["parameters"]["properties"]["deep"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": theirs["$defs"]["_Deep"]["required"],
        "additionalProperties": theirs["$defs"]["_Deep"]["additionalProperties"],
    }

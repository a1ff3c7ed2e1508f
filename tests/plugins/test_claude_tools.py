"""Tools that Claude's hosts refuse go in a form that they take, and arguments come back under the tools' own names.

Refusals: anthropics/claude-code#79418 (names), #40075 (roots), Kilo-Org/kilocode#12246 (the same on every host),
markform#153 and vellum-ai/vellum-assistant#18387 (results of failed calls).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlingua._plugins.registry import Registry
from interlingua.errors import CapabilityError
from interlingua.plugins import RequestContext, WireRequest, WireResponse, build_request
from interlingua.types import (
    ImageBlock,
    MediaSource,
    Message,
    Origin,
    RequestOptions,
    SideEffects,
    TextBlock,
    ToolDefinition,
    ToolUseBlock,
    WireTool,
    tool_result,
    user,
)
from interlingua_cli.lint import lint_request
from tests.support import driving
from tests.support.adapter import Adapter

REGISTRY = Registry()
HOSTS = {
    "anthropic": Adapter("anthropic", "messages", "claude-sonnet-4-5"),
    "vertex": Adapter("vertex", "messages", "claude-sonnet-4-5"),
    "azure": Adapter("azure", "messages", "claude-sonnet-4-5"),
    "bedrock": Adapter("bedrock", "converse", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "openrouter": Adapter("openrouter", "chat", "anthropic/claude-sonnet-4.5"),
}
ODD = {
    "type": "object",
    "properties": {
        "filter[id]": {"type": "string"},
        "$filter": {"type": "string"},
        "Account Number": {"type": "object", "properties": {"größe": {"type": "integer"}}, "required": ["größe"]},
        "filter_id": {"type": "string"},
        "x" * 70: {"type": "string"},
    },
    "required": ["filter[id]", "Account Number"],
}
ARGUMENTS = {"filter[id]": "1", "$filter": "a", "Account Number": {"größe": 3}, "filter_id": "2", "x" * 70: "y"}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
FLAGGED = [host for key, host in HOSTS.items() if key != "openrouter"]  # its wire has no flag
pytestmark = pytest.mark.usefixtures("quiet")


def tool(schema: dict[str, Any], *, foreign: bool = True) -> ToolDefinition:
    kind: Any = WireTool if foreign else ToolDefinition
    more = {"api": "elsewhere"} if foreign else {}
    return kind(name="search", description="", input_schema=schema, side_effects=SideEffects.READ, **more)  # type: ignore[no-any-return]


def write(host: Adapter, messages: list[Message], *tools: ToolDefinition) -> WireRequest:
    return build_request(host.provider, messages, tools, RequestOptions(model=host.model))


def schema_of(request: WireRequest) -> dict[str, Any]:
    body = json.loads(request.body)
    if "toolConfig" in body:
        return body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]  # type: ignore[no-any-return]
    one = body["tools"][0]
    return one["input_schema"] if "input_schema" in one else one["function"]["parameters"]  # type: ignore[no-any-return]


def names_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for child in schema.values():
            yield from names_of(child)


def context_of(host: Adapter, request: WireRequest) -> RequestContext:
    origin = Origin(host.key, host.api, host.model)
    names = {"tool_names": request.tool_names, "echo": request.echo}
    return RequestContext(origin=origin, message_id="01K000000000000000000000AA", session_id="s", **names)  # type: ignore[arg-type]


def answered(host: Adapter, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a whole answer of the host with one call."""
    if host.api == "converse":
        call = {"toolUse": {"toolUseId": "t1", "name": "search", "input": arguments}}
        return {"output": {"message": {"role": "assistant", "content": [call]}}, "stopReason": "tool_use"}
    if host.api == "messages":
        used = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": arguments}
        return {"type": "message", "role": "assistant", "content": [used], "stop_reason": "tool_use"}
    function = {"name": "search", "arguments": json.dumps(arguments)}
    asked = [{"id": "t1", "type": "function", "function": function}]
    return {"choices": [{"index": 0, "message": {"tool_calls": asked}, "finish_reason": "tool_calls"}]}


def on_wire(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(name, name): on_wire(inner, names) for name, inner in value.items()}
    return value


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("foreign", [True, False])
def test_names_that_the_service_refuses_are_changed_and_arguments_come_back(host: Adapter, foreign: bool) -> None:
    request = write(host, [user("go")], tool(ODD, foreign=foreign))
    sent = schema_of(request)

    assert lint_request(host.provider, request) == ()
    assert len(set(names_of(sent))) == len(set(names_of(ODD)))
    assert set(names_of(ODD)) - set(names_of(sent)) == {"filter[id]", "$filter", "Account Number", "größe", "x" * 70}
    assert len(sent["required"]) == 2
    assert set(sent["required"]) <= set(sent["properties"])
    assert sum(loss.verdict == "rewritten" for loss in request.losses) == 5

    back = request.echo["properties"]["search"]
    arguments = on_wire(ARGUMENTS, {name: wire for wire, name in back.items()})
    answer = json.dumps(answered(host, arguments)).encode()
    message = host.provider.from_wire_response(WireResponse(body=answer), context_of(host, request))
    assert message.tool_calls[0].input == ARGUMENTS


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_earlier_calls_go_under_the_names_that_the_tool_has_now(host: Adapter) -> None:
    call = ToolUseBlock(id="tu_1", name="search", input={"filter[id]": "7", "filter_id": "8"})
    history = [user("go"), host.answer(call), tool_result(call, "found")]
    request = write(host, history, tool(ODD))

    assert b"filter[id]" not in request.body
    assert lint_request(host.provider, request) == ()


def test_arguments_of_a_stream_come_back_under_the_tools_own_names() -> None:
    host = HOSTS["anthropic"]
    request = write(host, [user("go")], tool(ODD))
    back = request.echo["properties"]["search"]
    text = json.dumps(on_wire(ARGUMENTS, {name: wire for wire, name in back.items()}))
    pieces = [text[at : at + 9] for at in range(0, len(text), 9)]
    events = [
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}},
        *[{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
          for piece in pieces],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]  # fmt: skip
    raw = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    message = driving.streamed(host.provider, raw, context_of(host, request), 5)

    assert message.tool_calls[0].input == ARGUMENTS


A = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B = {"properties": {"b": {}, "a": {}}}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({}, set(), None),
        ({"properties": {"a": {"type": "string"}}}, {"a"}, None),
        ({"type": ["object", "null"], "properties": {"a": {}}}, {"a"}, None),
        ({"anyOf": [A, B]}, {"a", "b"}, None),
        ({"oneOf": [A, {**B, "required": ["a", "b"]}]}, {"a", "b"}, ["a"]),
        ({"allOf": [A, {**B, "required": ["b"]}], "type": "object"}, {"a", "b"}, ["a", "b"]),
        ({"$ref": "#/$defs/A", "$defs": {"A": A}}, {"a"}, ["a"]),
        ({"anyOf": [{"$ref": "#/$defs/N"}], "$defs": {"N": {"anyOf": [{"$ref": "#/$defs/N"}, A]}}}, {"a"}, None),
    ],
    ids=["empty", "no type", "or null", "anyOf", "oneOf", "allOf", "ref", "recursive"],
)
def test_a_root_that_the_service_refuses_becomes_an_object(
    host: Adapter, schema: dict[str, Any], properties: set[str], required: list[str] | None
) -> None:
    request = write(host, [user("go")], tool(schema))
    sent = schema_of(request)

    assert lint_request(host.provider, request) == ()
    assert sent["type"] == "object"
    assert set(sent.get("properties", {})) == properties
    assert sent.get("required") == required
    assert request.losses
    assert {loss.block_type for loss in request.losses} == {"tool"}


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_a_root_that_is_no_object_is_refused_by_the_tools_name(host: Adapter) -> None:
    with pytest.raises(CapabilityError, match="tool 'search' has the type 'string'"):
        write(host, [user("go")], tool({"type": "string"}))


@pytest.mark.parametrize("host", FLAGGED, ids=lambda host: host.key)
@pytest.mark.parametrize("content", [[], [" "], ["picture"], ["text", "picture"]], ids=str)
def test_a_failed_result_holds_text_and_loses_nothing(host: Adapter, content: list[str]) -> None:
    picture = ImageBlock(source=MediaSource(kind="base64", data=PNG), media_type="image/png")
    call = ToolUseBlock(id="tu_1", name="search", input={})
    parts = [picture if part == "picture" else TextBlock(text=part) for part in content]
    history = [user("go"), host.answer(call), tool_result(call, parts, is_error=True)]
    request = write(host, history, tool({"type": "object", "properties": {}}, foreign=False))

    assert lint_request(host.provider, request) == ()
    assert (PNG.encode() in request.body) is ("picture" in content)
    assert b"The tool failed" in request.body
    assert [loss.verdict for loss in request.losses if "error result" in loss.reason] == ["rewritten"]

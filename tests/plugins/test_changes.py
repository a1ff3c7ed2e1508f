"""Changes of tools, effort and format: what is cached and bound thinking stay; other services get them whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from anthropic.types.beta import BetaMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

import interlingua as il
from interlingua._request.rules import check_message
from interlingua.codec import decode_message, encode_message
from interlingua.plugins import Registry, RequestContext, WireRequest, WireResponse, build_request
from interlingua.testing import MemoryReply, MemoryTransport
from interlingua.types import (
    ChangeBlock,
    Message,
    Origin,
    RequestOptions,
    Role,
    TextBlock,
    ToolDefinition,
    change,
    tools_at,
    user,
)
from interlingua_anthropic import client_tool
from interlingua_serving import ServeContext, find_serving_plugin

REGISTRY = Registry()
MODELS = {"anthropic": "claude-opus-5-5", "openai": "gpt-6-astra", "google": "gemini-3-pro-preview"}


def tool(name: str, description: str = "") -> ToolDefinition:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    return ToolDefinition(name=name, description=description or name, input_schema=schema, side_effects="read")


ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FIRST = [tool("read_file"), tool("search")]
CHANGES = {
    3: change(add=[tool("deploy")], effort="high"),
    6: change(remove=["search"]),
    9: change(add=[tool("deploy", "another way")], remove=["deploy"], effort="low"),
}


class CheckedService:
    """A scripted service that refuses a changed prefix, and thinking that was made behind another prefix.

    What it has cached are the bytes of the members at the front and those of all messages of the last request.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.listed, self.thought = ("input", "encrypted_content") if key == "openai" else ("messages", "signature")
        self.before: tuple[list[bytes], bytes] | None = None
        self.asked: list[dict[str, Any]] = []

    def answer(self, sent: bytes) -> bytes:
        body = json.loads(sent)
        head = [_member(sent, name) for name in ("tools", "instructions", "system", "reasoning", "text")]
        items = _member(sent, self.listed)
        if self.before is not None:
            assert head == self.before[0], "the tools, the prompt or the effort at the front have changed"
            assert items.startswith(self.before[1][:-1]), "an earlier item has changed"
        self.before = head, items
        self._check_thoughts(body, len(self.asked))
        self.asked.append(body)
        number, digest = len(self.asked), self._digest(body, len(body[self.listed]))
        if self.key == "openai":
            TypeAdapter(list[ResponseInputItemParam]).validate_python(
                [one for one in body["input"] if one["type"] != "message"]
            )
            thought: dict[str, Any] = {"id": f"rs_{number}", "type": "reasoning", "summary": []}
            said = {"type": "output_text", "text": f"Answer {number}.", "annotations": []}
            item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [said]}
            output = [{**thought, "encrypted_content": digest}, {**item, "status": "completed"}]
            return json.dumps({"status": "completed", "output": output}).encode()
        TypeAdapter(list[BetaMessageParam]).validate_python(body["messages"])
        thought = {"type": "thinking", "thinking": "Well.", "signature": digest}
        content = [thought, {"type": "text", "text": f"Answer {number}."}]
        return json.dumps({"type": "message", "content": content, "stop_reason": "end_turn"}).encode()

    def _check_thoughts(self, body: dict[str, Any], made: int) -> None:
        """Check that all thoughts that were made have come back, each behind the prefix that it was made for."""
        found = 0
        for at, item in enumerate(body[self.listed]):
            for part in [item, *(item.get("content") or ())]:
                if isinstance(part, dict) and self.thought in part:
                    assert part[self.thought] == self._digest(body, at), "thinking is bound to another conversation"
                    found += 1
        assert found == made, "thinking was left out"

    def _digest(self, body: dict[str, Any], at: int) -> str:
        seen = [body.get("tools"), body.get("system"), body.get("instructions"), body[self.listed][:at]]
        return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def _member(body: bytes, name: str) -> bytes:
    """Return the bytes of a member of the body; b"" if it is missing."""
    text, start = body.decode(), f'"{name}":'
    members = {key: json.dumps(value) for key, value in json.loads(body).items()}
    if name not in members:
        return b""
    begin = text.index(start) + len(start)
    while json.dumps(json.JSONDecoder().raw_decode(text, begin)[0]) != members[name]:  # the name of an inner member
        begin = text.index(start, begin) + len(start)
    return text[begin : json.JSONDecoder().raw_decode(text, begin)[1]].encode()


def ask(key: str, history: Sequence[Message], service: CheckedService | None) -> tuple[Any, Message]:
    provider = REGISTRY.provider(key)
    made = build_request(provider, history, FIRST, RequestOptions(model=MODELS[key]))
    body = service.answer(made.body) if service else b'{"candidates":[{"content":{"parts":[{"text":"G."}]}}]}'
    context = RequestContext(origin=Origin(key, made.api, MODELS[key]), echo=made.echo, tool_names=made.tool_names)
    return made, provider.from_wire_response(WireResponse(body=body), context)


@pytest.mark.parametrize("key", ["anthropic", "openai"])
@pytest.mark.parametrize("swapped", [False, True], ids=["stays", "swapped at turn 5"])
def test_ten_turns_with_changes_keep_the_prefix_and_the_thinking(key: str, swapped: bool) -> None:
    service, history = CheckedService(key), []
    for turn in range(1, 11):
        if turn in CHANGES:
            history.append(CHANGES[turn])
        history.append(user(f"Turn {turn}."))
        away = swapped and turn == 5
        made, answer = ask("google" if away else key, history, None if away else service)
        if away:
            declared = json.loads(made.body)["tools"][0]["functionDeclarations"]
            assert [one["name"] for one in declared] == ["read_file", "search", "deploy"]
            assert [row.block_type for row in made.losses if "cached" in row.reason] == ["change", "change"]
        elif turn != 9:
            assert not [row for row in made.losses if row.block_type in ("change", "tool", "thinking")], turn
        history.append(answer)

    assert len(service.asked) == (9 if swapped else 10)


@pytest.mark.parametrize(("later", "why"), [
    (b'{"input":[{"role":"user","type":"message","content":[]}]}', "an earlier item"),
    (b'{"input":[{"type":"message","role":"user","content":[]}],"tools":[]}', "at the front"),
    (b'{"input":[{"type":"message","role":"user","content":[]}]}', "left out"),
    (b'{"input":[{"type":"message","role":"user","content":[]},{"encrypted_content":"x"}]}', "another conversation"),
])  # fmt: skip
def test_the_checks_of_the_service_find_each_fault(later: bytes, why: str) -> None:
    service = CheckedService("openai")
    service.answer(b'{"input":[{"type":"message","role":"user","content":[]}]}')
    with pytest.raises(AssertionError, match=why):
        service.answer(later)


def test_the_forms_of_the_services() -> None:
    history = [user("a"), il.assistant("b"), CHANGES[3], user("c")]
    made = build_request(REGISTRY.provider("anthropic"), history, FIRST, RequestOptions(model=MODELS["anthropic"]))
    last = json.loads(made.body)["messages"][-1]
    definition = {"name": "deploy", "description": "deploy", "input_schema": FIRST[0].input_schema}
    assert last == {
        "role": "system",
        "output_config": {"effort": "high"},
        "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}],
    }
    assert {"inline-tools-2026-09-15", "mid-conversation-output-config-2026-07-01"} <= {
        *made.headers["anthropic-beta"].split(",")
    }
    items = json.loads(
        build_request(REGISTRY.provider("openai"), history, FIRST, RequestOptions(model="gpt-6-astra")).body
    )
    assert [item["type"] for item in items["input"]] == [
        "message", "message", "additional_tools", "configuration_update", "message",
    ]  # fmt: skip
    assert items["input"][3] == {"type": "configuration_update", "reasoning": {"effort": "high"}}


@pytest.mark.parametrize(("changes", "kinds"), [
    ([change(effort="high"), change(effort="low")], ["configuration_update"]),
    ([change(effort="high"), change(remove=["search"]), change(effort="low")], ["configuration_update"]),
    ([change(add=[tool("deploy")], effort="high"), change(effort="low")], ["additional_tools", "configuration_update"]),
    ([change(effort="high"), change(add=[tool("deploy")], effort="low")],
     ["configuration_update", "additional_tools", "configuration_update"]),
])  # fmt: skip
def test_only_the_last_of_two_changes_of_effort_in_a_row_is_sent(changes: list[Message], kinds: list[str]) -> None:
    history = [user("a"), il.assistant("b"), *changes, user("c"), il.assistant("d"), CHANGES[3], user("e")]
    made = build_request(REGISTRY.provider("openai"), history, FIRST, RequestOptions(model="gpt-6-astra"))
    items = json.loads(made.body)["input"]

    assert [item["type"] for item in items[2:-5]] == kinds
    assert items[-6] == {"type": "configuration_update", "reasoning": {"effort": "low"}}
    assert items[-2] == {"type": "configuration_update", "reasoning": {"effort": "high"}}
    assert not [loss for loss in made.losses if loss.block_type == "change"]


def _items(history: list[Message], model: str = "gpt-6-astra", **options: Any) -> tuple[dict[str, Any], Any]:
    made = build_request(REGISTRY.provider("openai"), history, (), RequestOptions(model=model, **options))
    body = json.loads(made.body)
    TypeAdapter(list[ResponseInputItemParam]).validate_python(
        [one for one in body["input"] if one["type"] != "message"]
    )
    return body, made


def test_the_format_of_answers_changes_within_the_conversation() -> None:
    first = {**ANSWER, "properties": {"m": {"type": "string"}}, "required": ["m"]}
    history = [user("a"), il.assistant("b"), change(response_schema=ANSWER), user("c"), il.assistant("d")]
    body, made = _items([*history, change(response_schema={}), user("e")], response_schema=first)

    schema = {"type": "json_schema", "name": "response", "strict": True, "schema": ANSWER}
    assert body["text"]["format"]["schema"] == first  # at the front the first one stays
    assert body["input"][2] == {"type": "configuration_update", "text": {"format": schema}}
    assert body["input"][5] == {"type": "configuration_update", "text": {"format": {"type": "text"}}}
    assert not made.losses
    shorter, _ = _items(history, response_schema=first)
    assert body["input"][: len(shorter["input"])] == shorter["input"]
    assert shorter["text"] == body["text"]


def test_a_format_that_strict_mode_refuses_is_asked_for_with_a_row() -> None:
    loose = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body, made = _items([user("a"), il.assistant("b"), change(response_schema=loose), user("c")])

    assert body["input"][2]["text"]["format"]["strict"] is False
    assert [(row.path, row.block_type, row.verdict) for row in made.losses] == [
        ("messages[2].content[0]", "change", "rewritten")
    ]


@pytest.mark.parametrize(("changes", "updates"), [
    ([change(effort="high"), change(response_schema={})],
     [{"reasoning": {"effort": "high"}, "text": {"format": {"type": "text"}}}]),
    ([change(effort="high", response_schema={}), change(remove=["search"]), change(effort="low")],
     [{"reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}}]),
    ([change(response_schema={}), change(add=[tool("deploy")], effort="low")],
     [{"text": {"format": {"type": "text"}}}, {"reasoning": {"effort": "low"}}]),
])  # fmt: skip
def test_updates_in_a_row_become_one_with_all_their_settings(changes: list[Message], updates: list[Any]) -> None:
    body, _ = _items([user("a"), il.assistant("b"), *changes, user("c")])

    found = [item for item in body["input"] if item["type"] == "configuration_update"]
    assert found == [{"type": "configuration_update", **update} for update in updates]


@pytest.mark.parametrize(("key", "model", "read"), [
    ("anthropic", "claude-opus-5-5", lambda body: body["output_config"]["format"]["schema"]),
    ("openai", "gpt-5.5", lambda body: body["text"]["format"]["schema"]),
    ("google", "gemini-3-pro-preview", lambda body: body["generationConfig"]["responseJsonSchema"]),
    ("mistral", "m", lambda body: body["response_format"]["json_schema"]["schema"]),
    ("ollama", "m", lambda body: body["format"]),
])  # fmt: skip
def test_another_service_gets_the_format_as_a_whole_with_a_row(key: str, model: str, read: Any) -> None:
    history = [user("a"), il.assistant("b"), change(response_schema=ANSWER), user("c")]
    options = RequestOptions(model=model, capabilities={"supports_structured_output": True})
    made = build_request(REGISTRY.provider(key), history, (), options)
    again = build_request(REGISTRY.provider(key), [*history, change(response_schema={}), user("d")], (), options)

    assert read(json.loads(made.body))["properties"] == ANSWER["properties"]
    rows = [(row.path, row.block_type, row.verdict) for row in made.losses]
    assert rows == [("messages[2].content[0]", "change", "rewritten")]
    assert '"n"' not in again.body.decode()


def test_a_model_without_structured_output_refuses_a_format_before_anything_is_sent() -> None:
    history = [user("a"), il.assistant("b"), change(response_schema=ANSWER), user("c")]
    client = il.Client("ollama:m", transport=MemoryTransport(lambda _: MemoryReply()))
    with client, pytest.raises(il.CapabilityError, match="response_schema"):
        client.send(history, capabilities={"supports_structured_output": False})


SERVED = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hi."}]},
    {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [
        {"type": "function", "name": "get_it", "parameters": FIRST[0].input_schema, "strict": True},
        {"type": "function", "name": "later", "description": "L.", "parameters": ANSWER, "defer_loading": True},
    ]},
    {"type": "configuration_update", "id": "cu_1", "reasoning": {"effort": "high"}, "text": {"format": {
        "type": "json_schema", "name": "own_name", "schema": ANSWER, "strict": False,
    }}},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
    {"type": "configuration_update", "text": {"format": {"type": "text"}}},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And then?"}]},
]  # fmt: skip


def _served(items: list[Any], provider: str, model: str, **more: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return what a service gets of a request to the gateway for that model, and the ledger."""
    body = {"model": model, "input": items, **more}
    wire = WireRequest(path="/responses", body=json.dumps(body).encode(), api="responses")
    asked = ServeContext(provider="openai", api="responses")
    read = find_serving_plugin(REGISTRY, "openai").from_wire_request(wire, asked)
    upstream = REGISTRY.provider(provider)
    api = upstream.capabilities(model, RequestOptions(model=model)).api
    messages, options, _ = read.for_upstream(provider, api, model)
    options = attrs.evolve(options, model=model, api=api)
    made = build_request(upstream, messages, read.tools, options)
    return json.loads(made.body), [*made.losses]


def test_changes_of_a_served_request_reach_their_service_unchanged() -> None:
    body, losses = _served(SERVED, "openai", "gpt-6-astra")

    assert body["input"] == SERVED
    assert not losses


def test_an_edited_change_of_a_served_request_is_written_anew() -> None:
    known: Any = SERVED[1]
    again = {**known, "id": "at_2", "tools": [{**known["tools"][0], "name": "read_file"}]}
    own = [{"type": "function", "name": "read_file", "parameters": ANSWER}]
    body, losses = _served([SERVED[0], again, SERVED[-1]], "openai", "gpt-6-astra", tools=own)

    assert [item["type"] for item in body["input"]] == ["message", "message"]
    assert body["tools"][0]["parameters"] == FIRST[0].input_schema  # no item replaces a tool of the request
    assert [row.path for row in losses] == ["tools[0]"]


def test_changes_of_a_served_request_have_their_effect_at_another_service() -> None:
    body, losses = _served(SERVED[:4], "anthropic", "claude-sonnet-5")

    assert [(one["name"], one.get("description")) for one in body["tools"]] == [("get_it", None), ("later", "L.")]
    assert body["output_config"]["effort"] == "high"
    assert body["output_config"]["format"]["schema"]["properties"] == ANSWER["properties"]
    assert "format" not in _served(SERVED, "anthropic", "claude-sonnet-5")[0]["output_config"]
    whole = [(row.path, row.block_type) for row in losses if row.block_type in ("change", "tool")]
    assert whole == [
        ("messages[1].content[0]", "change"),
        ("messages[2].content[0]", "change"),
        ("messages[2].content[0]", "change"),
        ("tools[1]", "tool"),  # no search finds what was deferred
    ]


ANY = {"type": "function", "name": "WebFetch", "parameters": {"anyOf": [{"type": "object"}]}}
PATCH = {"type": "custom", "name": "patch", "format": {"type": "text"}}
SPACE = {"type": "namespace", "name": "files", "description": "F.", "tools": [{**ANY, "description": None}, PATCH]}


@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
@pytest.mark.parametrize(("tools", "names", "dropped"), [
    ([ANY], ["WebFetch"], 0),
    ([PATCH, SPACE], ["patch", "files__WebFetch", "files__patch"], 0),
    ([{"type": "local_shell"}, {"type": "apply_patch"}], ["local_shell", "apply_patch"], 0),
    ([ANY, {"type": "web_search"}, PATCH], ["WebFetch", "patch"], 1),
])  # fmt: skip
def test_a_served_change_may_add_any_tool_that_a_request_may_have(
    tools: list[Any], names: list[str], dropped: int, first: bool
) -> None:
    added = {"type": "additional_tools", "role": "developer", "tools": tools}
    items = [added, SERVED[0]] if first else [SERVED[0], added, SERVED[-1]]

    body, losses = _served(items, "openai", "gpt-6-astra")
    assert body["input"] == items
    assert not losses
    body, losses = _served(items, "anthropic", "claude-opus-5-5")
    (change,) = [message["content"] for message in body["messages"] if message["role"] == "system"]
    assert [part["tool"]["definition"]["name"] for part in change] == names
    assert [row.block_type for row in losses] == ["opaque"] * dropped
    body, losses = _served(items, "mistral", "mistral-large-latest")
    assert [one["function"]["name"] for one in body["tools"]] == names
    assert [row.verdict for row in losses if row.block_type in ("change", "opaque")] == (
        ["rewritten"] + ["dropped"] * dropped
    )


def test_a_call_of_a_custom_tool_that_a_served_change_added_is_answered_in_its_form() -> None:
    plugin = find_serving_plugin(REGISTRY, "openai")
    items = [SERVED[0], {"type": "additional_tools", "role": "developer", "tools": [PATCH]}]
    wire = WireRequest(path="/responses", body=json.dumps({"model": "m", "input": items}).encode(), api="responses")
    asked = ServeContext(provider="openai", api="responses", model="m")
    read = plugin.from_wire_request(wire, asked)
    answer = il.assistant([il.ToolUseBlock(id="c", name="patch", input={"input": "+a"})])
    written = plugin.to_wire_response(answer, attrs.evolve(asked, echo=read.echo, origin=Origin("google", "g", "m")))

    (call,) = json.loads(written.body)["output"]
    assert (call["type"], call["input"]) == ("custom_tool_call", "+a")


@pytest.mark.parametrize("item", [
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]},
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function"}]},
    {"type": "configuration_update", "reasoning": {"effort": "high", "mode": "pro"}},
    {"type": "configuration_update", "text": {"format": {"type": "json_object"}}},
    {"type": "configuration_update", "text": {"verbosity": "low"}},
    {"type": "configuration_update"},
])  # fmt: skip
def test_a_served_change_of_what_only_this_api_has_goes_there_unchanged(item: dict[str, Any]) -> None:
    items = [SERVED[0], item, SERVED[-1]]

    assert _served(items, "openai", "gpt-6-astra")[0]["input"] == items
    assert [row.verdict for row in _served(items, "anthropic", "claude-sonnet-5")[1]] == ["dropped"]


def test_a_model_that_takes_no_update_gets_it_to_refuse_it() -> None:
    items = [SERVED[0], {"type": "configuration_update", "reasoning": {"effort": "high"}}, SERVED[-1]]

    assert _served(items, "openai", "gpt-5.5")[0]["input"] == items


@pytest.mark.parametrize("key", ["openai", "mistral"])
def test_a_tool_that_was_added_may_be_required_and_a_removed_one_may_not(key: str) -> None:
    transport = MemoryTransport(lambda _request: MemoryReply(b"{}"))
    history = [user("a"), il.assistant("b"), CHANGES[3], CHANGES[6], user("c")]
    with il.Client(f"{key}:{MODELS.get(key, 'm')}", transport=transport, environ={}) as client:
        body = client.build_request(history, tools=FIRST, tool_choice=il.ToolChoice("deploy"), allow_loss=True).body
        with pytest.raises(il.errors.CallerError, match="'search', but the request offers: read_file, deploy"):
            client.build_request(history, tools=FIRST, tool_choice=il.ToolChoice("search"))

    choice = json.loads(body)["tool_choice"]
    assert (choice.get("function") or choice)["name"] == "deploy"


def test_a_removed_tool_may_not_be_called() -> None:
    history = [user("a"), il.assistant("b"), CHANGES[3], CHANGES[6], user("c")]
    body = json.loads(build_request(REGISTRY.provider("openai"), history, FIRST, RequestOptions(model="gpt-5.5")).body)

    assert [one["name"] for one in body["tools"]] == ["read_file", "search"]
    assert body["tool_choice"] == {
        "type": "allowed_tools", "mode": "auto",
        "tools": [{"type": "function", "name": "read_file"}, {"type": "function", "name": "deploy"}],
    }  # fmt: skip
    assert body["reasoning"]["effort"] == "high"  # this model takes no change of it within the conversation


@pytest.mark.parametrize("key", ["google", "cohere", "mistral", "ollama", "bedrock"])
def test_another_service_gets_the_whole_list_with_a_row(key: str) -> None:
    model = "anthropic.claude-opus-4-8" if key == "bedrock" else MODELS.get(key, "m")
    history = [user("a"), il.assistant("b"), CHANGES[3], CHANGES[6], user("c")]
    facts = {"supports_tools": True}
    made = build_request(REGISTRY.provider(key), history, FIRST, RequestOptions(model=model, capabilities=facts))

    body = made.body.decode()
    assert '"deploy"' in body
    assert '"search"' not in body
    rows = [(row.path, row.verdict) for row in made.losses if row.block_type == "change"]
    assert rows == [("messages[2].content[0]", "rewritten")] * 2 + [("messages[3].content[0]", "rewritten")]


def test_the_tools_of_a_conversation() -> None:
    history = [*CHANGES.values()]

    assert [one.name for one in tools_at(FIRST, history)] == ["read_file", "deploy"]
    assert tools_at(FIRST, history)[1].description == "another way"
    assert tools_at(FIRST, history[:1]) == (*FIRST, tool("deploy"))


def test_a_change_is_stored_and_read_again() -> None:
    stored = json.loads(json.dumps(encode_message(CHANGES[3])))

    assert stored["content"][0]["type"] == "change"
    assert stored["content"][0]["tools_added"][0]["input_schema"]["required"] == ["x"]
    assert decode_message(stored) == CHANGES[3]
    of_a_service = change(add=[client_tool("bash_20250124"), tool("deploy")])
    assert decode_message(json.loads(json.dumps(encode_message(of_a_service)))) == of_a_service
    for schema in (ANSWER, {}):
        kept = change(response_schema=schema)
        assert decode_message(json.loads(json.dumps(encode_message(kept)))) == kept
    stored["content"][0]["tools_added"][0]["newer"] = 1
    assert json.loads(json.dumps(encode_message(decode_message(stored)))) == stored


def test_a_change_is_in_system_messages_only() -> None:
    block = ChangeBlock(tools_removed=("search",))
    found = check_message(Message(role=Role.USER, content=(TextBlock(text="x"), block)))
    assert [one.path for one in found] == ["content[1]"]
    assert not [one for one in check_message(CHANGES[3]) if not one.repairable]


@pytest.mark.parametrize("model", ["anthropic.claude-opus-5", "amazon.nova-pro-v1:0"])
@pytest.mark.parametrize(
    "malformed",
    [{"properties": ["x"]}, {"properties": True}, {"properties": {"x": {"type": True}}}, {"required": 1.5},
     {"required": [{}]}],
)  # fmt: skip
def test_a_malformed_schema_of_a_caller_reaches_its_service(malformed: dict[str, Any], model: str) -> None:
    schema = {"type": "object", "anyOf": [{"properties": {"a b": {"type": "string"}}}, malformed], **malformed}
    body = {
        "model": "claude-opus-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}],
        "tools": [{"name": "search", "input_schema": schema}],
    }  # fmt: skip
    wire = WireRequest(path="/messages", body=json.dumps(body).encode(), api="messages")
    read = find_serving_plugin(REGISTRY, "anthropic").from_wire_request(
        wire, ServeContext(provider="anthropic", api="messages")
    )
    assert read is not None
    messages, options, _ = read.for_upstream("bedrock", "converse", model)
    written = build_request(REGISTRY.provider("bedrock"), messages, read.tools, options)

    assert b'"search"' in written.body

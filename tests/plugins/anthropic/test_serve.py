"""Requests of the Messages API as clients make them, read; answers of other origins, written for those clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlingua.errors import CallerError, ContextWindowExceededError, PluginError
from interlingua.plugins import Registry, WireRequest, build_request
from interlingua.types import (
    BlockEnd,
    Message,
    MessageComplete,
    Origin,
    RawUpdate,
    RequestOptions,
    Role,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
    replace,
)
from interlingua_serving import InboundRequest, ServeContext, find_serving_plugin
from tests.serving.answers import context, unseal

REGISTRY = Registry()
PLUGIN = find_serving_plugin(REGISTRY, "anthropic")
CALLER: dict[str, Any] = {  # as Claude Code asks for a model whose name it does not know
    "model": "gpt-5.1",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197; cc_entrypoint=sdk-cli;"},
        {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What does note.txt say?"}]},
        {"role": "system", "content": "Agents: claude."},
    ],
    "tools": [
        {
            "name": "Read",
            "description": "Reads a file.",
            "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                             "properties": {"path": {"type": "string", "minLength": 1}}},
            "eager_input_streaming": True,
        }
    ],
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": '{"device_id":"1"}'},
}  # fmt: skip


def _read(body: dict[str, Any], **headers: str) -> InboundRequest:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = WireRequest(path="/v1/messages?beta=true", headers=names, body=json.dumps(body).encode(), api="messages")
    return PLUGIN.from_wire_request(request, context("anthropic", "messages", None))


def test_a_request_of_claude_code_is_read() -> None:
    read = _read(CALLER, anthropic_beta="claude-code-20250219", anthropic_version="2023-06-01")

    assert [message.role for message in read.messages] == ["system", "system", "user", "system"]
    assert read.private == (0,)
    assert (read.options.model, read.options.stream, read.options.max_tokens) == ("gpt-5.1", True, 32000)
    assert (read.options.thinking, read.options.effort) == (True, "high")
    assert read.options.user_id == '{"device_id":"1"}'
    assert read.extra["context_management"] == CALLER["context_management"]
    assert read.extra["betas"] == "claude-code-20250219"
    (tool,) = read.tools
    assert (tool.name, tool.input_schema["properties"]["path"]["minLength"]) == ("Read", 1)
    assert tool.extra_of("messages") == {"eager_input_streaming": True}


def test_another_upstream_gets_the_prompt_and_not_the_accounts_line() -> None:
    read = _read(CALLER)
    messages, options, losses = read.for_upstream("openai", "responses", "gpt-5.1")
    wire = build_request(REGISTRY.provider("openai"), messages, read.tools, options)
    body = wire.body.decode()

    assert "billing" not in body
    assert "You are an agent." in body
    assert "Agents: claude." in body
    assert '"Read"' in body
    assert "context_management" not in body
    assert {(loss.path, loss.verdict) for loss in losses} == {
        ("options.provider_options.context_management", "dropped"),
        ("messages[0]", "dropped"),
    }


def test_neighbouring_turns_of_the_assistant_are_one_answer() -> None:
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "A", "input": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "B", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    read = _read({"model": "m", "max_tokens": 9, "messages": turns})

    assert [message.role for message in read.messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [call.name for call in read.messages[1].tool_calls] == ["A", "B"]
    assert read.messages[3].metadata.parent_tool_use_id == "toolu_2"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"model": 3}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\.0\.role"),
        ({"messages": [{"role": "user", "content": 5}]}, r"messages\.0\.content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, r"messages\.0.*text"),
        ({"messages": ["x"]}, r"messages\.0"),
        ({"tools": [{"name": "x"}]}, r"tools\.0\.input_schema"),
        ({"tools": {}}, "tools"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
def test_what_the_api_does_not_allow_is_the_callers_mistake(change: dict[str, Any], place: str) -> None:
    with pytest.raises(CallerError, match=place) as caught:
        _read(CALLER | change)

    assert "RequestOptions" not in caught.value.message


def test_a_seal_that_may_not_be_used_is_dropped_with_a_row() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbGVk"}
    turns = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "x"}]},
    ]
    request = WireRequest(
        path="/v1/messages", body=json.dumps({"model": "m", "messages": turns}).encode(), api="messages"
    )
    refusing = ServeContext(provider="anthropic", api="messages", unseal=lambda _text: {})
    read = PLUGIN.from_wire_request(request, refusing)

    assert [block.type for block in read.messages[1].content] == ["text"]
    assert [(loss.path, loss.verdict) for loss in read.losses] == [("messages[1]", "dropped")]


FOREIGN = Origin("google", "generate", "gemini")
CALL = ToolUseBlock(id="tu_1", name="Read", input={"path": "a"}, provider_id="fc_9", signature="c2ln")
EVENTS = (
    ThinkingDelta(index=0, text="Hm."),
    BlockEnd(index=0, block=ThinkingBlock(text="")),
    TextDelta(index=1, text="Looking."),
    ToolUseStart(index=2, id="tu_1", name="Read", provider_id="fc_9"),
    ToolUseInputDelta(index=2, partial_json='{"path": "a"}'),
    ToolUseEnd(index=2, block=CALL),
    RawUpdate(replay={"media": {"x": 1}}),
    MessageComplete(stop_reason=StopReason.TOOL_USE),
)


def _events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: ")]


def test_the_state_of_a_call_stands_in_a_thinking_block_before_it() -> None:
    writer = PLUGIN.stream_to_wire(context("anthropic", "messages", FOREIGN))
    events = _events(writer.feed(EVENTS) + writer.end())
    blocks = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    signatures = [event["delta"]["signature"] for event in events if event.get("delta", {}).get("signature")]

    assert blocks == ["thinking", "text", "thinking", "tool_use"]
    state = unseal(signatures[1])
    assert state["origin"] == list(FOREIGN)
    assert state["replay"] == {"media": {"x": 1}}
    (entry,) = state["blocks"]
    assert (entry["id"], entry["provider_id"], entry["signature"]) == ("tu_1", "fc_9", "c2ln")
    assert writer.losses == []


def test_while_a_call_waits_there_are_pings() -> None:
    writer = PLUGIN.stream_to_wire(context("anthropic", "messages", FOREIGN))
    writer.feed(EVENTS[:4])

    assert writer.feed(EVENTS[4:5]) == b'event: ping\ndata: {"type": "ping"}\n\n'


def test_the_services_own_call_is_streamed_as_it_comes() -> None:
    writer = PLUGIN.stream_to_wire(context("anthropic", "messages", Origin("anthropic", "messages", "m")))
    writer.feed([ToolUseStart(index=0, id="tu_1", name="Read", provider_id="toolu_9")])

    assert b'"partial_json":"{"' in writer.feed([ToolUseInputDelta(index=0, partial_json="{")])


def test_a_tool_of_anothers_service_is_no_call_of_the_caller() -> None:
    writer = PLUGIN.stream_to_wire(context("anthropic", "messages", FOREIGN))
    body = writer.feed([TextDelta(index=0, text="x"), MessageComplete(stop_reason=StopReason.TOOL_USE)])

    assert b'"stop_reason":"end_turn"' in body


def test_without_a_seal_state_is_a_row() -> None:
    asked = context("anthropic", "messages", FOREIGN, seal=None)
    writer = PLUGIN.stream_to_wire(asked)
    body = writer.feed(EVENTS) + writer.end()

    assert b"c2ln" not in body
    assert [loss.verdict for loss in writer.losses] == ["dropped"]


def test_the_services_own_answer_is_written_as_it_was() -> None:
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "own"}, {"type": "text", "text": "Hi."}]
    blocks = (ThinkingBlock(text="Hm.", signature="own"), TextBlock(text="Hi."))
    message = Message(role=Role.ASSISTANT, content=blocks)
    own = context("anthropic", "messages", Origin("anthropic", "messages", "claude"))
    body = json.loads(PLUGIN.to_wire_response(message, own).body)

    assert body["content"] == content
    assert (body["model"], body["id"]) == ("asked-for", f"msg_{own.answer_id}")


def test_errors_have_the_words_that_clients_look_for() -> None:
    asked = context("anthropic", "messages", None)
    too_long = PLUGIN.to_wire_error(ContextWindowExceededError("too many tokens"), asked)
    ours = PLUGIN.to_wire_error(PluginError("secret"), asked)

    assert too_long.status == 400
    assert json.loads(too_long.body)["error"]["message"].startswith("prompt is too long")
    assert (ours.status, b"secret" in ours.body) == (500, False)


def test_models_and_counts() -> None:
    asked = context("anthropic", "messages", None)
    listed = json.loads(PLUGIN.to_wire_auxiliary("models", ["a", "b"], asked).body)

    assert [model["id"] for model in listed["data"]] == ["a", "b"]
    assert json.loads(PLUGIN.to_wire_auxiliary("count_tokens", 7, asked).body) == {"input_tokens": 7}


def _sent(turns: list[dict[str, Any]], provider: str = "anthropic", model: str = "claude-opus-5-5") -> Any:
    read = _read({"model": model, "max_tokens": 9, "messages": turns})
    api = "messages" if provider == "anthropic" else "responses"
    messages, options, _ = read.for_upstream(provider, api, model)
    return build_request(REGISTRY.provider(provider), messages, read.tools, options)


LOW: dict[str, Any] = {"role": "system", "content": [], "output_config": {"effort": "low"}}
ONCE = {"role": "system", "content": [{"type": "text", "text": "Once."}], "clear_at": "next_user_message"}
ADDED = {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}}]}
ASKED, SAID = ({"role": role, "content": [{"type": "text", "text": role}]} for role in ("user", "assistant"))


@pytest.mark.parametrize(
    "turns",
    [
        [LOW, ASKED, SAID, ASKED],
        [ASKED, ONCE, SAID, ASKED],
        [ASKED, SAID, LOW, ASKED],
        [ASKED, ONCE, LOW, SAID, ASKED],
        [ASKED, LOW, ADDED, SAID, ASKED],
        [ASKED, ADDED, ONCE],
    ],
    ids=["first", "clear_at", "before a user", "two", "beside a change of tools", "last"],
)
def test_members_of_system_messages_come_through(turns: list[dict[str, Any]]) -> None:
    made = _sent(turns)

    assert json.loads(made.body)["messages"] == turns
    assert not made.losses


def test_another_service_gets_a_row_for_members_of_system_messages() -> None:
    made = _sent([ASKED, ONCE, SAID, LOW, ASKED], "openai", "gpt-5.5")

    assert "Once." in made.body.decode()
    assert [(loss.path, loss.block_type, loss.verdict) for loss in made.losses if loss.block_type != "option"] == [
        ("messages[1].content[1]", "opaque", "dropped"),
        ("messages[3].content[0]", "change", "rewritten"),
    ]
    assert json.loads(made.body)["reasoning"]["effort"] == "low"


TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": "D.", "input_schema": {"type": "object", "properties": {}}}
    for name in ("Read", "WebFetch", "f")
]
REFERRED, GONE = ({"type": "tool_reference", "name": name} for name in ("WebFetch", "f"))
NEW = {**TOOLS[0], "name": "mcp__x__go-on", "description": "New."}
CHANGED: dict[str, Any] = {
    "role": "system",
    "content": [
        {"type": "text", "text": "From now on:"},
        {"type": "tool_removal", "tool": GONE},
        {"type": "tool_addition", "tool": REFERRED},
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": NEW},
         "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Go on."},
    ],
    "output_config": {"effort": "high"},
}  # fmt: skip


def _changed(provider: str, model: str, asked: str = "claude-opus-5-5") -> Any:
    tools = [TOOLS[0], {**TOOLS[1], "defer_loading": True}, TOOLS[2]]
    read = _read({"model": asked, "max_tokens": 9, "messages": [ASKED, CHANGED, SAID, ASKED], "tools": tools})
    upstream = REGISTRY.provider(provider)
    api = upstream.capabilities(model, RequestOptions(model=model)).api
    messages, options, _ = read.for_upstream(provider, api, model)
    made = build_request(upstream, messages, read.tools, replace(options, model=model, api=api))
    return json.loads(made.body), made.losses


@pytest.mark.parametrize("asked", ["claude-opus-5-5", "an-alias"])
def test_changes_of_a_served_request_reach_their_service_unchanged(asked: str) -> None:
    body, losses = _changed("anthropic", "claude-opus-5-5", asked)

    assert body["messages"] == [ASKED, CHANGED, SAID, ASKED]
    assert body["tools"] == [TOOLS[0], {**TOOLS[1], "defer_loading": True}, TOOLS[2]]
    assert not losses


@pytest.mark.parametrize(("provider", "model", "read", "effort"), [
    ("google", "gemini-3-pro-preview", lambda body: [one["name"] for one in body["tools"][0]["functionDeclarations"]],
     lambda body: body["generationConfig"]["thinkingConfig"]["thinkingLevel"].lower()),
    ("vertex", "claude-opus-5-5", lambda body: [one["name"] for one in body["tools"]],
     lambda body: body["output_config"]["effort"]),
    ("bedrock", "anthropic.claude-opus-4-8",
     lambda body: [one["toolSpec"]["name"] for one in body["toolConfig"]["tools"]],
     lambda body: body["outputConfig"]["effort"]),
    ("openai", "gpt-6-astra", lambda body: [one["name"] for one in body["tool_choice"]["tools"]],
     lambda body: next(one["reasoning"]["effort"] for one in body["input"] if one["type"] == "configuration_update")),
])  # fmt: skip
def test_changes_of_a_served_request_have_their_effect_at_another_service(
    provider: str, model: str, read: Any, effort: Any
) -> None:
    body, losses = _changed(provider, model)

    assert read(body) == ["Read", "WebFetch", "mcp__x__go-on"]
    assert effort(body) == "high"
    assert not [loss for loss in losses if loss.severity == "content"]


@pytest.mark.parametrize("part", [
    {"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "s"}},
    {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "unknown"}},
    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"type": "web_search_20250305"}}},
    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "x"}}},
])  # fmt: skip
def test_changes_that_only_the_service_understands_go_there_unchanged(part: dict[str, Any]) -> None:
    turns: list[dict[str, Any]] = [ASKED, {"role": "system", "content": [part]}, SAID, ASKED]
    made = _sent(turns)

    assert json.loads(made.body)["messages"] == turns
    assert not made.losses
    assert [loss.verdict for loss in _sent(turns, "openai", "gpt-5.5").losses][:1] == ["dropped"]


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-unlisted-9"])
def test_a_model_that_takes_no_system_messages_gets_changes_as_a_whole(model: str) -> None:
    body, losses = _changed("anthropic", model, model)

    assert [tool["name"] for tool in body["tools"]] == ["Read", "WebFetch", "mcp__x__go-on"]
    assert (body["output_config"]["effort"], {loss.block_type for loss in losses}) == ("high", {"text", "change"})


def test_a_model_that_takes_no_system_messages_has_a_row_for_what_only_the_service_understands() -> None:
    part = {"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "s"}}
    made = _sent([ASKED, {"role": "system", "content": [part]}, ONCE, SAID, ASKED], model="claude-sonnet-5")

    texts = [part["text"] for part in json.loads(made.body)["messages"][0]["content"]]
    assert texts == ["user", "<system>\nOnce.\n</system>"]
    assert [(loss.path, loss.verdict) for loss in made.losses if loss.block_type == "opaque"] == [
        ("messages[1].content[0]", "dropped"),
        ("messages[2].content[1]", "dropped"),
    ]


def test_a_model_that_takes_no_change_of_effort_gets_it_to_refuse_it() -> None:
    turns: list[dict[str, Any]] = [ASKED, SAID, LOW, ASKED]

    assert json.loads(_sent(turns, model="claude-opus-4-8").body)["messages"] == turns


@pytest.mark.parametrize(
    ("block", "beta"),
    [
        ({"type": "compaction", "content": "so far", "signature": "c2ln"}, "compact-2026-09-04"),
        ({"type": "compaction", "content": "so far"}, "compact-2026-01-12"),
    ],
    ids=["on demand", "at a threshold"],
)
def test_a_compaction_stays_first_and_has_its_own_header(block: dict[str, Any], beta: str) -> None:
    turns: list[dict[str, Any]] = [{"role": "assistant", "content": [block]}, ASKED]
    made = _sent(turns)

    assert json.loads(made.body)["messages"] == turns
    assert beta in made.headers["anthropic-beta"].split(",")

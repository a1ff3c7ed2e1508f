"""Messages and events in the OpenClaw runtime's form: the providers' ids, its own words, and a row for all else.

The form: https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/types.ts, with its words for the wire formats;
expected objects are written by hand from there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

import interlingua as il
from interlingua._request.prepare import build_request
from interlingua.types import ErrorInfo, MediaSource, MessageMetadata, OpaqueBlock, RedactedThinkingBlock, ToolKind
from interlingua_agents import EventWriter, tool
from interlingua_agents import events as ev
from interlingua_agents.loop import AgentLoop
from tests.agents.scripted import Say, Theatre, call, playing

CALL = il.ToolUseBlock(id="tu_1", name="read", input={"a": 1}, provider_id="toolu_01A")


def said(*blocks: Any, **metadata: Any) -> il.Message:
    known = {"model": "acme:m-1", "provider": "acme", "api": "messages", **metadata}
    return il.Message(role=il.Role.ASSISTANT, content=blocks, metadata=MessageMetadata(**known))


def test_a_call_and_its_result_have_the_id_that_the_provider_gave() -> None:
    writer = EventWriter()
    written = writer.to_wire_messages([il.user("go"), said(CALL), il.tool_result("tu_1", "done", tool_name="read")])

    assert written[1]["content"] == [{"type": "toolCall", "id": "toolu_01A", "name": "read", "arguments": {"a": 1}}]
    assert written[2]["toolCallId"] == "toolu_01A"
    assert writer.losses == ()


def test_a_writer_learns_the_ids_of_what_was_said_before_it() -> None:
    (written,) = EventWriter([said(CALL)]).to_wire_messages([il.tool_result("tu_1", "done")])

    assert written["toolCallId"] == "toolu_01A"


def test_an_id_that_a_provider_gave_twice_names_one_call() -> None:
    again = attrs.evolve(CALL, id="tu_2")
    history = [said(CALL), il.tool_result("tu_1", "1"), said(again), il.tool_result("tu_2", "2")]
    first, one, second, two = EventWriter().to_wire_messages(history)

    assert first["content"][0]["id"] == one["toolCallId"] == "toolu_01A"
    assert second["content"][0]["id"] == two["toolCallId"] == "tu_2"


@pytest.mark.parametrize(
    ("api", "word"),
    [
        ("messages", "anthropic-messages"),
        ("chat", "openai-completions"),
        ("responses", "openai-responses"),
        ("generate", "google-generative-ai"),
        ("converse", "bedrock-converse-stream"),
        ("chat-native", "ollama"),
        ("anthropic-messages", "anthropic-messages"),
        ("parrot", "parrot"),
        (None, ""),
    ],
)
def test_the_wire_format_has_that_runtimes_word(api: str | None, word: str) -> None:
    (written,) = EventWriter().to_wire_messages([said(il.TextBlock(text="hi"), api=api)])

    assert (written["api"], written["provider"], written["model"]) == (word, "acme", "m-1")


def test_the_providers_formats_here_have_a_word_there() -> None:
    strangers = {"chat-v2"}  # that runtime speaks no such format, so the name stays unchanged
    options = il.types.RequestOptions(model="a-model")
    apis = {build_request(one, [il.user("hi")], [], options).api for one in il.Registry().providers()}
    written = EventWriter().to_wire_messages([said(il.TextBlock(text="hi"), api=api) for api in sorted(apis)])

    assert {"messages", "chat", "responses", "generate"} <= apis
    assert apis & {one["api"] for one in written} <= strangers


def test_redacted_thinking_is_thinking_without_words() -> None:
    writer = EventWriter()
    (written,) = writer.to_wire_messages([said(RedactedThinkingBlock(data="EqRx"), il.TextBlock(text="So."))])

    assert written["content"] == [
        {"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "EqRx", "redacted": True},
        {"type": "text", "text": "So."},
    ]
    assert writer.losses == ()


def image(kind: Any) -> il.ImageBlock:
    return il.ImageBlock(source=MediaSource(kind=kind, data="AAAA"), media_type="image/png")


def test_what_the_form_has_no_word_for_is_in_the_ledger() -> None:
    message = il.user([il.TextBlock(text="look"), image("url"), image("file_ref"), image("base64")])
    answer = said(
        OpaqueBlock(provider="acme", kind="search", data={"q": 1}),
        il.TextBlock(text="So.", citations=[{"url": "https://example.org"}]),
        attrs.evolve(CALL, input={}, raw_input='{"a": ', parse_error="arguments are not JSON"),
        attrs.evolve(CALL, id="tu_2", provider_id=None, raw_input='{"a":  1}', kind="read"),
    )
    result = il.ToolResultBlock(
        tool_use_id="tu_2", content=[image("url")], metadata={"took": 3}, details={"n": 1}, terminate=True
    )
    writer = EventWriter()
    written = writer.to_wire_messages(
        [message, answer, il.Message(role=il.Role.TOOL, content=(result,)), il.user([image("url")])]
    )

    assert [one["type"] for one in written[0]["content"]] == ["text", "image"]
    assert [one["type"] for one in written[1]["content"]] == ["text", "toolCall", "toolCall"]
    assert (written[2]["content"], written[2]["details"]) == ([], {"n": 1})
    assert written[3]["content"] == []
    assert [(one.path, one.block_type, one.verdict) for one in writer.losses] == [
        ("messages[0].content[1]", "image", "dropped"),
        ("messages[0].content[2]", "image", "dropped"),
        ("messages[1].content[0]", "opaque", "dropped"),
        ("messages[1].content[1].citations", "text", "dropped"),
        ("messages[1].content[2]", "tool_use", "dropped"),
        ("messages[1].content[3].kind", "tool_use", "dropped"),
        ("messages[1].content[3]", "tool_use", "rewritten"),
        ("messages[2].content[0].metadata", "tool_result", "dropped"),
        ("messages[2].content[0].terminate", "tool_result", "dropped"),
        ("messages[2].content[0].content[0]", "image", "dropped"),
        ("messages[3].content[0]", "image", "dropped"),
    ]
    assert writer.losses[0].message_id == message.id
    assert '{"a": ' in writer.losses[4].reason
    json.dumps(written)


def test_each_result_of_a_message_is_a_message_there_and_none_is_an_empty_one() -> None:
    both = (
        il.ToolResultBlock(tool_use_id="tu_1", content="one"),
        il.ToolResultBlock(tool_use_id="tu_2", content="two"),
    )
    empty = il.Message(role=il.Role.TOOL, content=(), metadata=MessageMetadata(parent_tool_use_id="tu_1"))
    mixed = il.Message(role=il.Role.USER, content=(il.TextBlock(text="and now?"), both[0]))
    written = EventWriter([said(CALL)]).to_wire_messages([il.Message(role=il.Role.TOOL, content=both), empty, mixed])

    assert [(one["role"], one.get("toolCallId"), one["content"]) for one in written] == [
        ("toolResult", "toolu_01A", [{"type": "text", "text": "one"}]),
        ("toolResult", "tu_2", [{"type": "text", "text": "two"}]),
        ("toolResult", "toolu_01A", []),
        ("toolResult", "toolu_01A", [{"type": "text", "text": "one"}]),
        ("user", None, "and now?"),
    ]


def test_texts_of_a_user_stay_apart_and_a_signature_stays() -> None:
    parts = [il.TextBlock(text="a"), il.TextBlock(text="b")]
    two, signed = EventWriter().to_wire_messages([il.user(parts), il.user([il.TextBlock(text="a", signature="s")])])

    assert two["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert signed["content"] == [{"type": "text", "text": "a", "textSignature": "s"}]


def test_a_failed_answer_keeps_its_error() -> None:
    failed = said(status="error", error=ErrorInfo(type="OverloadedError", message="try later"))
    (written,) = EventWriter().to_wire_messages([failed])

    assert (written["content"], written["stopReason"], written["errorMessage"]) == ([], "error", "try later")


@tool(side_effects="none", kind=ToolKind.SEARCH)
def find(what: str) -> str:
    """Find."""
    return f"found {what}"


def test_the_events_of_a_run_name_one_call_by_one_id_and_say_its_kind(tmp_path: Path) -> None:
    told: list[Any] = []
    theatre = Theatre(Say(parts=[call("find", {"what": "x"}), call("absent")]), "Done.")
    with playing(theatre, tmp_path / "s.db") as session:
        session.send("go", tools=AgentLoop([find], listen=told.append))

    starts = [event for event in told if isinstance(event, ev.ToolStart)]
    assert [(one.kind, one.side_effects) for one in starts] == [(ToolKind.SEARCH, il.SideEffects.NONE), (None, None)]
    writer = EventWriter()
    written = [writer.to_wire_event(event) for event in told]
    ids = [one["toolCallId"] for one in written if one["type"].startswith("tool_execution")]
    assert set(ids) == {"c0", "c1"}
    assert [one["kind"] for one in written if "kind" in one] == ["search"]
    end = written[-1]["messages"]
    calls = [one["id"] for one in end[1]["content"] if one["type"] == "toolCall"]
    assert calls == [one["toolCallId"] for one in end if one["role"] == "toolResult"] == ["c0", "c1"]
    assert "tu_" not in json.dumps(written)
    json.dumps(written)


def test_a_run_that_begins_with_open_calls_names_them_as_the_provider_did(tmp_path: Path) -> None:
    """The answer with the call is of an earlier process, so no event shows it."""
    told: list[Any] = []
    with playing(Theatre(Say(parts=[call("find", {"what": "x"})]), "Done."), tmp_path / "s.db") as session:
        session.send("go", tools=[find.definition])
        session.send(None, tools=AgentLoop([find], listen=told.append))

    writer = EventWriter()
    written = [writer.to_wire_event(event) for event in told]
    results = [one["message"] for one in written if one["type"] == "message_end"]
    assert [one["toolCallId"] for one in results if one["role"] == "toolResult"] == ["c0"]

"""The OpenClaw runtime's messages, events and replies: read, and written again by `EventWriter`."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.types import Message, MessageStatus, ToolUseBlock
from interlingua_agents import EventWriter, events, to_wire_reply
from interlingua_agents.event_json import _APIS
from interlingua_transcripts import TranscriptError
from interlingua_transcripts.formats.pi import APIS
from interlingua_transcripts.runtime import CustomMessage, RuntimeReader, read_reply

COST = {"input": 0.5, "output": 0.25, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.75}
USAGE = {"input": 100, "output": 50, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 150, "cost": COST}
MADE = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-6", "usage": USAGE}
CALL = {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"file_path": "main.ts"}}
USER = {"role": "user", "content": "Read the file main.ts", "timestamp": 1740000000000}
TEXT = {"type": "text", "text": "Let me read that file."}
THINKING = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2lnbmVkLTE="}
ANSWER = {
    "role": "assistant",
    "content": [THINKING, TEXT, CALL],
    **MADE,
    "stopReason": "toolUse",
    "timestamp": 1740000001000,
}
PARTIAL = {**ANSWER, "stopReason": "stop"}
CONTENT = [{"type": "text", "text": "...file contents..."}]
RESULT = {
    "role": "toolResult",
    "toolCallId": "call_1",
    "toolName": "read",
    "content": CONTENT,
    "details": {"lines": 3},
    "isError": False,
    "timestamp": 1740000002000,
}
FAILED = {**ANSWER, "content": [TEXT], "stopReason": "error", "errorMessage": "overloaded"}
ABORTED = {**ANSWER, "content": [TEXT], "stopReason": "aborted"}
NOTE = {"role": "note", "text": "for the screen", "timestamp": 1740000000000}
DELTA = {"type": "text_delta", "contentIndex": 1, "delta": "file.", "partial": PARTIAL}
EXECUTION = {"toolCallId": "call_1", "toolName": "read"}
ARGS = {"args": {"file_path": "main.ts"}}
EVENTS: list[dict[str, Any]] = [
    {"type": "start", "partial": {**PARTIAL, "content": []}},
    {"type": "text_start", "contentIndex": 1, "partial": PARTIAL},
    DELTA,
    {"type": "text_end", "contentIndex": 1, "content": "Let me read that file.", "partial": PARTIAL},
    {"type": "thinking_start", "contentIndex": 0, "partial": PARTIAL},
    {"type": "thinking_delta", "contentIndex": 0, "delta": "hm", "partial": PARTIAL},
    {"type": "thinking_end", "contentIndex": 0, "content": "hm", "partial": PARTIAL},
    {"type": "toolcall_start", "contentIndex": 2, "partial": PARTIAL},
    {"type": "toolcall_delta", "contentIndex": 2, "delta": "{", "partial": PARTIAL},
    {"type": "toolcall_end", "contentIndex": 2, "toolCall": CALL, "partial": PARTIAL},
    {"type": "done", "reason": "toolUse", "message": ANSWER},
    {"type": "error", "reason": "error", "error": FAILED},
    {"type": "error", "reason": "aborted", "error": ABORTED},
    {"type": "agent_start"},
    {"type": "agent_end", "messages": [USER, ANSWER, RESULT]},
    {"type": "turn_start"},
    {"type": "turn_end", "message": ANSWER, "toolResults": [RESULT]},
    {"type": "message_start", "message": USER},
    {"type": "message_update", "message": PARTIAL, "assistantMessageEvent": DELTA},
    {"type": "message_end", "message": ANSWER},
    {"type": "tool_execution_start", **EXECUTION, **ARGS},
    {"type": "tool_execution_update", **EXECUTION, **ARGS, "partialResult": {"content": CONTENT}},
    {
        "type": "tool_execution_end",
        **EXECUTION,
        "result": {"content": CONTENT, "details": {"lines": 3}},
        "isError": False,
    },
]


ANSWER_EVENTS = {"start", "done", "error"} | {
    f"{block}_{step}" for block in ("text", "thinking", "toolcall") for step in ("start", "delta", "end")
}


def writer() -> EventWriter:
    made = EventWriter()
    made.to_wire_event(RuntimeReader().read_event({"type": "tool_execution_start", **EXECUTION, **ARGS}))
    return made


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
def test_every_event_is_read_and_written_back_equal(event: dict[str, Any]) -> None:
    read = RuntimeReader().read_event(event)
    assert (writer().to_wire_answer_event if event["type"] in ANSWER_EVENTS else writer().to_wire_event)(read) == event


def test_every_event_of_a_run_but_a_typed_answers_growth_has_a_counterpart() -> None:
    read = {type(RuntimeReader().read_event(event)) for event in EVENTS}
    assert {*read, events.OutputPartial} == set(events.RunEvent.__args__)
    partial = events.OutputPartial(turn=1, value={}, closed=frozenset())
    assert EventWriter().to_wire_event(partial) is None


def test_the_end_of_a_call_has_the_input_of_its_start() -> None:
    reader = RuntimeReader()
    reader.read_event({"type": "tool_execution_start", **EXECUTION, **ARGS})
    end = reader.read_event({"type": "tool_execution_end", **EXECUTION, "result": {"content": []}, "isError": True})
    assert isinstance(end, events.ToolEnd)
    assert (end.call.input, end.status) == ({"file_path": "main.ts"}, "failed")


@pytest.mark.parametrize("message", [USER, ANSWER, RESULT, FAILED, ABORTED], ids=lambda one: one["role"])
def test_every_message_is_read_and_written_back_equal(message: dict[str, Any]) -> None:
    read = RuntimeReader().read_message(message)
    assert isinstance(read, Message)
    assert writer().to_wire_messages([read]) == [message]


def test_a_call_and_its_result_have_one_id_and_messages_their_own() -> None:
    answer, result = RuntimeReader().read_messages([ANSWER, RESULT])
    assert isinstance(answer, Message)
    assert isinstance(result, Message)
    assert result.tool_results[0].tool_use_id == answer.tool_calls[0].id
    assert answer.tool_calls[0].provider_id == "call_1"
    assert len({answer.id, result.id}) == 2


def test_an_answer_that_grows_is_partial() -> None:
    event = RuntimeReader().read_event(DELTA)
    assert isinstance(event, events.AgentTextDelta)
    assert event.partial.metadata.status is MessageStatus.PARTIAL
    assert isinstance(event.partial.content[2], ToolUseBlock)


def test_custom_messages_stay_what_they_are() -> None:
    read = RuntimeReader().read_message(NOTE)
    assert read == CustomMessage(NOTE)
    assert isinstance(read, CustomMessage)
    assert read.role == "note"
    end = RuntimeReader().read_event({"type": "agent_end", "messages": [USER, NOTE]})
    assert isinstance(end, events.RunEnd)
    assert end.messages[1] == CustomMessage(NOTE)


@pytest.mark.parametrize("value", [{}, {"type": "new"}, {"type": "done", "reason": "stop"}, {"type": "text_delta"}])
def test_what_is_no_event_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(TranscriptError):
        RuntimeReader().read_event(value)
    with pytest.raises(TranscriptError):
        RuntimeReader().read_message(value)


@pytest.mark.parametrize(
    "reply",
    [
        {"text": "Hi"},
        {"mediaUrl": "https://example.com/a.png", "replyToId": "42"},
        {"text": "no", "mediaUrls": ["https://example.com/a.png", "https://example.com/b.png"], "isError": True},
    ],
)
def test_a_reply_is_read_and_written_back_equal(reply: dict[str, Any]) -> None:
    assert to_wire_reply(read_reply(reply)) == reply


def test_both_tables_of_api_names_say_the_same() -> None:
    assert {ours: theirs for theirs, ours in APIS.items()} == _APIS

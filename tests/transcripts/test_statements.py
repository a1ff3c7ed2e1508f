"""Statements of the systems' own documents that were partly kept: each is one test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from interlingua.plugins import Registry, build_request
from interlingua.types import (
    Message,
    RequestOptions,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    assistant,
    user,
)
from interlingua_agents.event_json import EventWriter
from interlingua_transcripts import (
    ChatResponse,
    Transcript,
    detect_format,
    from_messages,
    open_transcript,
    read_transcript,
    transcript_of,
    with_entries,
    write_transcript,
)
from interlingua_transcripts.formats.attocode import read_chat_response
from interlingua_transcripts.runtime import CustomMessage, RuntimeReader
from tests.cli.conftest import Run
from tests.transcripts.histories import HISTORY
from tests.transcripts.test_documents import FILES, OPENCLAW, WOLO, lines

# -- Wolo --------------------------------------------------------------------------------------------------------------
PENDING = {
    "id": "m2",
    "role": "assistant",
    "parts": [
        {"id": "t1", "type": "text", "text": "I read it."},
        {"id": "c1", "type": "tool", "tool": "read", "input": {"path": "a"}, "output": "", "status": "pending", "x": 1},
    ],
    "timestamp": 1704067201.0,
}
WOLO_CALL = {"id": "c2", "type": "tool", "tool": "write", "input": {}, "output": "", "status": "pending"}
ASKED = {
    "id": "m1",
    "role": "user",
    "parts": [{"id": "t0", "type": "text", "text": "Read a."}],
    "timestamp": 1704067200.0,
}


def wolo(*messages: dict[str, Any]) -> bytes:
    return orjson.dumps({"session": {"id": "s1", "title": "T"}, "messages": messages, "todos": []})


def answered(read: Transcript, *, failed: bool = False) -> Transcript:
    """Answer the open call of a session, as after a way through a store, with an answer after it."""
    call = read.messages[-1].tool_calls[0]
    block = ToolResultBlock(tool_use_id=call.id, content=(TextBlock(text="A"),), is_error=failed)
    result = Message(role=Role.TOOL, session_id=read.session_id, content=[block])
    kept = from_messages((*with_entries(read), result, assistant("It says A.", session_id=read.session_id)))
    assert kept is not None
    return kept


@pytest.mark.parametrize(("failed", "status"), [(False, "completed"), (True, "failed")])
def test_wolo_gets_the_result_of_a_pending_call_in_its_part(failed: bool, status: str) -> None:
    written = write_transcript(answered(read_transcript(wolo(ASKED, PENDING)), failed=failed))
    asked, made, said = orjson.loads(written)["messages"]

    assert asked == ASKED
    assert made["parts"][0] == PENDING["parts"][0]
    part = made["parts"][1]
    assert (part["status"], part["output"], part["x"]) == (status, "A", 1)
    assert part["end_time"] > part["start_time"] > 0
    assert said["parts"][0]["text"] == "It says A."
    again = read_transcript(written)
    assert [message.role.value for message in again.messages] == ["user", "assistant", "tool", "assistant"]
    assert again.messages[2].tool_results[0].is_error is failed


def test_wolo_knows_failed_and_the_times_of_a_call() -> None:
    document = orjson.loads(write_transcript(transcript_of(HISTORY, "wolo", "s"), "wolo"))
    done, failed = [part for message in document["messages"] for part in message["parts"] if part["type"] == "tool"]
    assert (done["status"], failed["status"]) == ("completed", "failed")
    times = [message.created_at.timestamp() for message in HISTORY]
    assert (done["start_time"], done["end_time"], failed["end_time"]) == (times[2], times[3], times[4])


def test_a_plain_list_of_wolos_messages_is_a_session() -> None:
    data = orjson.dumps(WOLO)
    found = detect_format(data)
    assert found is not None
    assert found[0].name == "wolo"
    read = read_transcript(data)
    assert read.notes == ()
    assert [one.text for one in read.messages] == [one.text for one in read_transcript(FILES["wolo"]).messages]
    kept = from_messages(with_entries(read))
    assert kept is not None
    assert orjson.loads(write_transcript(kept)) == list(WOLO)


def test_a_message_of_wolo_without_a_time_keeps_its_place() -> None:
    """The document's example of the structure: its second message has no time."""
    untimed = {name: value for name, value in WOLO[1].items() if name != "timestamp"}
    read = read_transcript(wolo(WOLO[0], untimed))
    assert [message.role.value for message in read.messages] == ["user", "assistant", "tool"]
    assert {message.created_at.year for message in read.messages} == {2024}


def test_parts_of_wolo_without_ids_are_read_and_answered_in_place() -> None:
    """The document's examples of messages leave the ids of parts out."""
    parts = [{name: value for name, value in part.items() if name != "id"} for part in (*PENDING["parts"], WOLO_CALL)]
    read = read_transcript(wolo(ASKED, {**PENDING, "parts": parts}))
    assert read.notes == ()
    assert [call.name for call in read.messages[-1].tool_calls] == ["read", "write"]
    assert len({call.id for call in read.messages[-1].tool_calls}) == 2
    _, made, _ = orjson.loads(write_transcript(answered(read)))["messages"]
    assert [part.get("status") for part in made["parts"]] == [None, "completed", "pending"]
    assert (made["parts"][1]["output"], "id" in made["parts"][1]) == ("A", False)


def test_reasoning_of_an_imported_wolo_session_goes_back_to_glm() -> None:
    read = read_transcript(FILES["wolo"])
    provider = Registry().provider("zai")
    messages = [*read.messages[:3], read.messages[-1], user("Go on.", session_id=read.session_id)]
    request = build_request(provider, messages, [], RequestOptions(model="glm-4.6"))
    assert isinstance(read.messages[-1].content[0], ThinkingBlock)
    assert [one.get("reasoning_content") for one in orjson.loads(request.body)["messages"]][-2] == (
        "Let me analyze this config file..."
    )


# -- OpenClaw ----------------------------------------------------------------------------------------------------------
NOTE = {"role": "notification", "text": "for the screen", "timestamp": 1740000000000}
SUMMARY = {"role": "compactionSummary", "summary": "so far", "tokensBefore": 9, "timestamp": 1740000000000}
HIDDEN = {
    "role": "bashExecution",
    "command": "ls",
    "output": "a",
    "excludeFromContext": True,
    "timestamp": 1740000000000,
}
SAID = {"role": "user", "content": "Hi", "timestamp": 1740000000000}


def test_custom_messages_of_openclaw_are_for_no_model_and_are_written_back() -> None:
    data = lines([SAID, NOTE, HIDDEN])
    read = read_transcript(data)
    assert [message.text for message in read.messages] == ["Hi"]
    kept = from_messages((*with_entries(read), assistant("Hello", session_id=read.messages[0].session_id)))
    assert kept is not None
    assert write_transcript(kept).startswith(data)


def test_summaries_of_openclaws_flat_form_are_read() -> None:
    read = read_transcript(lines([SAID, SUMMARY, {**SUMMARY, "role": "branchSummary", "summary": "a branch"}, SAID]))
    assert "so far" in read.messages[1].text
    assert "a branch" in read.messages[2].text
    assert [message.text[:2] for message in read.context] == ["Th", "Th", "Hi"]


def test_any_session_is_written_in_openclaws_flat_form() -> None:
    written = write_transcript(transcript_of(HISTORY, "openclaw-lines", "s"), "openclaw-lines")
    values = [orjson.loads(line) for line in written.splitlines()]
    assert all("role" in value and "type" not in value for value in values)
    assert [message.text for message in read_transcript(written).messages] == [message.text for message in HISTORY]


@pytest.mark.parametrize(("target", "total"), [("openclaw-lines", 1700), ("openclaw", 3200), ("pi", 3200)])
def test_total_tokens_have_no_cached_ones_in_openclaws_flat_form(target: str, total: int) -> None:
    """1700 is the documentation's number for 1500 plain, 1500 cached and 200 written; the programs count all 3200."""
    read = read_transcript(lines(OPENCLAW[2:3]))
    written = write_transcript(transcript_of(read.messages, target, "s"), target)
    values = [orjson.loads(line) for line in written.splitlines()]
    usages = [value.get("message", value).get("usage") for value in values if b"usage" in orjson.dumps(value)]
    assert [usage["totalTokens"] for usage in usages] == [total]
    assert EventWriter().to_wire_messages(read.messages)[0]["usage"]["totalTokens"] == 1700


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": NOTE},
        {"type": "agent_end", "messages": [SAID, NOTE]},
        {"type": "turn_end", "message": NOTE, "toolResults": []},
    ],
)
def test_events_with_custom_messages_are_written_as_they_were(event: dict[str, Any]) -> None:
    assert EventWriter().to_wire_event(RuntimeReader().read_event(event)) == event
    assert isinstance(RuntimeReader().read_message(NOTE), CustomMessage)


@pytest.mark.parametrize("result", [{"status": "done", "n": 3}, [1, 2], 7, "text", True])
def test_a_tool_execution_ends_with_a_result_of_any_json(result: object) -> None:
    event = {"type": "tool_execution_end", "toolCallId": "c", "toolName": "n", "result": result, "isError": False}
    read: Any = RuntimeReader().read_event(event)
    (block,) = read.result.content
    assert block.text == (result if isinstance(result, str) else orjson.dumps(result).decode())
    assert read.result.details == (None if isinstance(result, str) else result)


# -- Operator-Use ------------------------------------------------------------------------------------------------------
def test_custom_messages_of_operator_use_are_for_no_model_and_are_written_back() -> None:
    read = read_transcript(FILES["operator-use"])
    assert "for the screen" not in [message.text for message in read.messages]
    assert [message.text for message in read.messages][-2:] == ["we tried", "so far"]
    assert [message.text for message in read.context] == ["so far"]
    assert write_transcript(read) == FILES["operator-use"]


# -- Attocode ----------------------------------------------------------------------------------------------------------
CALLS = {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "run", "arguments": '{"path": "a"}'}]}


def atto(*messages: dict[str, Any]) -> Transcript:
    return read_transcript(lines([{"role": "user", "content": "Run."}, CALLS, *messages]))


def test_attocodes_result_and_error_are_both_read_and_written() -> None:
    failed = {"callId": "c1", "result": "partial output", "error": "exit 1"}
    read = atto({"role": "tool", "content": "", "toolResults": [failed]})
    block = read.messages[-1].tool_results[0]
    assert [part.text for part in block.content if isinstance(part, TextBlock)] == ["partial output", "exit 1"]
    assert block.is_error
    anew = write_transcript(attrs.evolve(read, entries=(), groups=(), counts=()), "attocode").splitlines()
    assert orjson.loads(anew[-1])["data"]["toolResults"] == [failed]


def test_content_beside_attocodes_results_is_read() -> None:
    read = atto({"role": "tool", "content": "two files", "toolResults": [{"callId": "c1", "result": {"n": 2}}]})
    block = read.messages[-1].tool_results[0]
    assert [part.text for part in block.content if isinstance(part, TextBlock)] == ["two files", '{"n":2}']
    assert block.details == {"n": 2}


def test_attocodes_arguments_as_a_string_are_sent_as_arguments() -> None:
    call = atto().messages[-1].tool_calls[0]
    assert (call.input, call.raw_input, call.parse_error) == ({"path": "a"}, '{"path": "a"}', None)
    broken = read_transcript(lines([{**CALLS, "toolCalls": [{"id": "c1", "name": "run", "arguments": "{"}]}]))
    assert broken.messages[0].tool_calls[0].parse_error


def test_the_name_of_attocodes_model_stays() -> None:
    given = {"content": "hi", "model": "claude-sonnet-4"}
    assert ChatResponse(read_chat_response(given)).to_json() == given


# -- the command line --------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("place")
def test_a_list_of_wolos_messages_is_imported(run: Run) -> None:
    Path("list.json").write_bytes(orjson.dumps(WOLO))
    imported = run("transcript", "import", "list.json")
    assert imported.exit_code == 0, imported.output
    exported = run("transcript", "export", imported.stdout.strip(), "--to", "wolo")
    assert orjson.loads(exported.stdout_bytes) == list(WOLO)


# -- found by second readers -------------------------------------------------------------------------------------------
def test_lines_of_claude_code_without_links_are_read_in_order() -> None:
    values = [
        {
            "type": role,
            "uuid": f"u{at}",
            "parentUuid": None,
            "sessionId": "s",
            "message": {"role": role, "content": "Hi"},
        }
        for at, role in enumerate(("user", "assistant", "user"))
    ]
    assert [message.role.value for message in read_transcript(lines(values)).messages] == ["user", "assistant", "user"]


def test_an_answer_with_a_call_without_an_id_is_read() -> None:
    content = [{"type": "text", "text": "Ok."}, {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}]
    message = {"role": "assistant", "content": content}
    read = read_transcript(lines([{"type": "assistant", "uuid": "u", "sessionId": "s", "message": message}]))
    assert read.messages[0].text == "Ok."
    assert read.messages[0].tool_calls[0].input == {"command": "ls"}


def test_a_parent_that_is_the_header_is_the_root() -> None:
    header = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T10:00:00.000Z", "cwd": "/"}
    first, second = (
        {"type": "message", "id": f"m{at}", "parentId": "s1", "message": {"role": "user", "content": f"{at}"}}
        for at in range(2)
    )
    read = read_transcript(lines([header, first, second]))
    assert ([message.text for message in read.messages], read.notes) == (["1"], ())


def _codex_item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _codex_session(compaction: dict[str, Any]) -> bytes:
    meta = {"id": "s", "cli_version": "0.150.0", "base_instructions": {"text": "prompt"}}
    before = [_codex_item("developer", "rules"), _codex_item("user", "first"), _codex_item("assistant", "answer")]
    said = [{"type": "response_item", "payload": item} for item in before]
    after = {"type": "response_item", "payload": _codex_item("user", "next")}
    header = {"type": "session_meta", "payload": meta}
    return lines([header, *said, {"type": "compacted", "payload": compaction}, after])


@pytest.mark.parametrize("hold", [0, 8 << 20])
def test_a_compaction_of_codex_is_what_replaced_the_history(hold: int) -> None:
    sealed = {"type": "compaction", "encrypted_content": "c2VhbGVk"}
    kept = [_codex_item("user", "first"), _codex_item("user", "cut"), _codex_item("developer", "rules"), sealed]
    with open_transcript(_codex_session({"message": "", "replacement_history": kept}), hold=hold) as read:
        said = [(message.role, message.text) for message in read]
        seen = [(message.role, message.text, message.content[0].type) for message in read.context()]
    user, system, assistant = Role.USER, Role.SYSTEM, Role.ASSISTANT
    before = [(system, "prompt"), (system, "rules"), (user, "first"), (assistant, "answer")]
    assert said == [*before, (user, "cut"), (assistant, ""), (user, "next")]
    assert seen == [
        (system, "prompt", "text"),
        (user, "first", "text"),
        (user, "cut", "text"),
        (system, "rules", "text"),
        (assistant, "", "opaque"),
        (user, "next", "text"),
    ]


def test_a_changed_message_is_changed_where_a_compaction_of_codex_repeats_it() -> None:
    kept = [_codex_item("user", "first"), _codex_item("user", "cut"), _codex_item("developer", "rules")]
    read = read_transcript(_codex_session({"message": "", "replacement_history": kept}))
    changed = [
        attrs.evolve(message, content=(TextBlock(text="edited"),)) if message.text == "first" else message
        for message in read.messages
        if message.text != "rules"
    ]

    again = read_transcript(write_transcript(attrs.evolve(read, messages=changed)))

    assert [message.text for message in again.messages] == ["prompt", "edited", "answer", "cut", "next"]
    assert [message.text for message in again.context] == ["prompt", "edited", "cut", "next"]


def _gemini_session() -> bytes:
    """A call is logged twice, first without its result, which the user's next message repeats."""
    asked = {"id": "c1", "name": "look", "args": {}}
    result = [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "r"}}}]
    done = {"status": "success", "result": result}
    at = {"timestamp": "2026-11-02T10:00:00.000Z"}
    return lines([
        {"sessionId": "s", "projectHash": "p", "startTime": at["timestamp"], "kind": "main"},
        {"id": "u1", "type": "user", "content": [{"text": "question"}], **at},
        {"id": "g1", "type": "gemini", "content": "looking", "toolCalls": [asked], **at},
        {"id": "g1", "type": "gemini", "content": "looking", "toolCalls": [asked | done], **at},
        {"id": "u2", "type": "user", "content": result, **at},
        {"id": "g2", "type": "gemini", "content": "answer", **at},
    ])  # fmt: skip


def _said(messages: Iterable[Message]) -> list[tuple[str, str, int]]:
    return [(message.role.value, message.text, len(message.tool_results)) for message in messages]


@pytest.mark.parametrize("left_out", [{1, 2}, {2}, {3}, {0, 1, 2}])
def test_a_message_that_is_left_out_does_not_come_back_from_a_log_of_gemini_cli(left_out: set[int]) -> None:
    read = read_transcript(_gemini_session())
    before = [("user", "question", 0), ("assistant", "looking", 0), ("tool", "", 1), ("assistant", "answer", 0)]
    assert _said(read.messages) == before
    kept = [message for at, message in enumerate(read.messages) if at not in left_out]

    again = read_transcript(write_transcript(attrs.evolve(read, messages=kept)))

    assert _said(again.messages) == [one for at, one in enumerate(before) if at not in left_out]


def test_a_compaction_of_an_older_codex_keeps_what_the_user_said() -> None:
    read = read_transcript(_codex_session({"message": "summary"}))
    assert [message.text for message in read.context] == ["prompt", "first", "summary", "next"]


def test_a_compaction_of_codex_that_was_taken_back_hides_nothing() -> None:
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 2}}
    read = read_transcript(_codex_session({"message": "summary"}) + lines([back]))
    assert [message.text for message in read.context] == ["prompt", "rules"]


def test_a_task_from_another_agent_of_codex_is_read() -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "cli_version": "0.150.0"}}
    agent = "/root"  # the name of Codex's main agent
    mail = {"type": "agent_message", "author": agent, "recipient": f"{agent}/w", "content": [
        {"type": "output_text", "text": "Verify it."}]}  # fmt: skip
    read = read_transcript(lines([meta, {"type": "response_item", "payload": mail}]))
    assert ([(message.role, message.text) for message in read.messages], read.notes) == (
        [(Role.USER, "Verify it.")],
        (),
    )


def test_an_object_that_codex_has_as_output_is_json() -> None:
    meta = {"type": "session_meta", "payload": {"id": "s", "cli_version": "0.150.0"}}
    output = {"type": "function_call_output", "call_id": "c", "output": {"matches": ["a"]}}
    read = read_transcript(lines([meta, {"type": "response_item", "payload": output}]))
    assert read.messages[0].tool_results[0].content == (TextBlock(text='{"matches":["a"]}'),)


def test_a_call_without_the_object_function_keeps_its_name_and_arguments() -> None:
    call = {"id": "c1", "name": "read", "arguments": {"path": "a"}}
    asked, answer = {"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": [call]}
    (made,) = read_transcript(lines([asked, answer])).messages[1].tool_calls
    assert (made.name, dict(made.input)) == ("read", {"path": "a"})

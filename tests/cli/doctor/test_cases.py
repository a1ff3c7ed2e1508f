"""The field cases that a stored conversation can have, each found and repaired without losing anything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from interlingua._request.rules import validate_conversation
from interlingua.codec import dumps_message, encode_message
from interlingua.types import (
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant,
    tool_result,
    user,
)
from interlingua_cli.doctor.examine import examine
from interlingua_cli.doctor.findings import Diagnosis, DoctorFinding

CALL = ToolUseBlock(id="tu_1", name="read_file", input={"path": "a"})
OTHER = ToolUseBlock(id="tu_2", name="read_file", input={"path": "b"})


def examined(*messages: Message | str) -> Diagnosis:
    lines = [each if isinstance(each, str) else dumps_message(each) for each in messages]
    return examine(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)


def repaired(diagnosis: Diagnosis) -> Diagnosis:
    """What a second visit finds."""
    return examine(f"{line.text}\n".encode() for line in diagnosis.after)


def rules(findings: Iterable[DoctorFinding]) -> list[tuple[int | None, str, str | None]]:
    return [(finding.line, finding.rule, finding.remedy) for finding in findings]


def unfinished(content: list[Any], status: MessageStatus = MessageStatus.CANCELLED) -> Message:
    return Message(role=Role.ASSISTANT, content=content, metadata=MessageMetadata(status=status))


def test_a_healthy_conversation_comes_back_byte_for_byte() -> None:
    messages = [user("hi"), assistant([CALL]), tool_result(CALL, "x"), assistant("done"), user("thanks")]
    found = examined(*messages)

    assert found.findings == ()
    assert [line.text for line in found.after] == [dumps_message(message) for message in messages]
    assert [line.number for line in found.after] == [1, 2, 3, 4, 5]


def test_case_07_a_dangling_call_is_answered_right_behind_it_and_always_the_same() -> None:
    messages = (user("go"), assistant([CALL, OTHER]), tool_result(OTHER, "b"), user("never mind"))
    first, second = examined(*messages), examined(*messages)

    assert rules(first.findings) == [(2, "dangling-call", "inserted")]
    assert first.findings[0].path == "content[0]"
    filled = first.after[3].message
    assert (filled.role, filled.metadata.parent_tool_use_id) == (Role.TOOL, "tu_1")
    assert filled.tool_results[0].is_error
    assert filled.created_at == messages[1].created_at
    assert first.after == second.after
    assert first.findings[0].now == encode_message(filled)
    assert repaired(first).findings == ()
    assert not validate_conversation(first.messages)


def test_case_07_a_crash_leaves_a_call_at_the_end() -> None:
    assert rules(examined(user("go"), assistant([CALL])).findings) == [(2, "dangling-call", "inserted")]


def test_case_07_a_result_that_came_too_late_is_moved_not_invented() -> None:
    found = examined(user("go"), assistant([CALL]), user("still there?"), tool_result(CALL, "real"), user("go on"))

    assert rules(found.findings) == [(4, "late-result", "moved")]
    assert [line.number for line in found.after] == [1, 2, 4, 3, 5]
    assert repaired(found).findings == ()


def test_case_08_an_orphan_result_is_taken_out_whole() -> None:
    orphan = tool_result("tu_gone", "compacted away", tool_name="read_file")
    found = examined(user("go"), orphan, assistant("so"), user("ok"))

    assert rules(found.findings) == [(2, "orphan-result", "removed")]
    assert found.findings[0].was == encode_message(orphan)
    assert [line.number for line in found.after] == [1, 3, 4]


def test_case_08_a_call_answered_twice_keeps_its_first_answer() -> None:
    found = examined(user("go"), assistant([CALL]), tool_result(CALL, "first"), tool_result(CALL, "second"), user("x"))

    assert rules(found.findings) == [(4, "orphan-result", "removed")]
    assert found.messages[2].tool_results[0].content == (TextBlock(text="first"),)


def test_case_08_of_several_results_in_one_message_only_the_orphan_goes() -> None:
    both = Message(
        role=Role.TOOL,
        content=[ToolResultBlock(tool_use_id="tu_gone", content="x"), ToolResultBlock(tool_use_id="tu_1", content="y")],
        metadata=MessageMetadata(parent_tool_use_id="tu_1"),
    )
    found = examined(user("go"), assistant([CALL]), both, user("ok"))

    assert (3, "orphan-result", "removed") in rules(found.findings)
    assert found.findings[0].was["tool_use_id"] == "tu_gone"
    assert [block.tool_use_id for block in found.messages[2].tool_results] == ["tu_1"]


def test_case_12_empty_text_goes_and_a_message_with_nothing_left() -> None:
    message = assistant([TextBlock(text=" \n"), TextBlock(text="said")])
    found = examined(user(""), user(" "), message, user("ok"))

    assert rules(found.findings) == [
        (1, "empty-message", "removed"),
        (2, "empty-text", "removed"),
        (2, "empty-message", "removed"),
        (3, "empty-text", "removed"),
    ]
    assert [line.number for line in found.after] == [3, 4]
    assert found.messages[0].text == "said"
    assert found.findings[3].was["text"] == " \n"


def test_case_12_white_space_at_the_end_of_the_last_answer() -> None:
    found = examined(user("go"), assistant("well \n"))

    assert rules(found.findings) == [(2, "trailing-space", "replaced"), (2, "ends-with-answer", None)]
    assert found.messages[1].text == "well"
    assert found.findings[0].was["text"] == "well \n"
    assert examined(user("go"), assistant("well \n"), user("more")).findings == ()  # not at the end: it may stay


def test_case_12_a_critical_block_stays_and_is_told() -> None:
    kept = Message(role=Role.USER, content=[TextBlock(text=" ")], metadata=MessageMetadata(critical=(0,)))
    found = examined(kept)

    assert rules(found.findings) == [(1, "empty-text", None)]
    assert found.messages == [kept]


def test_case_22_half_surrogates_and_nul_are_replaced_and_emoji_are_not() -> None:
    data = json.loads(dumps_message(user("ok \U0001f600 ")))
    data["content"][0]["text"] += "\ud83d tail\0"
    found = examined(json.dumps(data))

    assert rules(found.findings) == [(1, "bad-text", "replaced")]
    assert found.findings[0].path == "content[0].text"
    assert found.messages[0].text == "ok \U0001f600 \ufffd tail\ufffd"
    assert json.loads(found.findings[0].was) == "ok \U0001f600 \ud83d tail\0"
    assert repaired(found).findings == ()


def test_case_22_bytes_that_are_not_utf_8() -> None:
    line = dumps_message(user("caf?")).encode().replace(b"caf?", b"caf\xe9")
    found = examine([line])

    assert rules(found.findings) == [(1, "not-utf-8", "replaced")]
    assert found.messages[0].text == "caf\ufffd"
    assert bytes.fromhex(found.findings[0].was) == line
    assert repaired(found).findings == ()


def test_case_22_inputs_and_results_are_looked_into() -> None:
    call, result = (json.loads(dumps_message(each)) for each in (assistant([CALL]), tool_result(CALL, "x")))
    call["content"][0]["input"]["path"] = "a\0"
    result["content"][0]["content"][0]["text"] = "\udc00"
    found = examined(json.dumps(call), json.dumps(result), user("ok"))

    assert [finding.path for finding in found.findings] == ["content[0].input.path", "content[0].content[0].text"]
    assert found.messages[0].tool_calls[0].input == {"path": "a\ufffd"}


def test_case_35_an_aborted_answer_keeps_its_text_and_loses_what_is_half_done() -> None:
    half = ToolUseBlock(id="tu_h", name="read_file", raw_input='{"pa', parse_error="cut")
    signed = ThinkingBlock(text="so", signature="s")
    aborted = unfinished([ThinkingBlock(text="hm"), signed, TextBlock(text="I will"), half])
    found = examined(user("go"), aborted, user("stop"))

    assert rules(found.findings) == [(2, "half-done", "removed")] * 2
    assert [finding.was["type"] for finding in found.findings] == ["thinking", "tool_use"]
    assert found.messages[1].content == (signed, TextBlock(text="I will"))
    assert found.messages[1].metadata.status is MessageStatus.CANCELLED
    assert repaired(found).findings == ()


def test_case_35_a_finished_answer_keeps_even_arguments_that_are_no_json() -> None:
    bad = ToolUseBlock(id="tu_b", name="read_file", raw_input="{", parse_error="cut")
    assert examined(user("go"), assistant([bad]), tool_result(bad, "no", is_error=True), user("again")).findings == ()


def test_case_35_a_whole_call_of_an_aborted_answer_is_answered() -> None:
    assert rules(examined(user("go"), unfinished([CALL]), user("stop")).findings) == [(2, "dangling-call", "inserted")]


def test_case_40_a_conversation_that_ends_with_an_answer_is_told_and_left_to_a_person() -> None:
    found = examined(user("go"), assistant("done"))

    assert rules(found.findings) == [(2, "ends-with-answer", None)]
    assert found.findings[0].hint == "add a user message before sending"
    assert len(found.after) == 2


def test_results_inside_a_users_message_are_moved_out_behind_their_calls() -> None:
    """Some APIs have results there; left there, every request would be refused."""
    mixed = user([ToolResultBlock(tool_use_id="tu_1", content="x"), TextBlock(text="and now?"),
                  ToolResultBlock(tool_use_id="tu_2", content="y")])  # fmt: skip
    only = user([ToolResultBlock(tool_use_id="tu_1", content="x"), ToolResultBlock(tool_use_id="tu_2", content="y")])
    found = examined(user("go"), assistant([CALL, OTHER]), mixed)
    alone = examined(user("go"), assistant([CALL, OTHER]), only)

    assert rules(found.findings) == [(3, "misplaced-result", "moved")] * 2
    assert [finding.path for finding in found.findings] == ["content[0]", "content[2]"]
    assert [one.role.value for one in found.messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [line.number for line in found.after] == [1, 2, None, None, 3]
    assert [one.content for one in found.messages[2:]] == [mixed.content[:1], mixed.content[2:], mixed.content[1:2]]
    assert [one.role.value for one in alone.messages] == ["user", "assistant", "tool", "tool"]
    assert found.left == alone.left == ()
    for diagnosis in (found, alone):
        assert not validate_conversation(diagnosis.messages)
        assert repaired(diagnosis).findings == ()

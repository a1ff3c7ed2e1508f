"""Calls that share an id, as services name them that count calls anew in each turn, keep their own results."""

from __future__ import annotations

import attrs
import orjson
import pytest

from interlingua import user
from interlingua.types import Message, MessageMetadata, Role, TextBlock, ToolResultBlock, ToolUseBlock
from interlingua_transcripts import (
    SessionFormat,
    from_messages,
    open_transcript,
    read_transcript,
    transcript_of,
    with_entries,
    write_transcript,
)
from tests.transcripts.histories import BEGAN, writable_systems

ORIGIN = MessageMetadata(provider="google", model="google:gemini-x")
SYSTEMS = writable_systems()
BESIDE = [system for system in SYSTEMS if system.results_in_calls]


def turns(*calls: int) -> list[Message]:
    """Return a turn for each number, with so many calls that all have one id; the results count on."""
    made: list[Message] = []
    number = 0

    def said(role: Role, *blocks: object, metadata: MessageMetadata | None = None) -> None:
        own = f"01KGBX{len(made):020d}"
        made.append(
            Message(id=own, session_id="s", role=role, content=blocks, created_at=BEGAN, metadata=metadata or ORIGIN)
        )

    for turn, count in enumerate(calls):
        said(Role.USER, TextBlock(text=f"Question {turn}"), metadata=MessageMetadata())
        names = [f"tu_01KGBY{number + at:020d}" for at in range(count)]
        said(
            Role.ASSISTANT,
            *[
                ToolUseBlock(id=name, provider_id="list:0", name="list", input={"at": number + at})
                for at, name in enumerate(names)
            ],
        )
        for at, name in enumerate(names):
            block = ToolResultBlock(
                tool_use_id=name, content=(TextBlock(text=f"result {number + at}."),), tool_name="list"
            )
            said(Role.TOOL, block, metadata=MessageMetadata(parent_tool_use_id=name))
        number += count
    return made


def answered(messages: tuple[Message, ...] | list[Message]) -> list[tuple[object, str]]:
    """Return the argument of each call, with the text of its result."""
    results = {
        block.tool_use_id: "".join(part.text for part in block.content if isinstance(part, TextBlock))
        for message in messages
        for block in message.tool_results
    }
    return [(call.input["at"], results.get(call.id, "none")) for message in messages for call in message.tool_calls]


def texts_of(data: bytes) -> list[str]:
    """Return every string of the file that tells of a result, as often as it is there, whatever it is called."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str) and value.startswith(("result", "new")):
            found.append(value)

    documents = [data] if not data.startswith(b"{") or b"\n}" in data else data.splitlines()
    for document in documents:
        walk(orjson.loads(document))
    return list(dict.fromkeys(found))  # some files hold a string twice


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_each_call_of_a_turn_after_the_first_has_its_own_result(system: SessionFormat) -> None:
    data = write_transcript(transcript_of(turns(1, 1, 1), system.name, "s"), system)
    read = read_transcript(data, system)

    wanted = [(at, f"result {at}.") for at in range(3)]
    assert answered(read.messages) == wanted
    assert [call.provider_id for message in read.messages for call in message.tool_calls] == ["list:0"] * 3
    assert write_transcript(read) == data
    with open_transcript(data, system) as opened:
        assert tuple(opened) == read.messages
        lazy = opened.transcript().messages
        assert [lazy[at] for at in reversed(range(len(lazy)))] == list(reversed(read.messages))


@pytest.mark.parametrize("system", BESIDE, ids=lambda system: system.name)
def test_each_call_of_one_turn_has_its_own_result(system: SessionFormat) -> None:
    data = write_transcript(transcript_of(turns(2, 3), system.name, "s"), system)

    assert answered(read_transcript(data, system).messages) == [(at, f"result {at}.") for at in range(5)]
    assert texts_of(data) == [f"result {at}." for at in range(5)]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
@pytest.mark.parametrize("calls", [(1, 1, 1), (1, 2, 1)], ids=["a turn each", "two in one turn"])
def test_a_changed_result_changes_no_other(system: SessionFormat, calls: tuple[int, ...]) -> None:
    data = write_transcript(transcript_of(turns(*calls), system.name, "s"), system)
    read = read_transcript(data, system)
    at = [number for number, message in enumerate(read.messages) if message.tool_results][1]
    result = attrs.evolve(read.messages[at].tool_results[0], content=(TextBlock(text="new result"),))
    changed = attrs.evolve(read.messages[at], content=(result,))
    messages = (*read.messages[:at], changed, *read.messages[at + 1 :])
    wanted = [(number, "new result" if number == 1 else f"result {number}.") for number in range(sum(calls))]

    for session in (read, from_messages(with_entries(read))):
        assert session is not None
        written = write_transcript(attrs.evolve(session, messages=messages), system)
        assert answered(read_transcript(written, system).messages) == wanted
        assert texts_of(written) == [text for _, text in wanted]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_session_that_is_cut_and_goes_on_keeps_the_results_before(system: SessionFormat) -> None:
    data = write_transcript(transcript_of(turns(1, 2, 1), system.name, "s"), system)
    read = read_transcript(data, system)
    last = [number for number, message in enumerate(read.messages) if message.role is Role.USER][-1]
    added = (user("And?", session_id="s"), *turns(1)[1:])
    added = tuple(attrs.evolve(message, id=f"01KGBZ{number:020d}") for number, message in enumerate(added))

    written = write_transcript(attrs.evolve(read, messages=(*read.messages[:last], *added)), system)
    again = read_transcript(written, system).messages
    assert answered(again) == [(0, "result 0."), (1, "result 1."), (2, "result 2."), (0, "result 0.")]


def test_a_call_without_a_result_takes_none_of_the_next_with_its_id() -> None:
    """opencode's first call waits for ever; the second one of its id is answered."""

    def part(number: int, **state: object) -> dict[str, object]:
        return {"id": f"prt_{number}", "type": "tool", "callID": "c:0", "tool": "list", "state": state}

    waiting = part(1, status="pending", input={"at": 0})
    done = part(2, status="completed", input={"at": 1}, output="found")
    file = {
        "info": {"id": "ses_1"},
        "messages": [{"info": {"id": "msg_1", "role": "assistant"}, "parts": [waiting, done]}],
    }
    read = read_transcript(orjson.dumps(file), "opencode")
    assert answered(read.messages) == [(0, "none"), (1, "found")]


def atif_results(written: bytes) -> list[dict[str, object]]:
    """Return the results of the only step."""
    found: list[dict[str, object]] = orjson.loads(written)["steps"][0]["observation"]["results"]
    return found


def test_results_that_name_no_call_answer_what_they_answered() -> None:
    """An ATIF step has two calls and three results; whichever is left out, the others change only where they must."""
    calls = [{"tool_call_id": f"c{at}", "function_name": "list", "arguments": {"at": at}} for at in range(2)]
    results = [{"content": f"result {at}.", "extra": at} for at in range(3)]
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}}
    file = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": [step]}
    read = read_transcript(orjson.dumps(file))
    assert answered(read.messages) == [(0, "result 0."), (1, "result 1.")]

    last, second, first = [write_transcript(attrs.evolve(read, messages=kept)) for kept in without_each(read.messages)]
    assert atif_results(last) == results[:2]
    assert answered(read_transcript(second).messages) == [(0, "result 0."), (1, "none")]
    assert [result["content"] for result in atif_results(second)] == ["result 0.", "result 2."]
    assert answered(read_transcript(first).messages) == [(0, "none"), (1, "result 1.")]
    assert atif_results(first)[0] == {**results[1], "source_call_id": "c1"}  # its place is another's


def without_each(messages: tuple[Message, ...]) -> list[tuple[Message, ...]]:
    """Return the messages without one of them: the last, the last but one, up to the second."""
    return [(*messages[:at], *messages[at + 1 :]) for at in range(len(messages) - 1, 0, -1)]


def test_what_a_user_repeats_of_a_result_is_told_by_its_own_call() -> None:
    """In Gemini CLI's log two calls share an id: a message repeats the first one's result, and holds the second's."""

    def answer(text: str) -> dict[str, object]:
        return {"functionResponse": {"id": "c", "name": "list", "response": {"output": text}}}

    def line(number: int, kind: str, **members: object) -> dict[str, object]:
        return {"id": str(number), "timestamp": "2026-02-01T10:00:00.000Z", "type": kind, "content": [], **members}

    call = {"id": "c", "name": "list", "args": {"at": 0}}
    lines = [
        {"sessionId": "s", "startTime": "2026-02-01T10:00:00.000Z"},
        line(1, "gemini", toolCalls=[{**call, "status": "success", "result": [answer("first")]}]),
        line(2, "user", content=[answer("first")]),
        line(3, "gemini", toolCalls=[{**call, "args": {"at": 1}, "status": "scheduled"}]),
        line(4, "user", content=[answer("second")]),
    ]
    read = read_transcript(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    assert answered(read.messages) == [(0, "first"), (1, "second")]

    fewer = attrs.evolve(read, messages=(read.messages[0], *read.messages[2:]))
    again = read_transcript(write_transcript(fewer)).messages
    assert answered(again) == [(0, "none"), (1, "second")]

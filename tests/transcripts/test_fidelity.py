"""The fidelity report and the line about what a file does not get: both find values, and planted faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import attrs
import orjson
import pytest

from interlingua.types import Message, MessageMetadata, Role, StopReason, TextBlock, ToolResultBlock, user
from interlingua_transcripts import (
    Conversation,
    SessionFormat,
    TranscriptError,
    Written,
    measure_fidelity,
    read_transcript,
    session_format,
    transcript_of,
    write_transcript,
)
from interlingua_transcripts.formats.pi import Pi
from interlingua_transcripts.unwritten import count_unwritten, describe_unwritten
from interlingua_transcripts.values import Haystack, find_form
from tests.cli.conftest import Run
from tests.transcripts.histories import HISTORY, own_file, writable_systems
from tests.transcripts.test_documents import ATTOCODE, FILES, lines
from tests.transcripts.test_files import FILE

FLAT = FILES["openclaw-lines, a session"]
TREE = lines(
    [
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T10:00:00.000Z", "cwd": "/home/me"},
        *[
            {"type": "message", "id": f"aaaaaaa{at}", "parentId": f"aaaaaaa{at - 1}" if at else None, "message": value}
            for at, value in enumerate(map(orjson.loads, FLAT.splitlines()))
        ],
    ]
)


@pytest.mark.parametrize("target", ["wolo", "codex", "claude-code", "atif"])
def test_a_flat_file_loses_what_a_tree_loses(target: str) -> None:
    flat, tree = (measure_fidelity(read_transcript(data), target) for data in (FLAT, TREE))
    inside = {place.removeprefix("message."): count for place, count in tree.lost.items()}
    for place in ("cwd", "id", "type", "version"):  # of the header, which a flat file has not
        inside.pop(place, None)
    assert inside == flat.lost
    assert flat.total.exact > 10


@pytest.mark.parametrize("name", FILES)
def test_the_messages_carry_the_documents_examples(name: str) -> None:
    """No number is empty: most values are in the messages, and each text of the file is."""
    report = measure_fidelity(read_transcript(FILES[name]))
    assert report.total.lost == 0
    assert report.total.exact + report.total.other > 2 * report.total.kept
    kept = [place for place in report.places if place.endswith(("text", "content", "result", "output", "input"))]
    assert kept == (["contents[].content"] if name == "operator-use" else [])  # its custom message


def test_a_result_that_a_reader_drops_is_not_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    pi = type(session_format("pi"))
    read = pi.to_messages

    def dropped(*arguments: object) -> list[Message]:
        messages = read(*arguments)  # type: ignore[arg-type]
        return [_without_results(message) for message in messages]

    before = measure_fidelity(read_transcript(FILE)).places
    monkeypatch.setattr(Pi, "to_messages", dropped)
    assert (
        measure_fidelity(read_transcript(FILE)).places["message.content[].text"] == before["message.content[].text"] + 1
    )


def _without_results(message: Message) -> Message:
    blocks = [attrs.evolve(one, content=()) if isinstance(one, ToolResultBlock) else one for one in message.content]
    return attrs.evolve(message, content=blocks)


def test_a_result_that_a_writer_drops_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Pi.write

    def dropped(self: Pi, conversation: Conversation) -> Iterator[Written]:
        messages = [_without_results(message) for message in conversation.messages]
        return write(self, attrs.evolve(conversation, messages=messages))

    read = read_transcript(lines(ATTOCODE))
    before = measure_fidelity(read, "pi").lost
    monkeypatch.setattr(Pi, "write", dropped)
    after = measure_fidelity(read, "pi").lost - before
    assert after["content"] == 1  # file contents here...
    assert after["toolResults[].error"] == 1


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_a_session_made_here_has_a_report(system: SessionFormat) -> None:
    report = measure_fidelity(transcript_of(HISTORY, system.name, "s"), system.name)
    assert (report.system, report.target, report.messages) == ("interlingua", system.name, len(HISTORY))
    assert report.content == {"texts": 8, "thinking": 1, "calls": 2, "results": 2, "media": 1}
    assert report.total.exact > 0
    assert report.total.kept == 0
    assert report.lost["content[].text"] == (system.name == "attocode")  # its files have no thinking
    assert ("content[].source.data" in report.lost) is (system.name in ("wolo", "atif"))


def test_what_a_file_does_not_get_is_one_line() -> None:
    found = count_unwritten(transcript_of(HISTORY, "wolo", "s"), "wolo")
    assert (found["image"], found["text"], found["result"], found["call"]) == (1, 0, 0, 0)
    assert "1 image" in describe_unwritten(found, "wolo")
    assert "\n" not in describe_unwritten(found, "wolo")
    assert describe_unwritten(count_unwritten(transcript_of(HISTORY, "pi", "s"), "pi"), "pi") == ""


@pytest.mark.parametrize("end", [StopReason.MAX_TOKENS, StopReason.REFUSAL, StopReason.STOP_SEQUENCE])
@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_an_answer_whose_unusual_end_a_file_does_not_tell_is_counted(system: SessionFormat, end: StopReason) -> None:
    metadata = MessageMetadata(stop_reason=end, model="anthropic:claude-opus-4-6")
    answer = Message(role=Role.ASSISTANT, content=(TextBlock(text="Cut off here"),), metadata=metadata)
    transcript = transcript_of([user("Hi."), answer], system.name, str(UUID(int=9, version=4)))
    read = read_transcript(write_transcript(transcript), system)
    told = [message.metadata.stop_reason for message in read.messages if message.role is Role.ASSISTANT] == [end]
    assert count_unwritten(transcript, system)["stop reason"] == (not told)


def test_what_was_added_to_a_session_is_looked_for_in_its_own_file() -> None:
    picture = next(message for message in HISTORY if any(block.type == "image" for block in message.content))
    read = read_transcript(own_file(session_format("wolo")))
    assert count_unwritten(read, "wolo") == {}
    grown = attrs.evolve(read, messages=(*read.messages, picture))
    assert count_unwritten(grown, "wolo") == {"image": 1}


def test_a_value_is_found_once_for_each_time_it_is_there() -> None:
    stack = Haystack({"a": ["same text", "same text"], "b": True, "c": 1})
    assert [stack.take("same text") for _ in range(3)] == [True, True, False]
    assert (stack.take(1), stack.take(1), stack.take(True)) == (True, False, True)


@pytest.mark.parametrize(
    ("leaf", "written", "found"),
    [
        ("2026-02-01T10:00:00.000Z", 1769940000000, True),
        (1769940000.0, "2026-02-01T10:00:00+00:00", True),
        ("2026-02-01T10:00:00.000Z", 1769940001000, False),
        (0.5, "0.5", True),
        (0.5, "0.25", False),
        ("line one", "line one\nline two", True),
        ("line on", "line one\nline two", False),
        ("stop", "the user said stop it", False),
        ("toolUse", "tool_use", True),
        ("a.txt", '{"path":"a.txt"}', True),
        ('{"path":"a.txt"}', {"path": "a.txt"}, True),
        ('{"path":"b.txt"}', {"path": "a.txt"}, False),
        ("data:image/png;base64,AAAA", {"type": "image/png", "data": "AAAA"}, True),
        ("data:image/png;base64,AAAA", {"type": "image/png"}, False),
        (False, {}, True),
        (True, {}, False),
    ],
)
def test_a_rule_turns_a_value_into_another(leaf: object, written: object, found: bool) -> None:
    assert (find_form(leaf, [Haystack(written)]) is not None) is found


def test_a_file_without_a_message_is_named(run: Run) -> None:
    Path("empty.jsonl").write_bytes(FILE.splitlines(keepends=True)[0])
    checked = run("transcript", "check", "empty.jsonl")
    assert checked.exit_code == 1
    assert "empty.jsonl: no entry made a message: session (1)" in checked.stderr

    Path("s.jsonl").write_bytes(FILE)
    (row,) = orjson.loads(run("transcript", "check", "s.jsonl", "--json").stdout)
    assert row["content"] == {"texts": 2, "calls": 1, "results": 1}
    assert row["silent"] == {"session": 1, "label": 1, "message/user": 1}


@pytest.mark.usefixtures("place")
def test_commands_say_what_the_target_does_not_get(run: Run) -> None:
    Path("s.jsonl").write_bytes(own_file(session_format("pi")))
    converted = run("transcript", "convert", "s.jsonl", "--to", "wolo", "--out", "w.json")
    assert converted.exit_code == 0
    assert "s.jsonl: not in the Wolo file: " in converted.stderr
    assert "1 image" in converted.stderr

    strict = run("transcript", "convert", "s.jsonl", "--to", "wolo", "--out", "x.json", "--strict")
    assert strict.exit_code == 1
    assert not Path("x.json").exists()
    assert strict.stderr.startswith("error: s.jsonl: not in the Wolo file: ")

    assert run("transcript", "convert", "s.jsonl", "--to", "pi", "--out", "p.jsonl", "--strict").exit_code == 0
    said = run("transcript", "convert", "s.jsonl", "--to", "wolo", "--out", "y.json", "--json")
    assert orjson.loads(said.stdout)["unwritten"]["image"] == 1

    name = run("transcript", "import", "s.jsonl").stdout.strip()
    exported = run("transcript", "export", name, "--to", "wolo", "--out", "e.json")
    assert "1 image" in exported.stderr
    assert run("transcript", "export", name, "--to", "wolo", "--out", "f.json", "--strict").exit_code == 1


def test_a_target_that_is_only_read_is_refused() -> None:
    with pytest.raises(TranscriptError, match="can be read, not written"):
        measure_fidelity(transcript_of([user("Hi")], "pi", "s"), "qwen-code")

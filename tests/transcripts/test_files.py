"""Reading, changing and writing a session file, whatever its system; the file here is a small one of pi's form."""

from __future__ import annotations

import gzip
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import attrs
import orjson
import pytest

import interlingua
from interlingua.types import OpaqueBlock, Role, TextBlock, ToolUseBlock
from interlingua_transcripts import (
    SessionFormat,
    TranscriptError,
    files,
    from_messages,
    measure_fidelity,
    open_transcript,
    read_transcript,
    session_format,
    transcript_of,
    with_entries,
    write_transcript,
)
from interlingua_transcripts.system import list_files
from tests.transcripts.agent_samples import SAMPLES
from tests.transcripts.histories import own_file, writable_systems

USAGE = {"input": 5, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 7}


def lines(*entries: Any) -> bytes:
    return b"".join([orjson.dumps(entry) + b"\n" for entry in entries])


def entry(own: str, parent: str | None, **message: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": own,
        "parentId": parent,
        "timestamp": "2026-02-01T10:00:00.000Z",
        "message": {"timestamp": 1769940000000, **message},
    }


HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T10:00:00.000Z", "cwd": "/home/me"}
MADE = {"api": "anthropic-messages", "provider": "anthropic", "model": "m", "usage": USAGE}
DONE = {"type": "text", "text": "Done"}
CALL = {"type": "toolCall", "id": "toolu_1", "name": "read", "arguments": {"path": "a"}}
FILE = lines(
    HEADER,
    entry("aaaaaaa1", None, role="user", content=[{"type": "text", "text": "Hi"}]),
    {"type": "label", "id": "aaaaaaa2", "parentId": "aaaaaaa1", "timestamp": "2026-02-01T10:00:01.000Z", "label": "x"},
    entry("aaaaaaa3", "aaaaaaa2", role="assistant", content=[CALL], stopReason="toolUse", **MADE),
    entry(
        "aaaaaaa4",
        "aaaaaaa3",
        role="toolResult",
        toolCallId="toolu_1",
        toolName="read",
        content=[{"type": "text", "text": "A"}],
        isError=False,
        details=["any", 1],
    ),
    entry("aaaaaaa5", "aaaaaaa1", role="user", content=[{"type": "text", "text": "another branch"}]),
    entry("aaaaaaa6", "aaaaaaa4", role="assistant", content=[DONE], stopReason="stop", **MADE),
)


def test_the_active_branch_is_the_conversation() -> None:
    read = read_transcript(FILE)

    assert (read.system, read.version, read.session_id, read.cwd) == ("pi", "3", "s1", "/home/me")
    assert [message.role for message in read.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert list(read.branches) == [5]
    call = read.messages[1].content[0]
    assert isinstance(call, ToolUseBlock)
    assert call.provider_id == "toolu_1"
    assert read.messages[2].metadata.parent_tool_use_id == call.id


def test_ids_are_the_same_each_time_and_when_the_file_grows() -> None:
    short = read_transcript(b"\n".join(FILE.split(b"\n")[:4]) + b"\n")

    assert read_transcript(FILE).messages[:2] == short.messages
    ids = [message.id for message in read_transcript(FILE).messages]
    assert ids == sorted(ids)


def test_an_unchanged_file_is_written_byte_for_byte() -> None:
    assert write_transcript(read_transcript(FILE)) == FILE
    kept = from_messages(with_entries(read_transcript(FILE)))
    assert kept is not None
    assert write_transcript(kept) == FILE


def test_a_changed_message_changes_its_own_place_only() -> None:
    read = read_transcript(FILE)
    last = attrs.evolve(read.messages[-1], content=(TextBlock(text="Changed"),))

    before, after = FILE.split(b"\n"), write_transcript(attrs.evolve(read, messages=(*read.messages[:-1], last)))

    assert after.split(b"\n")[:6] == before[:6]
    assert orjson.loads(after.split(b"\n")[6]) == {
        **orjson.loads(before[6]),
        "message": {**orjson.loads(before[6])["message"], "content": [{"type": "text", "text": "Changed"}]},
    }


def test_a_new_message_is_added_at_the_end_of_the_branch() -> None:
    read = read_transcript(FILE)

    written = write_transcript(attrs.evolve(read, messages=(*read.messages, interlingua.user("More?"))))

    assert written.startswith(FILE)
    added = orjson.loads(written[len(FILE) :])
    assert added["parentId"] == "aaaaaaa6"
    assert read_transcript(written).messages[-1].text == "More?"


@pytest.mark.parametrize("end", [b'{"type":"message","id":"aa', b"not JSON\n", b'{"type":"future","id":"aaaaaaa9"}\n'])
def test_what_cannot_be_read_is_kept(end: bytes) -> None:
    read = read_transcript(FILE + end)

    assert read.messages == read_transcript(FILE).messages
    assert write_transcript(read).rstrip(b"\n") == (FILE + end).rstrip(b"\n")
    assert measure_fidelity(read).total.lost == 0


def test_leaves_are_counted_by_what_became_of_them() -> None:
    report = measure_fidelity(read_transcript(FILE))

    assert report.equal
    assert report.total.lost == 0
    assert report.by_kind["label"].exact == 0  # no message says it
    assert report.places["label"] == 1
    assert report.by_kind["message/toolResult"].kept == 2  # id and parentId
    assert report.total.leaves == report.total.exact + report.total.other + report.total.kept


def test_a_file_of_no_known_system_is_refused() -> None:
    with pytest.raises(TranscriptError, match="known system"):
        read_transcript(b'{"hello": 1}\n')
    with pytest.raises(TranscriptError, match="no system 'x'"):
        read_transcript(FILE, "x")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b" \n", "is empty"),
        (b"(\xb5/\xfd" + FILE, r"is compressed; unpack it first \(`zstd -d`\)"),
        (b"PK\x03\x04" + FILE, r"is compressed; unpack it first \(`unzip`\)"),
        (FILE.decode().encode("utf-16"), "is UTF-16; save it as UTF-8"),
    ],
)
def test_a_file_that_holds_no_lines_says_what_it_is(data: bytes, why: str) -> None:
    with pytest.raises(TranscriptError, match=why):
        read_transcript(data)
    with pytest.raises(TranscriptError, match=why), open_transcript(data):
        pass


PACKED = gzip.compress(FILE, mtime=0)


def test_a_gzip_file_is_read_as_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(FILE[:200]) + gzip.compress(FILE[200:]))  # of two parts, as appending makes them

    assert read_transcript(path) == read_transcript(FILE)
    with open_transcript(path) as session:
        assert tuple(session) == read_transcript(FILE).messages
        assert write_transcript(session) == FILE


@pytest.mark.parametrize(
    "damaged",
    [
        PACKED[:-20],
        PACKED[:5],
        PACKED[:20] + b"\0" * 40,
        b"\x1f\x8bx",
        b"\x1f\x8b",
    ],
    ids=["without its end", "five bytes", "zeros", "no header", "two bytes"],
)
def test_a_damaged_gzip_file_is_named(damaged: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(damaged)
    for read in (read_transcript, lambda path: open_transcript(path).__enter__()):
        with pytest.raises(TranscriptError, match=r"s\.jsonl\.gz: the gzip file is damaged"):
            read(path)


def test_a_gzip_file_has_a_limit_of_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(FILE + b" " * 100_000))
    monkeypatch.setattr(files, "_LARGEST", 100_000)
    with pytest.raises(TranscriptError, match=r"unpacks to more than 100,000 bytes"):
        read_transcript(path)


def test_a_result_that_a_file_says_twice_is_one_result() -> None:
    """Gemini CLI keeps the result with its call, and again in the user's message that followed."""
    said = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}
    call = {"id": "c1", "name": "ls", "args": {}, "result": [said], "status": "success"}
    at = {"timestamp": "2026-02-01T10:00:00.000Z"}
    messages = [
        {"id": "1", **at, "type": "user", "content": [{"text": "What is here?"}]},
        {"id": "2", **at, "type": "gemini", "content": "", "toolCalls": [call], "model": "gemini-x"},
        {"id": "3", **at, "type": "user", "content": [said]},
        {
            "id": "4",
            **at,
            "type": "user",
            "content": [{"functionResponse": {"id": "c0", "response": {"output": "old"}}}],
        },
    ]
    file = lines({"sessionId": "s", "startTime": at["timestamp"], "messages": messages})

    roles = [message.role for message in read_transcript(file).messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL]


def test_what_is_said_of_an_answer_that_is_left_out_falls_to_no_other() -> None:
    """Codex repeats an answer's counts, and names the model of the next turn before anything is said in it."""

    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-02-01T10:00:00.000Z", "type": kind, "payload": payload}

    def said(role: str, text: str) -> dict[str, Any]:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        return line("response_item", type="message", role=role, content=[part])

    def counted(count: int) -> dict[str, Any]:
        usage = {"input_tokens": count, "output_tokens": count, "total_tokens": 2 * count}
        info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": 10 * count}}
        return line("event_msg", type="token_count", info=info)

    one, two = line("turn_context", model="one"), line("turn_context", model="two")
    turns = [one, said("user", "1"), said("assistant", "A"), counted(1), said("user", "2"), two, said("assistant", "B")]
    file = lines(line("session_meta", id="s", cwd="/"), *turns, counted(2), counted(2))
    read = read_transcript(file)
    assert [message.metadata.usage and message.metadata.usage.input_tokens for message in read.messages] == [
        None,
        1,
        None,
        2,
    ]

    start = read.messages[:2]
    again = read_transcript(write_transcript(attrs.evolve(read, messages=start)))
    assert again.messages == start
    fewer = lines(
        *[json for json in map(orjson.loads, file.splitlines()) if json["payload"].get("type") != "token_count"]
    )
    uncounted = read_transcript(fewer)
    start = uncounted.messages[:2]
    assert read_transcript(write_transcript(attrs.evolve(uncounted, messages=start))).messages == start


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_a_mark_before_the_first_letter_is_passed_over_and_kept(system: SessionFormat) -> None:
    """Editors of Windows put one there; without it the header would be no JSON, and the session without its id."""
    file = own_file(system)
    marked = BOM_UTF8 + file

    read = read_transcript(marked)
    assert (read.system, read.messages, read.notes) == (system.name, read_transcript(file).messages, ())
    assert write_transcript(read) == (marked if system.suffix == ".jsonl" else file)
    with open_transcript(marked) as opened:
        assert tuple(opened) == read.messages


def test_a_codex_file_with_a_broken_header_takes_no_session_id_of_a_line() -> None:
    line = {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    file = b"{\n" + lines(line, {**line, "id": "msg_2"})
    with open_transcript(file, "codex") as opened:
        assert tuple(opened) == read_transcript(file, "codex").messages
    assert [message.session_id for message in read_transcript(file, "codex").messages] == ["default"] * 2


LINES = [system for system in writable_systems() if system.suffix == ".jsonl"]


def _times_as_long(system: SessionFormat, use: Callable[[bytes], object], repeats: int) -> float:
    """Return how much longer a file of ten times the lines takes."""
    first, *rest = own_file(system).rstrip(b"\n").split(b"\n")

    def seconds(count: int) -> float:
        data = b"\n".join([first, *rest * count]) + b"\n"
        start = process_time()
        use(data)
        return process_time() - start

    short = min(seconds(repeats) for _ in range(3))
    return min(seconds(10 * repeats) for _ in range(2)) / short


@pytest.mark.parametrize("system", LINES, ids=lambda system: system.name)
def test_long_files_are_read_in_linear_time(system: SessionFormat) -> None:
    assert _times_as_long(system, lambda data: read_transcript(data, system), 200) < 40  # a quadratic way takes 100


@pytest.mark.parametrize(("name", "target"), [("pi", None), ("pi", "attocode"), ("codex", None)])
def test_long_files_are_checked_in_linear_time(name: str, target: str | None) -> None:
    """Leaves are counted group by group; what came back from another system is aligned piece by piece."""
    system = session_format(name)
    assert _times_as_long(system, lambda data: measure_fidelity(read_transcript(data, system), target), 40) < 40


def test_a_document_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = own_file(session_format("atif"))
    parsed: list[int] = []
    loads = orjson.loads

    def counted(text: Any) -> Any:
        parsed.append(len(text))
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    read_transcript(data)
    assert parsed.count(len(data)) == 1


def test_every_message_of_a_long_line_has_an_id_of_its_own() -> None:
    said = [{"role": ("user", "assistant")[number % 2], "content": str(number)} for number in range(600)]
    lines = b"\n".join(orjson.dumps({"messages": said}) for _ in range(2))
    messages = read_transcript(lines, "chat-ft").messages
    assert len({message.id for message in messages}) == len(messages) == 1200


def test_several_marks_before_a_document_are_passed_over() -> None:
    data = BOM_UTF8 * 2 + own_file(session_format("atif"))
    assert read_transcript(data, "atif").messages == read_transcript(data).messages


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_a_number_of_any_size_is_written(system: SessionFormat) -> None:
    call = ToolUseBlock(id="tu_1", name="count", input={"to": 10**30})
    data = write_transcript(transcript_of([interlingua.user("hi"), interlingua.assistant([call])], system.name, "s1"))
    assert b"0" * 30 in data
    if system.suffix == ".json":  # a document is written from its values
        assert read_transcript(data).messages[1].tool_calls[0].input == {"to": 10**30}
        assert b"0" * 30 in write_transcript(read_transcript(data))


@pytest.mark.parametrize(
    ("name", "provider"), [("claude-code", "anthropic"), ("codex", "openai"), ("atif", "atif"), ("operator-use",) * 2]
)
def test_a_block_that_names_no_type_is_written_as_it_is(name: str, provider: str) -> None:
    block = OpaqueBlock(provider=provider, kind="None", data={"strange": 1})
    call = ToolUseBlock(id="tu_1", name="look")
    said = [interlingua.user([block]), interlingua.assistant([call]), interlingua.tool_result("tu_1", [block])]
    assert b'"strange"' in write_transcript(transcript_of(said, name, "s1"))


def _branched(system: str) -> bytes:
    """Return a session whose second question was asked anew: the branch that was left is first in the file."""
    talk = [
        ("a", None, "user", "Hi"),
        ("b", "a", "assistant", "Hello"),
        ("c", "b", "user", "old"),
        ("d", "b", "user", "new"),
    ]
    if system == "claude-code":
        entries: list[Any] = [
            {"type": role, "uuid": own, "parentUuid": above, "sessionId": "s", "version": "2.1.0",
             "timestamp": "2026-01-01T00:00:00Z", "message": {"role": role, "content": text}}
            for own, above, role, text in talk
        ]  # fmt: skip
    else:
        entries = [{"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"}]
        entries += [
            {"type": "message", "id": own * 8, "parentId": above and above * 8, "timestamp": "2026-01-01T00:00:00Z",
             "message": {"role": role, "content": [{"type": "text", "text": text}]}}
            for own, above, role, text in talk
        ]  # fmt: skip
    return lines(*entries)


@pytest.mark.parametrize("system", ["claude-code", "pi", "openclaw"])
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_session_cut_before_another_branch_ends_where_it_was_cut(system: str, kept: int) -> None:
    read = read_transcript(_branched(system), system)
    assert [message.text for message in read.messages] == ["Hi", "Hello", "new"]
    written = write_transcript(attrs.evolve(read, messages=read.messages[:kept]))
    assert read_transcript(written, system).messages == read.messages[:kept]
    assert (b"old" in written) is (kept == 3)


def test_a_lost_parent_hides_nothing_that_the_last_prompt_is_above() -> None:
    """Of a message's lines between others, one may be lost; the line before it is then the parent, for the leaf too."""
    data = _branched("claude-code").replace(b'"parentUuid":"b","sessionId":"s","version":"2.1.0"', b'"parentUuid":"x"')
    prompt = orjson.dumps({"type": "last-prompt", "leafUuid": "a", "sessionId": "s"}) + b"\n"
    first, rest = data.split(b"\n", 1)
    read = read_transcript(first + b"\n" + prompt + rest)
    assert [message.text for message in read.messages] == ["Hi", "Hello", "old", "new"]


def test_ids_rise_where_an_entry_makes_many_messages() -> None:
    talk = [{"role": ("user", "assistant")[at % 2], "content": f"text {at}"} for at in range(600)]
    read = read_transcript(lines({"messages": talk}, {"messages": talk[:3]}, {"messages": talk[:300]}), "chat-ft")
    ids = [message.id for message in read.messages]
    assert ids == sorted(set(ids))
    assert read_transcript(lines({"messages": talk}, {"messages": talk[:3]}), "chat-ft").messages == read.messages[:603]


def test_files_are_listed_as_path_glob_does(tmp_path: Path) -> None:
    for name in ("a/b/one.jsonl", "a/.hidden/two.jsonl", "three.jsonl", "a/b/other.json", "a/c.jsonl/four.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "above").symlink_to(tmp_path)
    (tmp_path / "a" / "link.jsonl").symlink_to(tmp_path / "three.jsonl")
    for pattern in ("*.jsonl", "*/*.jsonl", "*/*/*.jsonl", "a/*/*.json", "**/*.jsonl", "**/o*.jsonl", "b/*.jsonl"):
        listed = sorted(list_files(tmp_path, pattern))
        assert listed == sorted(map(str, tmp_path.glob(pattern))), pattern
    assert sorted(list_files(tmp_path, "a/b/*", "*.jsonl", "b*")) == [str(tmp_path / "a" / "b" / "other.json")]


@pytest.mark.parametrize(("name", "member"), [("continue", "title"), ("amp", "title"), ("pi", "cwd"), ("codex", "cwd")])
def test_a_fact_that_is_no_string_is_left_out(name: str, member: str) -> None:
    data = SAMPLES[name] if name in SAMPLES else own_file(session_format(name))
    odd = re.sub(rb'"%s": ?("[^"]*"|null)' % member.encode(), b'"%s": {"odd": [1]}' % member.encode(), data, count=1)
    assert odd != data
    read = read_transcript(odd, name)
    assert (read.title, read.cwd)[member == "cwd"] is None
    assert read.messages

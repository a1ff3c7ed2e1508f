"""Other programs' session files: named by every command that reads a conversation, and never repaired."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.codec import dumps_message, encode_message
from interlingua.errors import DecodeError
from interlingua.types import Message, user
from interlingua_cli.doctor import examine
from interlingua_cli.foreign import recognise_format, refuse_foreign
from interlingua_contract.strategies import conversations
from tests.cli.conftest import Run
from tests.support.counts import examples

PI = "a pi or OpenClaw session"
CLAUDE = "a Claude Code session"
CODEX = "a Codex session"
WOLO = "a Wolo session"
CHAT = "OpenAI chat messages"

# What a line of each looks like, written by hand; a file of several lines is recognised by any of its first ones.
LINES: list[tuple[str, dict[str, Any]]] = [
    (PI, {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}),
    (PI, {"type": "message", "id": "a1", "parentId": None, "message": {"role": "user", "content": "hi"}}),
    (PI, {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1, "stopReason": "stop"}),
    (PI, {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}]}),
    (PI, {"role": "toolResult", "toolCallId": "c", "toolName": "ls", "content": [], "isError": False}),
    ("a Tau session", {"type": "message", "id": "a1", "parent_id": None, "message": {"role": "user", "contents": []}}),
    (CLAUDE, {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"role": "user"}}),
    (CLAUDE, {"type": "summary", "summary": "About it", "leafUuid": "u"}),
    (CLAUDE, {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}),
    (CODEX, {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}}),
    (CODEX, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
    ("the output of `codex exec --json`", {"type": "thread.started", "thread_id": "t"}),
    ("the output of `claude", {"type": "system", "subtype": "init", "session_id": "s"}),
    ("a Gemini CLI session", {"sessionId": "s", "projectHash": "h", "startTime": "t", "messages": []}),
    ("an Attocode session", {"timestamp": "t", "type": "message", "data": {"role": "user", "content": "hi"}}),
    (WOLO, {"id": "m", "role": "user", "parts": [{"type": "text", "id": "p", "text": "hi"}]}),
    (WOLO, {"session": {"id": "s"}, "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
    ("an opencode export", {"info": {"id": "s"}, "messages": [{"info": {"role": "user"}, "parts": []}]}),
    ("an ATIF trajectory", {"schema_version": "ATIF-v1.7", "session_id": "s", "steps": []}),
    ("OpenAI fine-tuning data", {"messages": [{"role": "user", "content": "hi"}]}),
    ("ShareGPT data", {"conversations": [{"from": "human", "value": "hi"}]}),
    (CHAT, {"role": "user", "content": "hi"}),
    (CHAT, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}),
    ("an export of a stored session", {"type": "session", "format": 1, "id": "s", "routing_policy": None}),
]


@pytest.mark.parametrize(("name", "line"), LINES)
def test_a_line_names_its_program(name: str, line: dict[str, Any]) -> None:
    for text in (json.dumps(line), json.dumps(line, indent=2)):  # some files are one JSON value on many lines
        with pytest.raises(DecodeError, match=f"looks like {name}"):
            refuse_foreign(text.encode().splitlines(keepends=True))


def test_a_json_list_is_recognised_by_its_items() -> None:
    with pytest.raises(DecodeError, match=CHAT):
        refuse_foreign(json.dumps([{"role": "user", "content": "hi"}], indent=1).encode().splitlines(keepends=True))


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(conversations())
def test_messages_of_interlingua_are_nobody_elses(messages: list[Message]) -> None:
    assert recognise_format(encode_message(message) for message in messages) is None


@given(st.sampled_from(["user", "assistant", "system"]), st.text())
def test_a_message_written_by_hand_is_one_of_interlingua(role: str, text: str) -> None:
    assert recognise_format([{"role": role, "content": [{"type": "text", "text": text}]}]) is None


@pytest.mark.parametrize(
    "command",
    [("session", "import", "f.jsonl", "--store", "new.db"),
     ("doctor", "f.jsonl"), ("doctor", "f.jsonl", "--repair", "out.jsonl"), ("doctor", "f.jsonl", "--in-place"),
     ("explain", "f.jsonl", "--to", "compatible:m"), ("wire", "f.jsonl", "--to", "compatible:m"),
     ("chat", "compatible:m", "--resume", "f.jsonl")],
)  # fmt: skip
def test_every_command_names_a_foreign_file_and_writes_nothing(run: Run, command: tuple[str, ...]) -> None:
    text = "".join(f"{json.dumps(line)}\n" for name, line in LINES if name == PI)
    Path("f.jsonl").write_text(text, encoding="utf-8")
    result = run(*command, input="hi\n")

    assert result.exit_code == 1, result.output
    assert f"looks like {PI}, not like interlingua messages" in result.stderr
    assert "repair" not in result.stderr
    assert Path("f.jsonl").read_text(encoding="utf-8") == text
    assert sorted(path.name for path in Path.cwd().iterdir() if path.suffix == ".jsonl") == ["f.jsonl"]


def test_a_foreign_line_far_down_is_named_and_kept() -> None:
    ours = [f"{dumps_message(user(str(number)))}\n".encode() for number in range(60)]
    theirs = json.dumps(LINES[6][1]).encode() + b"\n"
    found = examine([*ours, theirs])

    assert [(each.line, each.remedy) for each in found.findings] == [(61, None)]
    assert CLAUDE in found.findings[0].message
    assert found.after[-1].text.encode() + b"\n" == theirs


@pytest.mark.parametrize("command", [("doctor", "f.gz"), ("explain", "f.gz", "--to", "compatible:m")])
def test_a_compressed_file_is_named(run: Run, command: tuple[str, ...]) -> None:
    theirs = "".join(f"{json.dumps(line)}\n" for name, line in LINES if name == PI).encode()
    ours = dumps_message(user("hi")).encode()
    for data, said in [
        (
            gzip.compress(theirs),
            f"looks like {PI}, not like interlingua messages; `interlingua transcript import f.gz`",
        ),
        (gzip.compress(ours), "is compressed with gzip: unpack it first (`gzip -d`)"),
        (gzip.compress(ours)[:12] + b"\xff" * 9, "is compressed with gzip: unpack it first (`gzip -d`)"),
    ]:
        Path("f.gz").write_bytes(data)
        result = run(*command)
        assert result.exit_code == 1
        assert f"f.gz {said}" in result.stderr
        assert not result.stdout


ACME = """
from interlingua_transcripts import DocumentFormat, SessionFormat

class Lines(SessionFormat):
    name, title = "acme", "Acme"

    def detect(self, head):
        return "1" if "acme" in head[0] else None

class Document(DocumentFormat):
    name, title, items = "acme-log", "Acme Log", "said"

    def detect(self, head):
        return "1" if len(head) == 1 and "said" in head[0] else None

lines, document = Lines(), Document()
"""
ENTRY_POINTS = "[interlingua.session_formats]\nbroken = acme:nothing\nacme = acme:lines\nacme-log = acme:document\n"


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that brings session files of its own."""
    place = tmp_path / "site"
    made = {
        "acme.py": ACME,
        "acme-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1\n",
        "acme-1.dist-info/entry_points.txt": ENTRY_POINTS,
    }
    for name, text in made.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "f.jsonl"),
        ("explain", "f.jsonl", "--to", "compatible:m"),
        ("wire", "f.jsonl", "--to", "compatible:m"),
        ("chat", "compatible:m", "--resume", "f.jsonl"),
    ],
)
@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('{"acme":"user","x":"Hi"}\n{"acme":"assistant","x":"Hello"}\n', "Acme"),
        ('{\n  "said": [\n    {"x": "Hi"}\n  ]\n}\n', "Acme Log"),
    ],
)
def test_a_format_that_a_distribution_adds_is_named(run: Run, command: tuple[str, ...], text: str, title: str) -> None:
    Path("f.jsonl").write_text(text, encoding="utf-8")
    result = run(*command)
    assert result.exit_code == 1
    assert f"f.jsonl looks like a session file of {title}, not like interlingua messages" in result.stderr
    assert "`interlingua transcript import f.jsonl` imports it as a conversation" in result.stderr
    assert Path("f.jsonl").read_text(encoding="utf-8") == text


@pytest.mark.usefixtures("third_party")
def test_messages_of_ours_are_never_an_added_format() -> None:
    line = {**encode_message(user("hi")), "acme": "user"}
    assert recognise_format([line]) is None
    assert not examine([json.dumps(line).encode()]).findings


SAMPLES = os.environ.get("INTERLINGUA_TRANSCRIPTS", "")
NAMES = {
    "pi": PI, "openclaw": PI, "claude-code": CLAUDE, "codex": CODEX, "gemini": "a Gemini CLI session",
    "opencode": "an opencode export", "atif": "an ATIF trajectory", "sweagent": "a SWE-agent trajectory",
    "mini-swe-agent": "a mini-SWE-agent trajectory", "openhands": "an OpenHands trajectory",
    "inspect": "an Inspect log",
    "chat-ft": "OpenAI fine-tuning data", "pi-stream-json": "the output of `pi", "dsh": "a DSH log",
    "codex-exec-json": "the output of `codex", "role-jsonl": CHAT, "role-list": CHAT,
}  # fmt: skip


def samples(name: str) -> Iterator[list[bytes]]:
    for path in Path(SAMPLES).rglob(f"{name}.jsonl.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)["text"].encode().splitlines(keepends=True)


@pytest.mark.skipif(not SAMPLES, reason="INTERLINGUA_TRANSCRIPTS names no folder")
@pytest.mark.parametrize("name", NAMES)
def test_real_files_are_named(name: str) -> None:
    for lines in samples(name):
        with pytest.raises(DecodeError) as caught:
            examine(lines)
        said = str(caught.value)
        assert f"looks like {NAMES[name]}" in said or (name == "claude-code" and "the output of `claude" in said)

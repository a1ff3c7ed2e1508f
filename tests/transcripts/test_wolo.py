"""Wolo's sessions as the folders they are, its words for a call's part and for a stream's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from interlingua.errors import ServerError
from interlingua.types import (
    ErrorEvent,
    MessageComplete,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    ToolResultBlock,
    ToolUseEnd,
    ToolUseInputDelta,
    ToolUseStart,
)
from interlingua_transcripts import TranscriptError, read_transcript
from interlingua_transcripts.formats.wolo import part_status, to_stream_events
from tests.cli.conftest import Run
from tests.transcripts.test_documents import FILES, WOLO


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions" / "a1b2c3d4"
    (folder / "messages").mkdir(parents=True)
    (folder / "session.json").write_bytes(orjson.dumps({"id": "a1b2c3d4", "title": "T", "workdir": "/home/me"}))
    for message in WOLO:
        (folder / "messages" / f"{message['id']}.json").write_bytes(orjson.dumps(message))
    return folder


@pytest.mark.parametrize("name", ["", "session.json"])
def test_a_folder_is_one_session(folder: Path, name: str) -> None:
    read = read_transcript(folder / name)

    assert (read.system, read.session_id, read.title, read.cwd) == ("wolo", "a1b2c3d4", "T", "/home/me")
    assert len(read.entries) == len(WOLO) + 1
    assert orjson.loads(read.entries[1]) == WOLO[0]


@pytest.mark.usefixtures("place")
def test_the_sessions_below_a_folder_are_imported(run: Run, folder: Path) -> None:
    (folder / "todos.json").write_bytes(b"[]")
    shown = run("transcript", "import", str(folder.parent))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == "a1b2c3d4\n"


def test_a_broken_file_of_a_folder_is_named(folder: Path) -> None:
    (folder / "messages" / "msg_001.json").write_bytes(b"{")
    with pytest.raises(TranscriptError, match=r"msg_001\.json"):
        read_transcript(folder)


def files_of(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): orjson.loads(path.read_bytes()) for path in folder.rglob("*.json")}


@pytest.mark.usefixtures("place")
def test_a_session_is_written_as_wolos_folder(run: Run, folder: Path) -> None:
    """Wolo's own names: session.json, todos.json with the member `todos`, messages/<id>.json (wolo/session.py)."""
    (folder / "todos.json").write_bytes(b'{"todos": [{"content": "x"}]}')
    copied = folder.parent / "copy"
    assert run("transcript", "convert", str(folder), "--to", "wolo", "--out", str(copied)).exit_code == 0
    assert files_of(copied) == files_of(folder)

    Path("o.jsonl").write_bytes(FILES["openclaw-lines, a session"])
    written = run("transcript", "convert", "o.jsonl", "--to", "wolo", "--out", "new/session.json")
    assert written.exit_code == 0, written.output
    found = files_of(Path("new"))
    assert (found.pop("session.json")["id"], found.pop("todos.json")) == ("new", {"todos": []})
    assert set(found) == {f"messages/{message['id']}.json" for message in found.values()}
    assert [message.text for message in read_transcript(Path("new")).messages] == [
        message.text for message in read_transcript(Path("o.jsonl")).messages
    ]


@pytest.mark.usefixtures("place")
def test_a_folder_is_replaced_on_request(run: Run, folder: Path) -> None:
    Path("o.jsonl").write_bytes(FILES["openclaw-lines, a session"])
    convert = ("transcript", "convert", "o.jsonl", "--to", "wolo", "--out", str(folder / "session.json"))
    before = files_of(folder)
    assert run(*convert).exit_code != 0
    assert files_of(folder) == before
    assert run(*convert, "--force").exit_code == 0
    assert not set(files_of(folder)) & {f"messages/{message['id']}.json" for message in WOLO}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", ["../../up", "", None, ".hidden", "a/b", "msg_001"])
def test_an_id_that_cannot_name_a_file_is_refused(run: Run, name: str | None) -> None:
    messages = [WOLO[0], {**WOLO[1], "id": name}]
    Path("w.json").write_bytes(orjson.dumps({"session": {"id": "s"}, "messages": messages}))
    refused = run("transcript", "convert", "w.json", "--to", "wolo", "--out", "f/session.json")
    assert refused.exit_code == 1
    assert "cannot name its file" in refused.stderr
    assert not Path("f").exists()


def test_a_part_has_a_status() -> None:
    done = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="A"),))
    failed = ToolResultBlock(tool_use_id="tu_1", content=(TextBlock(text="A"),), is_error=True)
    statuses = [part_status(None), part_status(None, started=True), part_status(done), part_status(failed)]
    assert statuses == ["pending", "running", "completed", "failed"]


def test_a_stream_has_its_events() -> None:
    events = [
        ThinkingDelta(index=0, text="hm"),
        TextDelta(index=1, text="I read."),
        ToolUseStart(index=2, id="tu_1", name="read", provider_id="call_001"),
        ToolUseInputDelta(index=2, partial_json='{"path":'),
        ToolUseInputDelta(index=2, partial_json=' "a"}'),
        ToolUseEnd(index=2),
        MessageComplete(stop_reason=StopReason.TOOL_USE),
    ]
    assert list(to_stream_events(events)) == [
        {"type": "reasoning-delta", "text": "hm"},
        {"type": "text-delta", "text": "I read."},
        {"type": "tool-call", "tool": "read", "input": {"path": "a"}, "id": "call_001"},
        {"type": "finish", "reason": "tool_calls"},
    ]
    (error,) = to_stream_events([ErrorEvent(error=ServerError("down"))])
    assert (error["type"], error["error_type"]) == ("error", "ServerError")

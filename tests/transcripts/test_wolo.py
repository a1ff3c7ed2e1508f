"""Wolo's sessions as the folders they are, its words for a call's part and for a stream's events."""

from __future__ import annotations

from pathlib import Path

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
from tests.transcripts.test_documents import WOLO


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

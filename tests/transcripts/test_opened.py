"""A long session is read message by message; that it gives the same as reading all at once is a law of systems."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest

from interlingua import assistant, user
from interlingua_transcripts import (
    TranscriptError,
    open_transcript,
    read_transcript,
    system_of,
    transcript_of,
    write_transcript,
)
from tests.transcripts.histories import own_file


@pytest.mark.parametrize("name", ["pi", "openclaw", "claude-code", "codex"])
def test_memory_holds_one_message_and_the_outlines(name: str, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    said = [make(f"{number} {'x' * 500_000}") for number in range(60) for make in (user, assistant)]
    path.write_bytes(write_transcript(transcript_of(said, name, "s1"), name))
    size = path.stat().st_size
    del said
    tracemalloc.start()
    try:
        with open_transcript(path) as session:
            letters = sum(len(message.text_content()) for message in session)
        assert tracemalloc.get_traced_memory()[1] < size / 2  # 4 MB tell the system
    finally:
        tracemalloc.stop()
    assert letters > 60_000_000


@pytest.mark.parametrize(("hold", "times"), [(1 << 20, 1), (0, 2)])
def test_lines_that_are_held_are_parsed_once(hold: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = own_file(system_of("pi"))
    parsed: list[bytes] = []
    loads = orjson.loads

    def counted(text: bytes) -> Any:
        parsed.append(text)
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    with open_transcript(data, "pi", hold=hold) as session:
        first = tuple(session)
        assert max(parsed.count(line) for line in data.splitlines()) == times
        assert tuple(session) == first  # held values are let go of; the second time, they are parsed
    assert first == read_transcript(data).messages


def test_a_pipe_is_read() -> None:
    data = own_file(system_of("pi"))
    end, start = os.pipe()
    writer = Thread(target=lambda: (os.write(start, data), os.close(start)))
    writer.start()
    with open_transcript(f"/dev/fd/{end}") as session:
        assert tuple(session) == read_transcript(data).messages
    writer.join()
    os.close(end)


def test_a_file_of_no_known_system_is_named(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"milk\nbread\n")
    with pytest.raises(TranscriptError, match=r"list\.txt: not a session file"), open_transcript(path):
        pass

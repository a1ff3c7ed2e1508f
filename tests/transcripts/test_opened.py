"""A long session is read message by message; that it gives the same as reading all at once is a law of systems."""

from __future__ import annotations

import os
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from zlib import crc32

import orjson
import pytest

from interlingua import assistant, user
from interlingua.codec import dumps_message, loads_message
from interlingua.types import Message
from interlingua_transcripts import (
    TranscriptError,
    measure_fidelity,
    open_transcript,
    read_transcript,
    session_format,
    transcript_of,
    write_pieces,
    write_transcript,
)
from interlingua_transcripts.entries import open_messages
from interlingua_transcripts.lazy import LazyMessages
from tests.support.counts import chosen
from tests.transcripts.histories import own_file

LINES = ["pi", "openclaw", "claude-code", "codex", "attocode", "operator-use"]  # systems whose files are lines
LAZY = LINES[:4]  # those that say what `plan` needs of a line


@pytest.fixture
def large(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file of 24 MB, each message of which has 200 kB."""
    name: str = request.param
    path = tmp_path / "session.jsonl"
    said = [make(f"{number} {'x' * 200_000}") for number in range(60) for make in (user, assistant)]
    path.write_bytes(write_transcript(transcript_of(said, name, "s1"), name))
    return path


def peak_of(work: Callable[[], object]) -> int:
    """Return how many bytes were in use at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def discard(pieces: Iterable[object]) -> None:
    """Go through all of them."""
    deque(pieces, maxlen=0)


@pytest.mark.parametrize("large", LAZY, indirect=True)
def test_memory_holds_one_message_and_the_outlines(large: Path) -> None:
    def read() -> None:
        with open_transcript(large) as session:
            assert sum(len(message.text) for message in session) > 24_000_000

    assert peak_of(read) < 16_000_000  # 4 MB tell the system


CROSSINGS = [(name, target) for name in LAZY for target in LINES if chosen(f"{name} to {target}", 6)]


@pytest.mark.parametrize(("large", "target"), CROSSINGS, indirect=["large"])
def test_memory_holds_one_message_where_a_file_is_converted_or_measured(large: Path, target: str) -> None:
    with open_transcript(large) as session:
        assert peak_of(lambda: discard(write_pieces(session, target))) < 8_000_000
        if target in LAZY:  # the others' files are read with every line in memory
            assert peak_of(lambda: measure_fidelity(session, target)) < 8_000_000


@pytest.mark.parametrize("large", LAZY, indirect=True)
def test_memory_holds_one_message_where_a_stored_session_is_written(large: Path, tmp_path: Path) -> None:
    """Its messages come from a file here; one is new, so what the file had is looked at as well."""
    store = tmp_path / "messages.jsonl"
    with open_transcript(large) as session, store.open("w") as file:
        file.writelines(f"{dumps_message(message)}\n" for message in session.with_entries())
        file.write(f"{dumps_message(user('More?', session_id='s1'))}\n")
        name = session.system.name

    class Stored(LazyMessages):
        def __iter__(self) -> Iterator[Message]:
            with store.open() as file:
                yield from map(loads_message, file)

    written = []

    def write() -> None:
        with open_messages(Stored()) as transcript:
            assert transcript is not None
            for piece in write_pieces(transcript, name):
                written.append(crc32(piece))

    assert peak_of(write) < 16_000_000
    with large.open("rb") as file:
        before = [crc32(line) for line in file]
    assert written[: len(before)] == before
    assert len(written) > len(before)


@pytest.mark.parametrize(("hold", "times"), [(1 << 20, 1), (0, 2)])
def test_lines_that_are_held_are_parsed_once(hold: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = own_file(session_format("pi"))
    parsed: list[bytes] = []
    loads = orjson.loads

    def counted(text: bytes) -> Any:
        parsed.append(text.strip())
        return loads(text)

    monkeypatch.setattr(orjson, "loads", counted)
    with open_transcript(data, "pi", hold=hold) as session:
        first = tuple(session)
        assert max(parsed.count(line) for line in data.splitlines()) == times
        assert tuple(session) == first  # held values are let go of; the second time, they are parsed
    assert first == read_transcript(data).messages


def test_a_pipe_is_read() -> None:
    data = own_file(session_format("pi"))
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

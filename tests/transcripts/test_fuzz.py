"""Broken session files: a typed error, or notes; never another exception, never an entry lost that was whole.

`INTERLINGUA_TRANSCRIPT_FUZZ=2000` tries as many of each format; real files are taken where they are, own ones else.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from interlingua.codec import dumps_message
from interlingua_transcripts import (
    SessionFormat,
    TranscriptError,
    detect_format,
    from_messages,
    measure_fidelity,
    open_transcript,
    read_transcript,
    session_format,
    with_entries,
    write_transcript,
)
from interlingua_transcripts.system import load_entry
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.mutations import mutate
from tests.transcripts.samples import FOLDER, samples

COUNT = int(os.environ.get("INTERLINGUA_TRANSCRIPT_FUZZ", "60"))
FORMATS = (
    "pi", "openclaw", "claude-code", "codex", "atif", "gemini", "opencode", "openhands", "inspect", "sweagent",
    "mini-swe-agent", "chat-ft", "role-list", "role-jsonl",
)  # fmt: skip
_LARGEST = 60_000  # bytes: small files are read often


def _values(system: SessionFormat, data: bytes) -> list[Any]:
    found = [(load_entry(entry), entry) for entry in system.split(data)]
    return [entry if value is None else value for value, entry in found]


def _try(data: bytes, system: str | None, random: Random) -> None:
    try:
        read = read_transcript(data, system)
    except TranscriptError:
        return
    own = session_format(read.system)
    kept = from_messages(with_entries(read)) if read.messages else read
    assert kept is not None
    assert _values(own, write_transcript(kept)) == _values(own, data)
    for message in read.messages:
        dumps_message(message)
    with open_transcript(data, system, hold=random.choice((0, len(data) // 2, len(data)))) as opened:
        assert tuple(opened) == read.messages
    if random.random() < 0.2:
        measure_fidelity(read, random.choice(writable_systems()).name)


def _fuzz(name: str, files: list[bytes]) -> None:
    for number in range(COUNT):
        random = Random(f"{name} {number}")
        data = random.choice(files)
        found = detect_format(data)
        system = found[0].name if found is not None and random.random() < 0.6 else None
        _try(mutate(data, random.choice(files), random), system, random)


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_broken_files_of_our_own(system: SessionFormat) -> None:
    _fuzz(system.name, [own_file(system)])


@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_TRANSCRIPTS names no folder of session files")
@pytest.mark.parametrize("name", FORMATS)
def test_broken_real_files(name: str) -> None:
    files = sorted([data for _, data in samples(name)], key=len)
    _fuzz(name, [data for data in files if len(data) < _LARGEST] or files[:2])

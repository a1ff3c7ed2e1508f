"""Broken session files: a typed error, or notes; never another exception, never an entry lost that was whole.

`INTERLINGUA_TRANSCRIPT_FUZZ=2000` tries as many of each format; real files are taken where they are, own ones else.
"""

from __future__ import annotations

import json
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
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.unwritten import count_unwritten
from tests.transcripts.agent_samples import SAMPLES
from tests.transcripts.histories import own_file, writable_systems
from tests.transcripts.mutations import mutate
from tests.transcripts.samples import FOLDER, samples

COUNT = int(os.environ.get("INTERLINGUA_TRANSCRIPT_FUZZ", "60"))
FORMATS = (
    "pi", "openclaw", "claude-code", "codex", "atif", "gemini", "opencode", "openhands", "inspect", "sweagent",
    "mini-swe-agent", "chat-ft", "role-list", "role-jsonl",
)  # fmt: skip
_WRITABLE = [system.name for system in writable_systems()]
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
    assert all(isinstance(fact or "", str) for fact in (read.session_id, read.version, read.title, read.cwd))
    with open_transcript(data, system, hold=random.choice((0, len(data) // 2, len(data)))) as opened:
        assert tuple(opened) == read.messages
    report = measure_fidelity(read)
    assert report.equal
    assert report.total.lost == 0
    if random.random() < 0.2:
        target = random.choice(writable_systems()).name
        measure_fidelity(read, target)
        count_unwritten(read, target)


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


@pytest.mark.parametrize("name", SAMPLES)
def test_broken_files_of_other_agents(name: str) -> None:
    _fuzz(name, [SAMPLES[name]])


@pytest.mark.parametrize("name", [*[name for name in SAMPLES if name != "aider"], *_WRITABLE])
def test_long_integers_and_cut_emoji_are_read_and_written_back(name: str) -> None:
    data = SAMPLES[name] if name in SAMPLES else own_file(session_format(name))
    pieces = [data] if load_entry(data) is not None else [line for line in data.split(b"\n") if line]
    values = [_with_odd(json.loads(piece)) for piece in pieces]
    changed = b"\n".join([json.dumps(value).encode() for value in values]) + b"\n"
    assert changed.count(b"\\ud83d ")
    before, read = read_transcript(data), read_transcript(changed)
    assert (read.system, len(read.messages)) == (before.system, len(before.messages))
    assert "\ufffd" in "".join(message.text for message in read.messages)
    assert [note.text for note in read.notes] == [note.text for note in before.notes]
    again = write_transcript(read)
    assert [json.loads(piece) for piece in ([again] if len(pieces) == 1 else again.splitlines())] == values
    report = measure_fidelity(read)
    assert report.equal
    assert report.total.lost == 0


def _with_odd(value: Any) -> Any:
    """Return a JSON value with half of an emoji in each sentence, and an integer beyond 64 bits in each argument."""
    if isinstance(value, dict):
        return {
            name: {**item, "count": 10**30}
            if name in ("input", "arguments", "args") and isinstance(item, dict)
            else _with_odd(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_with_odd(item) for item in value]
    return value.replace(" ", " \ud83d ", 1) if isinstance(value, str) and value.endswith(("?", ".")) else value


@pytest.mark.skipif(not FOLDER, reason="INTERLINGUA_TRANSCRIPTS names no folder of session files")
@pytest.mark.parametrize("name", FORMATS)
def test_broken_real_files(name: str) -> None:
    files = sorted([data for _, data in samples(name)], key=len)
    _fuzz(name, [data for data in files if len(data) < _LARGEST] or files[:2])

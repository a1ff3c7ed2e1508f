"""Every real session file is recognised, read without an exception and written back equal; nothing is lost."""

from __future__ import annotations

import attrs
import pytest

from interlingua import user
from interlingua_transcripts import (
    Transcript,
    detect_format,
    measure_fidelity,
    open_transcript,
    read_transcript,
    session_format,
    with_entries,
    write_transcript,
)
from tests.transcripts.samples import needs_samples, samples

# format of the samples -> the systems its files may be of: two files among OpenClaw's hold nothing but pi's entries
OWN = ("atif", "chat-ft", "claude-code", "codex", "gemini", "inspect", "mini-swe-agent", "opencode", "openhands", "pi")
SYSTEMS = {name: {name} for name in OWN} | {
    "claude-code": {"claude-code", "qwen-code"},  # two of the files are Qwen Code's
    "openclaw": {"openclaw", "pi"},
    "role-list": {"chat-list"},
    "sweagent": {"swe-agent"},
}
LOOK_ALIKES = ("pi-stream-json", "dsh", "codex-exec-json")


@needs_samples
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_sample_is_written_back_equal(name: str) -> None:
    for sample, data in samples(name):
        found = detect_format(data)
        assert found is not None, sample["id"]
        assert found[0].name in SYSTEMS[name], sample["id"]
        read = read_transcript(data)
        report = measure_fidelity(read)
        assert report.equal, sample["id"]
        assert report.total.lost == 0, (sample["id"], report.lost)
        assert report.entries, sample["id"]
        with open_transcript(data) as opened:
            assert tuple(opened.with_entries()) == with_entries(read), sample["id"]
            assert tuple(opened.notes()) == read.notes, sample["id"]
            assert opened.context() == read.context, sample["id"]


@needs_samples
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_no_session(name: str) -> None:
    for sample, data in samples(name):
        assert detect_format(data) is None, sample["id"]


def _goes_on(read: Transcript, kept: int) -> None:
    """Leave out what follows the first messages and add a question; the file then holds just that."""
    start = read.messages[:kept]
    question = user("Go on.", session_id=start[-1].session_id)
    again = read_transcript(write_transcript(attrs.evolve(read, messages=(*start, question))), read.system)
    assert [message.content for message in again.messages[:-1]] == [message.content for message in start]
    assert [message.metadata for message in again.messages[:-1]] == [message.metadata for message in start]
    assert again.messages[-1].text == "Go on."


@needs_samples
@pytest.mark.parametrize("name", ["claude-code", "pi", "openclaw", "codex", "gemini"])
def test_a_session_goes_on_from_any_message(name: str) -> None:
    for _, data in samples(name):
        read = read_transcript(data)
        if not session_format(read.system).writable:
            continue
        count = len(read.messages)
        for kept in {1, count // 3, count // 2, count - 1, count}:
            if 0 < kept <= count and all(message.content for message in read.messages):  # else a like program's lines
                _goes_on(read, kept)

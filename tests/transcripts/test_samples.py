"""Every real session file is recognised, read without an exception and written back equal; nothing is lost."""

from __future__ import annotations

import pytest

from interlingua_transcripts import detect_system, measure_fidelity, read_transcript
from tests.transcripts.samples import needs_samples, samples

# format of the samples -> the systems its files may be of: two files among OpenClaw's hold nothing but pi's entries
OWN = ("atif", "chat-ft", "claude-code", "codex", "gemini", "inspect", "mini-swe-agent", "opencode", "openhands", "pi")
SYSTEMS = {name: {name} for name in OWN} | {
    "openclaw": {"openclaw", "pi"},
    "role-list": {"chat-list"},
    "sweagent": {"swe-agent"},
}
LOOK_ALIKES = ("pi-stream-json", "dsh", "codex-exec-json")


@needs_samples
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_sample_is_written_back_equal(name: str) -> None:
    for sample, data in samples(name):
        found = detect_system(data)
        assert found is not None, sample["id"]
        assert found[0].name in SYSTEMS[name], sample["id"]
        report = measure_fidelity(read_transcript(data))
        assert report.equal, sample["id"]
        assert report.total.lost == 0, (sample["id"], report.lost)
        assert report.entries, sample["id"]


@needs_samples
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_no_session(name: str) -> None:
    for sample, data in samples(name):
        assert detect_system(data) is None, sample["id"]

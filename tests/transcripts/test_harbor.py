"""Sessions written as ATIF are accepted by harbor's validator of trajectories, if `.ci/run` has installed harbor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from interlingua import assistant, tool_result, user
from interlingua.types import Message, TextBlock, ToolUseBlock
from interlingua_transcripts import SessionFormat, read_transcript, transcript_of, write_transcript
from tests.transcripts.histories import HISTORY, own_file, writable_systems
from tests.transcripts.samples import needs_samples, samples
from tests.transcripts.test_samples import SYSTEMS

HARBOR = Path(__file__).parents[2] / ".cache" / "harbor"


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], Sequence[str]]]:
    """Return what harbor says against a trajectory; nothing of one that it accepts."""
    if not HARBOR.is_dir():
        pytest.skip("harbor is not in .cache/harbor; .ci/run installs it there")
    pytest.importorskip("pydantic")
    monkeypatch.syspath_prepend(str(HARBOR))
    from harbor.utils.trajectory_validator import TrajectoryValidator  # type: ignore[import-not-found, unused-ignore]

    def check(data: bytes) -> Sequence[str]:
        validator = TrajectoryValidator()
        accepted = validator.validate(orjson.loads(data), validate_images=False)
        return [] if accepted else [str(one) for one in validator.get_errors()] or ["refused"]

    yield check
    for name in [name for name in sys.modules if name.partition(".")[0] == "harbor"]:
        del sys.modules[name]


def without_each(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """Return the messages without one of them, for each."""
    return [(*messages[:at], *messages[at + 1 :]) for at in range(len(messages))]


def texts_of(messages: Sequence[Message]) -> list[str]:
    """Return the string of each text, also of results."""
    blocks = [block for message in messages for block in message.content]
    inner = [part for block in blocks for part in getattr(block, "content", [block])]
    return [part.text for part in inner if isinstance(part, TextBlock)]


def test_harbor_refuses_a_broken_trajectory(faults: Callable[[bytes], Sequence[str]]) -> None:
    document: dict[str, Any] = orjson.loads(write_transcript(transcript_of(HISTORY, "atif", "s")))
    assert not faults(orjson.dumps(document))
    step = next(step for step in document["steps"] if "observation" in step)
    step["observation"]["results"][0]["source_call_id"] = "no call of the step"
    assert faults(orjson.dumps(document))


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_a_session_of_each_system_is_accepted(system: SessionFormat, faults: Callable[[bytes], Sequence[str]]) -> None:
    assert not faults(write_transcript(read_transcript(own_file(system), system), "atif"))


def test_a_changed_trajectory_is_accepted(faults: Callable[[bytes], Sequence[str]]) -> None:
    read = read_transcript(write_transcript(transcript_of(HISTORY, "atif", "s")))
    for messages in without_each(read.messages):
        written = write_transcript(attrs.evolve(read, messages=messages))
        assert not faults(written)
        again = read_transcript(written).messages
        assert [message.role for message in again] == [message.role for message in messages]
        assert texts_of(again) == texts_of(messages)
        more = write_transcript(attrs.evolve(read, messages=(*messages, user("And?", session_id="s"))))
        assert not faults(more)


def test_a_result_that_comes_late_is_in_the_step_of_its_call(faults: Callable[[bytes], Sequence[str]]) -> None:
    call = ToolUseBlock(id="tu_1", provider_id="c1", name="list", input={})
    said = [user("List."), assistant([call]), assistant("I wait."), tool_result("tu_1", "a.txt")]
    said = [attrs.evolve(one, created_at=said[0].created_at + timedelta(seconds=at)) for at, one in enumerate(said)]
    data = write_transcript(transcript_of(said, "atif", "s"))
    assert not faults(data)
    assert orjson.loads(data)["steps"][1]["observation"]["results"] == [{"source_call_id": "c1", "content": "a.txt"}]

    waiting = read_transcript(write_transcript(transcript_of(said[:3], "atif", "s")))
    answer = tool_result(waiting.messages[1].tool_calls[0].id, "a.txt", session_id="s")
    added = write_transcript(attrs.evolve(waiting, messages=(*waiting.messages, answer)))
    assert not faults(added)
    assert orjson.loads(added)["steps"][1]["observation"]["results"][0]["content"] == "a.txt"


@needs_samples
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_sample_is_accepted(name: str, faults: Callable[[bytes], Sequence[str]]) -> None:
    for sample, data in samples(name):
        read = read_transcript(data)
        if not read.messages:
            continue
        if read.system != "atif":
            assert not faults(write_transcript(read, "atif")), sample["id"]
            continue
        anew = attrs.evolve(read, entries=(), groups=(), counts=())
        assert not faults(write_transcript(anew)), sample["id"]
        if not faults(data) and len(read.messages) > 1:  # harbor refuses some of the originals
            assert not faults(write_transcript(attrs.evolve(read, messages=read.messages[1:]))), sample["id"]

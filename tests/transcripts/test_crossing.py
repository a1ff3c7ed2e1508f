"""From each writable system to each other one and back: what both can hold is there again."""

from __future__ import annotations

import json
import re
from itertools import permutations

import pytest

from interlingua.types import Role, ToolUseBlock
from interlingua_transcripts import (
    SessionFormat,
    detect_format,
    from_messages,
    measure_fidelity,
    read_transcript,
    with_entries,
    write_transcript,
)
from tests.transcripts import page
from tests.transcripts.histories import HISTORY, own_file, writable_systems


@pytest.mark.parametrize("system", writable_systems(), ids=lambda system: system.name)
def test_what_is_written_is_recognised_and_says_the_same(system: SessionFormat) -> None:
    data = own_file(system)
    found = detect_format(data)
    assert found is not None
    assert found[0] is system

    read = read_transcript(data)
    assert read.notes == ()
    assert [one.text for one in read.messages] == [one.text for one in HISTORY]
    kept = from_messages(with_entries(read))
    assert kept is not None
    assert write_transcript(kept) == data


@pytest.mark.parametrize(
    ("source", "target"), list(permutations(writable_systems(), 2)), ids=lambda system: system.name
)
def test_a_conversation_crosses_and_comes_back(source: SessionFormat, target: SessionFormat) -> None:
    read = read_transcript(own_file(source))
    crossed = write_transcript(read, target)
    found = detect_format(crossed)
    assert found is not None
    assert found[0] is target

    back = read_transcript(crossed)
    assert len(back.messages) == len(read.messages)
    for before, after in zip(read.messages, back.messages, strict=True):
        assert after.text == before.text
        assert after.role == before.role or Role.SYSTEM in (before.role, after.role)
        calls = [(call.provider_id, call.name, call.input) for call in before.content if isinstance(call, ToolUseBlock)]
        assert [
            (call.provider_id, call.name, call.input) for call in after.content if isinstance(call, ToolUseBlock)
        ] == calls
        answers = [(result.content, result.is_error) for result in before.tool_results]
        if answers and answers[0][1]:
            continue  # some systems have no flag of failure
        assert [(result.content, result.is_error) for result in after.tool_results] == answers

    report = measure_fidelity(read, target.name)
    assert report.total.exact + report.total.other + report.total.kept + report.total.lost == report.total.leaves
    assert sum(report.lost.values()) == report.total.lost


def test_the_page_is_current() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), "python -m tests.transcripts.page writes it"


@pytest.mark.parametrize("target", writable_systems(), ids=lambda system: system.name)
def test_files_without_an_id_become_sessions_with_different_ids(target: SessionFormat) -> None:
    written = []
    for name in ("a", "b"):
        said = [{"role": "user", "content": f"I am {name}"}, {"role": "assistant", "content": "Hi"}]
        written.append(write_transcript(read_transcript(json.dumps(said).encode(), "chat-list"), target))
    if "session id" not in target.lacks and target.name != "wolo":  # the name of its folder is the id
        assert len({read_transcript(data).session_id for data in written}) == 2
    if target.name == "opencode":  # one database has the messages of all sessions
        ids = [set(re.findall(r'"id": "((?:ses|msg|prt)_[^"]+)"', data.decode())) for data in written]
        assert len(ids[0]) >= 5
        assert not ids[0] & ids[1]

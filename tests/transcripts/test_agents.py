"""Sessions of agents that are only read: recognised, every law of `check_format`, and a second reader for each."""

from __future__ import annotations

import orjson
import pytest

from interlingua_transcripts import detect_format, read_transcript, session_format
from interlingua_transcripts.contract import check_format
from tests.transcripts.agent_readers import READERS, facts_of
from tests.transcripts.agent_samples import ASKED, FACTS, OUTPUT, SAID, SAMPLES, Facts
from tests.transcripts.test_second_readers import compare, items_of


def _system(name: str) -> str:
    return name.partition(",")[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_keeps_every_law(name: str) -> None:
    check_format(session_format(_system(name)), [SAMPLES[name]])


@pytest.mark.parametrize("name", SAMPLES)
def test_both_readers_agree(name: str) -> None:
    found = compare(READERS[_system(name)](SAMPLES[name]), list(items_of(read_transcript(SAMPLES[name]).messages)))
    assert found.count == 0, found
    assert found.items >= 4


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("aider", "cursor")])
def test_calls_and_results_are_calls_and_results(name: str) -> None:
    messages = read_transcript(SAMPLES[name]).messages
    calls = [call for message in messages for call in message.tool_calls]
    results = [result for message in messages for result in message.tool_results]
    assert calls
    assert [call.id for call in calls] == [result.tool_use_id for result in results]
    assert all(result.content[0].text == OUTPUT for result in results)


@pytest.mark.parametrize("name", SAMPLES)
def test_signatures_models_tokens_and_failures_are_read(name: str) -> None:
    assert facts_of(read_transcript(SAMPLES[name]).messages) == FACTS.get(name, Facts())


def test_only_what_the_agent_sees_is_the_context() -> None:
    """Goose hides a message from its model; Roo Code hides what a summary replaced."""
    for name in ("goose", "goose-lines", "cline, Roo Code"):
        read = read_transcript(SAMPLES[name])
        assert ASKED in read.messages[0].text
        assert ASKED not in " ".join([message.text for message in read.context])
        assert read.context[-1].text == SAID


def test_facts_of_the_session() -> None:
    for name in ("continue", "copilot", "factory-droid", "goose", "qwen-code", "amp"):
        read = read_transcript(SAMPLES[name])
        assert read.cwd == "/srv/moons", name
        assert read.session_id, name
    assert read_transcript(SAMPLES["copilot"]).messages[1].metadata.model == "copilot:gpt-5-mini"
    assert read_transcript(SAMPLES["cline"]).messages[1].metadata.model == "anthropic:claude-x"
    assert read_transcript(SAMPLES["goose"]).messages[1].metadata.model == "anthropic:claude-x"


def test_another_branch_and_a_subagent_are_not_the_conversation() -> None:
    assert list(read_transcript(SAMPLES["qwen-code"]).branches) == [1]
    assert list(read_transcript(SAMPLES["copilot"]).branches) == [5]


def test_look_alikes_are_told_apart() -> None:
    """Qwen Code's lines have Claude Code's links; Factory's messages pi's; Cline's list is a list of messages."""
    claude = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "version": "2.1.0",
              "message": {"role": "user", "content": "Hi"}}  # fmt: skip
    found = detect_format(orjson.dumps(claude) + b"\n")
    assert found is not None
    assert found[0].name == "claude-code"
    for name, data in SAMPLES.items():
        own = [system for system in _claiming(data) if system != _system(name)]
        assert own == [], name


def test_what_factory_prints_is_no_session() -> None:
    printed = {"type": "system", "subtype": "init", "sessionId": "s", "cwd": "/", "model": "m"}
    said = {"type": "message", "sessionId": "s", "role": "user", "text": "Hi"}
    assert detect_format(b"".join([orjson.dumps(line) + b"\n" for line in (printed, said)])) is None


def _claiming(data: bytes) -> list[str]:
    """Return every format that takes a file for its own."""
    from interlingua_transcripts import files

    lines = [files.load_entry(line) for line in data.split(b"\n") if line.strip()]
    document = files.load_entry(data)
    claims = []
    for system in files.installed_formats().values():
        whole = isinstance(system, files.DocumentFormat)
        head = [data.decode()] if system.text else [document] if whole and document is not None else lines
        if head and (head[0] is not None or len(head) > 1) and files._detect(system, head) is not None:
            claims.append(system.name)
    return claims

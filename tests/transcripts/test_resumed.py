"""`transcript resume --in`: sessions that real agents list and continue (tests.transcripts.resumed)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from interlingua.types import Message, ThinkingBlock
from interlingua_transcripts import transcript_of, write_transcript
from interlingua_transcripts.imported import uuid_of
from tests.cli.conftest import Run
from tests.gateway import test_agents
from tests.support import tree
from tests.transcripts.histories import HISTORY, writable_systems

needs_agents = pytest.mark.skipif((reason := test_agents._missing()) is not None, reason=reason or "")


@pytest.fixture
def own_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the agents' folders of the user out of the test."""
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)


def _sources(folder: Path) -> Path:
    folder.mkdir()
    for system in writable_systems():
        made = write_transcript(transcript_of(HISTORY, system.name, uuid_of(system.name)), system)
        (folder / f"{system.name}{system.suffix}").write_bytes(made)
    return folder


def _resumed(agent: str, folder: Path) -> dict[str, Any]:
    inside = f"ip link set lo up && exec {sys.executable} -m tests.transcripts.resumed {agent} {folder}"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", inside], cwd=tree.ROOT, capture_output=True, timeout=1_800, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2_000:]
    made: dict[str, Any] = json.loads(done.stdout)
    assert made["refused"] == {}
    assert len(made["found"]) == len(writable_systems())
    found: dict[str, Any] = made["found"]
    return found


@needs_agents
def test_codex_lists_and_resumes_with_turns(tmp_path: Path) -> None:
    for name, found in _resumed("codex", _sources(tmp_path / "src")).items():
        assert found["listed"], name
        assert found["turns"] >= 3, (name, found["error"])
        assert "Two lines" in json.dumps(found["items"]), name


@needs_agents
@pytest.mark.parametrize("agent", ["claude-code", "opencode", "pi"])
def test_an_agent_continues(agent: str, tmp_path: Path) -> None:
    for name, found in _resumed(agent, _sources(tmp_path / "src")).items():
        assert found["said"], (name, found["output"])
        assert found.get("listed", True), name
        blocks = [
            block for message in found["sent"] if isinstance(message["content"], list) for block in message["content"]
        ]
        assert [block["id"] for block in blocks if block["type"] == "tool_use"] == ["toolu_01", "toolu_02"], name
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == ["toolu_01", "toolu_02"], name
        assert all(block["signature"] for block in blocks if block["type"] == "thinking"), name
        sent = json.dumps(found["sent"])
        assert all(text in sent for text in ("What is in a.txt?", "Reading.", "no such folder", "Two lines")), name


@needs_agents
def test_gemini_cli_lists_and_continues(tmp_path: Path) -> None:
    for name, found in _resumed("gemini", _sources(tmp_path / "src")).items():
        assert found["listed"], (name, found["output"])
        assert found["said"], (name, found["output"])
        parts = [part for message in found["sent"] for part in message["parts"]]
        assert [part["functionCall"]["id"] for part in parts if "functionCall" in part] == ["toolu_01", "toolu_02"]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert [result["id"] for result in results] == ["toolu_01", "toolu_02"], name
        said = json.dumps(found["sent"])
        assert all(text in said for text in ("What is in a.txt?", "Reading.", "no such folder", "Two lines")), name


@pytest.mark.usefixtures("place", "own_home")
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "opencode", "pi", "wolo"])
def test_a_session_is_placed_once(run: Run, agent: str) -> None:
    Path("s.json").write_bytes(write_transcript(transcript_of(HISTORY, "atif", "no-uuid"), "atif"))
    first = run("transcript", "resume", "s.json", "--in", agent)
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("cd ")
    own = first.stdout.split()[-1]
    again = run("transcript", "resume", "s.json", "--in", agent)
    assert again.stdout == first.stdout
    assert own[:8] in again.stderr
    assert "already exists" in again.stderr


@pytest.mark.usefixtures("place", "own_home")
def test_sessions_of_one_minute_are_different_files_for_gemini_cli(run: Run) -> None:
    ids = [f"019dc132-b9ea-736e-aa6f-e20ee7d84b1{letter}" for letter in "12"]  # version 7: they begin with a time
    for own in (*ids, ids[1]):
        Path("s.jsonl").write_bytes(write_transcript(transcript_of(HISTORY, "codex", own), "codex"))
        assert run("transcript", "resume", "s.jsonl", "--in", "gemini").stdout.split()[-1] == own
    written = [path.read_text() for path in sorted((Path.home() / ".gemini").rglob("session-*.jsonl"))]
    assert len(written) == 2
    assert all(sum(own in text for text in written) == 1 for own in ids)


@pytest.mark.usefixtures("place", "own_home")
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "opencode", "pi", "wolo"])
@pytest.mark.parametrize("own", ["../../../up", "/srv/up", "a/b", "..", "--last", "a\\b", "a\nb", "x" * 300])
def test_no_id_leads_out_of_the_agents_folder(run: Run, agent: str, own: str) -> None:
    for system in (agent, "atif"):
        Path("s.x").write_bytes(write_transcript(transcript_of(HISTORY, system, own), system))
        shown = run("transcript", "resume", "s.x", "--in", agent)
        named = own in shown.stdout
        if system == agent and agent != "opencode":  # opencode's ids are made of any other
            assert "cannot be the name of a file" in shown.stderr
        else:
            assert shown.exit_code == 0, shown.output
            assert not named
    folders = {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini", "pi": ".pi", "wolo": ".wolo"}
    allowed = {folders.get(agent), "data", "work"}
    assert {path.name for path in Path.home().iterdir() if path.name not in allowed} <= {"config", "cache"}


@pytest.mark.usefixtures("place", "own_home")
def test_a_document_of_gemini_cli_keeps_its_suffix(run: Run) -> None:
    said = [{"id": "a", "timestamp": "2026-02-01T10:00:00.000Z", "type": "user", "content": "Hi"}]
    facts = {"sessionId": uuid_of("s"), "projectHash": "", "startTime": "2026-02-01T10:00:00.000Z", "lastUpdated": ""}
    Path("s.json").write_text(json.dumps({**facts, "messages": said}))
    assert run("transcript", "resume", "s.json", "--in", "gemini").exit_code == 0
    (written,) = (Path.home() / ".gemini").rglob("session-*")
    assert written.suffix == ".json"


@pytest.mark.usefixtures("place", "own_home")
def test_a_session_of_pi_from_another_machine_gets_the_folder_of_this_one(run: Run) -> None:
    made = write_transcript(transcript_of(HISTORY, "pi", uuid_of("s"), cwd="/on/another/machine"), "pi")
    Path("s.jsonl").write_bytes(made)
    shown = run("transcript", "resume", "s.jsonl", "--in", "pi")
    assert shown.exit_code == 0, shown.output
    (written,) = (Path.home() / ".pi").rglob("*.jsonl")
    before, after = made.splitlines(), written.read_bytes().splitlines()
    assert json.loads(after[0]) == {**json.loads(before[0]), "cwd": str(Path.cwd())}
    assert after[1:] == before[1:]


@pytest.mark.usefixtures("place", "own_home")
def test_a_session_is_continued_by_a_model_or_in_an_agent(run: Run) -> None:
    Path("s.json").write_bytes(write_transcript(transcript_of(HISTORY, "atif", "s"), "atif"))
    assert "--model or --in" in run("transcript", "resume", "s.json").stderr
    assert "convert --to openclaw" in run("transcript", "resume", "s.json", "--in", "openclaw").stderr


def _thinking(message: Message, **facts: Any) -> Message:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, **facts))


def test_claude_code_gets_no_thinking_that_its_service_refuses() -> None:
    answer = HISTORY[2]
    foreign = _thinking(answer, provider="google", model="google:gemini-3")
    unsigned = attrs.evolve(answer, content=(ThinkingBlock(text="I read it."), *answer.content[1:]))
    for message, kept in ((answer, True), (foreign, False), (unsigned, False)):
        made = write_transcript(transcript_of([HISTORY[1], message], "pi", uuid_of("s")), "claude-code")
        assert (b"I read it." in made) is kept
        assert b"Reading." in made

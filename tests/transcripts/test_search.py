"""`interlingua transcript search`: an index of session files that follows the files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from interlingua_sessions.store.sqlite import SqliteDatabase
from interlingua_sessions.store.text_index import TextIndex
from interlingua_transcripts.commands import search
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def sessions(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project's sessions of Claude Code."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    folder = home / ".claude" / "projects" / "-app"
    folder.mkdir(parents=True)
    return folder


def entry(number: int, text: str, role: str = "user") -> str:
    """Return one line of a session of Claude Code."""
    message = {"role": role, "content": text}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "model": "claude-opus-4-6",
                    "content": [{"type": "text", "text": text}]}  # fmt: skip
    return json.dumps({
        "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s",
        "version": "2.1.0", "cwd": "/app", "timestamp": f"2026-01-01T00:00:{number:02}.000Z", "message": message,
    })  # fmt: skip


def write(path: Path, *lines: str, changed: int) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(path, (changed, changed))


def test_sessions_of_this_machine_are_searched(run: Run, sessions: Path, home: Path) -> None:
    write(sessions / "old.jsonl", entry(0, "About parrots"), changed=1)
    write(sessions / "new.jsonl", entry(0, "Hi"), entry(1, "One\nThe Parrot rests\nthree", "assistant"), changed=2)

    shown = run("transcript", "search", "parrot")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines() == [
        f"2026-01-01 00:00  {sessions / 'new.jsonl'} message 2  assistant (anthropic:claude-opus-4-6)",
        "    The Parrot rests",
        f"2026-01-01 00:00  {sessions / 'old.jsonl'} message 1  user",
        "    About parrots",
    ]
    (found,) = json.loads(run("transcript", "search", '"parrot rests"', "--json").stdout)
    assert {name: found[name] for name in ("system", "session", "cwd", "message", "model", "line")} == {
        "system": "claude-code", "session": "s", "cwd": "/app", "message": 2,
        "model": "anthropic:claude-opus-4-6", "line": "The Parrot rests",
    }  # fmt: skip
    assert "nothing is found" in run("transcript", "search", "parrot", "--system", "codex").stderr
    assert run("transcript", "search", "??").exit_code == 2
    assert stat.S_IMODE((home / "cache" / "interlingua" / "transcripts.db").stat().st_mode) == 0o600


def test_the_index_follows_the_files(run: Run, sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sessions / "s.jsonl"
    write(path, entry(0, "one pear"), changed=1)
    write(sessions / "broken.jsonl", "{", changed=1)

    def lines(query: str) -> list[str]:
        return [one["line"] for one in json.loads(run("transcript", "search", query, "--json").stdout)]

    assert lines("pear") == ["one pear"]
    write(path, entry(0, "one pear"), entry(1, "two pears", "assistant"), changed=2)
    assert lines("pear") == ["two pears", "one pear"]
    write(path, entry(0, "an apple"), entry(1, "two pears", "assistant"), changed=3)
    assert lines("pear") == ["two pears"]
    assert lines("apple") == ["an apple"]
    monkeypatch.setattr(search, "open_transcript", None)  # what is unchanged is not read again
    assert lines("apple") == ["an apple"]
    path.unlink()
    assert lines("apple") == []


def test_a_file_that_is_replaced_with_the_same_size_and_time_is_read_again(run: Run, sessions: Path) -> None:
    path = sessions / "s.jsonl"
    write(path, entry(0, "one pear"), changed=1)
    assert "one pear" in run("transcript", "search", "pear").stdout
    write(path, entry(0, "one plum"), changed=1)
    assert "one plum" in run("transcript", "search", "plum").stdout
    assert "nothing is found" in run("transcript", "search", "pear").stderr


@pytest.mark.usefixtures("sessions")
def test_the_other_files_of_a_session_are_followed(run: Run, home: Path) -> None:
    folder = home / ".wolo" / "sessions" / "abcd1234"
    (folder / "messages").mkdir(parents=True)
    (folder / "session.json").write_text('{"id": "abcd1234", "created_at": 1.0}')
    message = {"id": "m1", "role": "user", "timestamp": 2.0, "parts": [{"id": "p", "type": "text", "text": "one pear"}]}
    path = folder / "messages" / "m1.json"
    path.write_text(json.dumps(message))
    assert "one pear" in run("transcript", "search", "pear").stdout
    path.write_text(json.dumps(message).replace("pear", "plum"))
    assert "one plum" in run("transcript", "search", "plum").stdout


def test_a_file_that_cannot_be_read_is_named(run: Run, sessions: Path) -> None:
    write(sessions / "s.jsonl", entry(0, "one pear"), changed=1)
    (sessions / "folder.jsonl").mkdir()
    shown = run("transcript", "search", "pear")
    assert "one pear" in shown.stdout
    assert f"not read: {sessions / 'folder.jsonl'};" in shown.stderr


def test_an_interrupted_index_is_searched_and_continued(
    run: Run, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        write(sessions / f"{number}.jsonl", entry(0, f"pear {number}"), changed=number + 1)
    monkeypatch.setattr(search, "_TOGETHER", 1)
    read, reads = search._read, []

    def interrupted(index: TextIndex, file: search._File, *, known: bool) -> object:
        reads.append(Path(file.path).name)
        if len(reads) == 4:
            raise KeyboardInterrupt
        return read(index, file, known=known)

    monkeypatch.setattr(search, "_read", interrupted)
    first = run("transcript", "search", "pear", "--json")
    assert len(json.loads(first.stdout)) == 3
    assert "the next search continues" in first.stderr
    assert len(json.loads(run("transcript", "search", "pear", "--json").stdout)) == 5
    assert reads == ["0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl", "3.jsonl", "4.jsonl"]


def test_an_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "index.db")
    index = TextIndex(database, keep_text=True)
    index.create()
    database.run("UPDATE search_state SET version = 0")
    assert not index.exists()
    index.create()
    assert index.exists()
    database.close()


def test_a_damaged_index_is_named(run: Run, sessions: Path, home: Path) -> None:
    write(sessions / "s.jsonl", entry(0, "one pear"), changed=1)
    index = home / "cache" / "interlingua" / "transcripts.db"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"no database at all" * 100)
    failed = run("transcript", "search", "pear")
    assert failed.exit_code == 1
    assert f"{index}: the index is damaged; delete it" in failed.stderr
    index.unlink()
    assert "one pear" in run("transcript", "search", "pear").stdout

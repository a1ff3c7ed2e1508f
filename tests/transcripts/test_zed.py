"""Zed's database of threads: made here by its public schema, with the values of `agent_samples`; no real one."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from interlingua_sessions import open_store
from interlingua_transcripts import TranscriptError, open_transcript, read_transcript, write_transcript
from interlingua_transcripts.formats import zed
from tests.cli.conftest import Run
from tests.transcripts.agent_samples import SAID, SAMPLES, ZED_ROWS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.usefixtures("place")

_SCHEMA = """CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
    data_type TEXT NOT NULL, data BLOB NOT NULL, folder_paths TEXT, created_at TEXT)"""


def add(path: Path, row: dict[str, Any], *, data: bytes | None = None, kind: str = "zstd") -> None:
    """Add a thread to a database, which is made if it is not there."""
    text = orjson.dumps(row["data"])
    packed = zstd.compress(text) if kind == "zstd" else text
    with sqlite3.connect(path) as database:
        database.execute(_SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS"))
        values = (row["id"], row["summary"], row["updated_at"], kind, packed if data is None else data,
                  row["folder_paths"], row["created_at"])  # fmt: skip
        database.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    database.close()


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    """Return a database of two threads, one of them not compressed, where Zed keeps it."""
    path = tmp_path / ".local" / "share" / "zed" / "threads" / "threads.db"
    path.parent.mkdir(parents=True)
    add(path, dict(ZED_ROWS[0]))
    add(path, dict(ZED_ROWS[1]), kind="json")
    return path


def test_a_database_is_read_as_its_rows(threads: Path) -> None:
    read = read_transcript(threads)
    assert read.system == "zed"
    assert read.messages == read_transcript(SAMPLES["zed"]).messages
    assert [len(group.entries) for group in read.groups] == [1, 1]
    assert read.messages[1].metadata.model == "anthropic:claude-x"
    usage = read.messages[4].metadata.usage  # of the last answer to the prompt
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens) == (48, 9, 8)
    assert read.messages[1].metadata.usage is None
    assert read_transcript(write_transcript(read)).messages == read.messages


def test_other_forms_of_content() -> None:
    image = {"source": "iVBORw0KGgo=", "size": {"width": 1, "height": 1}}
    text = {"ToolUse": {"id": "t", "name": "apply_patch", "raw_input": "*** Begin", "is_input_complete": True,
                        "input": {"type": "text", "value": "*** Begin"}}}  # fmt: skip
    result = {"tool_use_id": "t", "tool_name": "apply_patch", "is_error": True, "content": {"Text": "No"}}
    messages = [
        {"User": {"id": "u", "content": [{"Image": image}]}},
        {"Agent": {"content": [text, {"RedactedThinking": "eA=="}, {"Later": 1}], "tool_results": {"t": result}}},
        {"Compaction": {"Summary": "So far: moons."}},
        {"Compaction": {"ProviderNative": {"provider": "openai", "items": []}}},
    ]
    row = {**ZED_ROWS[0], "data": {"version": "0.3.0", "messages": messages}}
    asked, made, failed, summary, sealed = read_transcript(orjson.dumps(row) + b"\n", "zed").messages
    assert asked.content[0].type == "image"
    (call,) = made.tool_calls
    assert (call.raw_input, dict(call.input), call.parse_error is None) == ("*** Begin", {}, False)
    assert [block.type for block in made.content] == ["tool_use", "redacted_thinking", "opaque"]
    assert (failed.tool_results[0].is_error, failed.tool_results[0].tool_use_id) == (True, call.id)
    assert summary.text.endswith("So far: moons.")
    assert sealed.content[0].type == "opaque"


def _said(word: str) -> dict[str, Any]:
    return {"User": {"id": word, "content": [{"Text": word}]}}


def _answered(word: str, *results: str) -> dict[str, Any]:
    calls = [{"ToolUse": {"id": one, "name": "read", "raw_input": "{}", "input": {}}} for one in results]
    found = {one: {"tool_use_id": one, "tool_name": "read", "is_error": False, "content": []} for one in results}
    return {"Agent": {"content": [{"Text": word}, *calls], "tool_results": found}}


SUMMARY, SEALED = (
    {"Compaction": {"Summary": "S"}},
    {"Compaction": {"ProviderNative": {"provider": "openai", "items": []}}},
)
EMPTY = {"User": {"id": "e", "content": []}}  # what `/compact` leaves before its summary
LONG = "x" * 80_000


@pytest.mark.parametrize(
    ("messages", "seen"),
    [
        ([_said("a"), _answered("b", "1", "2"), EMPTY, SUMMARY, _said("c")], ["a", "S", "c"]),
        ([_said("a"), SEALED, _said("b")], ["", "b"]),
        ([_said("a"), SUMMARY, _said("b"), _answered("c"), SUMMARY, _answered("d", "3")], ["a", "b", "S", "d", ""]),
        ([_said("a"), _said("b"), _said(LONG), SUMMARY], [LONG, "S"]),
        ([_said("a"), _said("b"), _said(LONG[1:]), SUMMARY], ["b", LONG[1:], "S"]),
        ([SUMMARY, _answered("a")], ["S", "a"]),
    ],
)
def test_the_context_after_a_compaction(messages: list[Any], seen: list[str]) -> None:
    """As `extend_request_history_until` of Zed's crates/agent/src/thread.rs chooses it."""
    row = {**ZED_ROWS[0], "data": {"version": "0.3.0", "messages": messages}}
    for rows in ([row], [ZED_ROWS[1], row]):
        data = b"".join([orjson.dumps(one) + b"\n" for one in rows])
        context = read_transcript(data, "zed").context
        assert [message.text.rpartition("\n")[2] for message in context] == seen
        with open_transcript(data, "zed") as opened:
            assert opened.context() == context


def test_the_context_of_each_thread_is_imported(run: Run) -> None:
    row = {**ZED_ROWS[0], "data": {"version": "0.3.0", "messages": [_said("a"), _answered("b"), SUMMARY, _said("c")]}}
    Path("z.jsonl").write_bytes(b"".join([orjson.dumps(one) + b"\n" for one in (row, ZED_ROWS[1])]))
    whole = run("transcript", "import", "z.jsonl", "--system", "zed", "--store", "whole.db")
    assert "its model would see 3 of its 4 messages: --context imports these" in whole.stderr
    some = run("transcript", "import", "z.jsonl", "--system", "zed", "--store", "some.db", "--context")
    assert some.exit_code == 0, some.output
    assert some.stdout == whole.stdout
    for store, count in (("whole.db", 4), ("some.db", 3)):
        with open_store(store) as opened:
            assert len(list(opened.messages(ZED_ROWS[0]["id"]))) == count


def test_a_damaged_thread_is_named_and_the_others_are_read(threads: Path) -> None:
    packed = zstd.compress(orjson.dumps(ZED_ROWS[0]["data"]))
    for number, data in enumerate([packed[:-5], b"no compressed text"]):
        add(threads, {**ZED_ROWS[0], "id": f"bad{number}"}, data=data)
    read = read_transcript(threads)
    assert len(read.messages) == len(read_transcript(SAMPLES["zed"]).messages)
    assert [note.text.split(":")[0] for note in read.notes if note.entry is not None] == [
        "thread bad0 cannot be read", "thread bad1 cannot be read",
    ]  # fmt: skip


def test_a_thread_that_unpacks_to_too_much_is_not_unpacked(threads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zed, "_LARGEST", 100)
    read = read_transcript(threads)
    assert "unpacks to more than 100 bytes" in " ".join([note.text for note in read.notes])
    assert read.messages[-1].text == SAID  # of the thread that is not compressed


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python has its own reader of Zstandard")
def test_without_a_reader_of_zstandard_an_error_says_what_to_install(
    threads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compression", "backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TranscriptError, match=r"interlingua-transcripts\[zed\]"):
        read_transcript(threads)


def test_a_file_that_is_no_database_of_zed(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    path.write_bytes(b"text")
    with pytest.raises(TranscriptError, match="not a database of Zed's threads"):
        read_transcript(path)
    with sqlite3.connect(tmp_path / "state.vscdb") as database:
        database.execute("CREATE TABLE one (two)")
    database.close()
    with pytest.raises(TranscriptError, match="only Zed's"):
        read_transcript(tmp_path / "state.vscdb")


def test_commands_take_each_thread_as_a_session(run: Run, threads: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(threads.parents[4]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(threads.parents[4] / "cache"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert str(threads) in run("transcript", "list", "--json").stdout
    names = [row["id"] for row in ZED_ROWS]
    first = run("transcript", "import", str(threads))
    assert first.exit_code == 0, first.output
    assert first.stdout.split() == names
    again = run("transcript", "import", str(threads))
    assert again.exit_code != 0
    assert "is in the store already" in again.stderr
    add(threads, {**ZED_ROWS[0], "id": "another"})
    assert run("transcript", "import", str(threads)).stdout.split() == ["another"]
    exported = run("transcript", "export", names[1], "--to", "pi")
    assert SAID in exported.stdout
    assert "/srv/moons" in exported.stdout.split("\n")[0]
    refused = run("transcript", "resume", str(threads), "--in", "pi")
    assert refused.exit_code == 2
    assert "holds 3 conversations" in refused.stderr
    assert len(orjson.loads(run("transcript", "search", "ganymede", "--json").stdout)) >= 2

"""`corpus`: recordings in files, gzipped or piped, counted per API, each entry leaving a line that never changes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlingua_cli.commands import corpus as corpus_command
from interlingua_cli.replay.exchange import replay
from tests.cli.conftest import Run
from tests.support.corpus import Corpus

PROGRAM = str(Path(sys.executable).with_name("interlingua"))
ANSWER = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}
STREAM = (
    'data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "H"}}]}\n\n'
    'data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "i"}, "finish_reason": "stop"}]}\n\n'
    "data: [DONE]\n\n"
)


def entry(number: int, body: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"some-chat/{number}",
        "url": "http://nobody.test/v1/chat/completions",
        "request": {"model": "m"},
        "status": 200,
        "kind": "json",
        "response_text": body if isinstance(body, str) else json.dumps(body),
        **fields,
    }


GOOD = [entry(1, ANSWER), entry(2, STREAM, kind="sse"), entry(3, {"error": {"message": "no"}}, status=401)]
BAD = entry(4, "not JSON")


def write(path: Path, *entries: dict[str, Any]) -> str:
    text = "".join(json.dumps(each) + "\n" for each in entries).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def test_the_report(run: Run, tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", *GOOD), write(tmp_path / "b.jsonl.gz", {**GOOD[0], "id": "other-chat/1"})]
    result = run("corpus", *files, "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "some-chat": {"entries": 3, "decoded": 3, "failed": 0, "opaque": 0, "excluded": 0, "not_read": 0,
                      "errors": {"AuthenticationError": 1}, "failures": []},
        "other-chat": {"entries": 1, "decoded": 1, "failed": 0, "opaque": 0, "excluded": 0, "not_read": 0,
                       "errors": {}, "failures": []},
    }  # fmt: skip
    table = run("corpus", *files)
    assert "some-chat: AuthenticationError 1\n" in table.stdout


def test_a_failure_is_listed_and_is_exit_1(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    write(file, *GOOD, BAD)
    file.write_bytes(file.read_bytes() + b"{broken\n")
    result = run("corpus", str(file), "--json")

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert [failure["id"] for failure in report["some-chat"]["failures"]] == ["some-chat/4"]
    assert report["some-chat"]["failures"][0]["error"].startswith("MalformedResponseError: ")
    assert report["unreadable"]["failures"][0]["id"] == "a.jsonl:5"
    assert "some-chat/4: MalformedResponseError" in run("corpus", str(file)).stdout


def test_an_excluded_entry_is_not_judged(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "a.jsonl", *GOOD, BAD)
    rows = tmp_path / "exclude.toml"
    rows.write_text('[[exclude]]\nid = "some-chat/4"\nreason = "not JSON"\n', encoding="utf-8")

    assert run("corpus", file, "--exclude", str(rows)).exit_code == 0
    monkeypatch.setenv("INTERLINGUA_CORPUS_EXCLUDE", str(rows))
    assert json.loads(run("corpus", file, "--json").stdout)["some-chat"]["excluded"] == 1
    rows.write_text('[[exclude]]\nid = "some-chat/4"\n', encoding="utf-8")
    result = run("corpus", file)
    assert result.exit_code == 1
    assert "exclude[0].reason" in result.stderr


def test_emit_writes_a_line_per_entry_the_same_at_every_chunk_size(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", *GOOD, BAD)
    for name, more in (("one", []), ("two", ["--chunk", "1"])):
        run("corpus", file, "--emit", str(tmp_path / name), *more)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "one").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == [f"some-chat/{number}" for number in (1, 2, 3, 4)]
    assert lines[0]["message"]["content"] == lines[1]["message"]["content"] == [{"type": "text", "text": "Hi"}]
    assert lines[2]["error"] == {
        "type": "AuthenticationError", "message": "no", "status": 401, "retryable": False, "retry_after": None,
    }  # fmt: skip
    assert lines[3]["error"]["type"] == "MalformedResponseError"


def test_a_recording_may_be_piped_in(home: Path) -> None:
    text = gzip.compress("".join(json.dumps(each) + "\n" for each in GOOD).encode())
    done = subprocess.run([PROGRAM, "corpus", "-", "--json"], input=text, capture_output=True, check=True)

    assert json.loads(done.stdout)["some-chat"]["decoded"] == 3
    assert done.stderr == b""


def test_emit_does_not_write_over_what_is_to_be_read(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", *GOOD)
    before = Path(file).read_bytes()
    (tmp_path / "link").symlink_to(file)

    for out in (file, str(tmp_path / "link")):
        result = run("corpus", file, "--emit", out)
        assert result.exit_code == 2
        assert "choose another file" in result.stderr
    assert Path(file).read_bytes() == before


def test_a_recording_that_breaks_off_counts_up_to_there(run: Run, tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(entry(number, ANSWER)) + "\n" for number in range(2000)).encode())
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    result = run("corpus", str(cut), write(tmp_path / "b.jsonl", {**GOOD[0], "id": "other-chat/1"}), "--json")

    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert 0 < report["some-chat"]["decoded"] < 2000
    assert report["some-chat"]["failed"] == 0
    assert report["other-chat"]["decoded"] == 1
    [failure] = report["unreadable"]["failures"]
    assert failure["id"] == f"cut.jsonl.gz:{report['some-chat']['decoded'] + 1}"
    assert "cannot be read further" in failure["error"]


def test_an_interrupted_run_reports_what_it_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped_at_the_third(exchange: Any, *arguments: Any, **named: Any) -> Any:
        if exchange.id == "some-chat/3":
            raise KeyboardInterrupt
        return replay(exchange, *arguments, **named)

    monkeypatch.setattr(corpus_command, "replay", stopped_at_the_third)
    out = tmp_path / "out.jsonl"
    result = run("corpus", write(tmp_path / "a.jsonl", *GOOD), "--emit", str(out), "--json")

    assert result.exit_code == 130
    assert json.loads(result.stdout)["some-chat"]["decoded"] == 2
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    assert "interrupted" in result.stderr


def test_a_missing_file_is_told_before_the_others_are_read(run: Run, tmp_path: Path) -> None:
    result = run("corpus", write(tmp_path / "a.jsonl", *GOOD), "nowhere.jsonl")

    assert result.exit_code == 1
    assert result.stdout == ""


def test_a_missing_file_is_one_line(run: Run) -> None:
    result = run("corpus", "nowhere.jsonl")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "nowhere.jsonl" in result.stderr


def test_the_plain_command_on_the_corpus(home: Path, corpus: Corpus) -> None:
    apis = ("anthropic-messages", "openai-chat", "openai-responses")
    command = [PROGRAM, "corpus", *(str(corpus.file(api)) for api in apis), "--json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    report = json.loads(done.stdout)

    assert {api: report[api]["failures"] for api in apis} == {api: [] for api in apis}
    assert done.returncode == 0
    assert sum(tally["entries"] for tally in report.values()) == 5668  # the count

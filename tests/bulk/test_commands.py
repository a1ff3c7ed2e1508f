"""The commands `interlingua bulk …`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from interlingua_bulk.commands import bulk
from interlingua_cli.root import cli
from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, lines, write_rows


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["bulk", *map(str, arguments)], catch_exceptions=False)


def test_run_status_retry_and_compact(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 8), tmp_path / "out.jsonl"
    with loopback(latency_ms=1, bad_rows=[2, 5]) as server:
        first = invoke("run", rows, "--out", out, "--model", LOCAL, "--url", server.url, "--json")
    status = json.loads(invoke("status", out, "--json").output)
    with loopback(latency_ms=1) as server:
        unsure = invoke("retry", out, "--url", server.url)
        second = invoke("retry", out, "--failed", "--url", server.url)
    compacted = invoke("compact", out)

    assert first.exit_code == 1
    assert json.loads(first.stdout)["failed"] == 2
    assert "2 failed" in first.stderr
    assert (status["done"], status["failed"], status["left"]) == (6, 2, 0)
    assert status["errors"] == {"BadRequestError": 2}
    assert unsure.exit_code == 2
    assert second.exit_code == 0, second.output
    assert compacted.exit_code == 0
    assert_every_row_once(out, 8)
    assert "8/8 rows" in second.stderr
    assert "done" in invoke("status", out).output


def test_a_refused_key_is_said_and_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "wrong")
    rows = write_rows(tmp_path / "in.jsonl", 5)
    with loopback(refuse_from=1) as server:
        done = invoke("run", rows, "--out", tmp_path / "out.jsonl", "--model", LOCAL, "--url", server.url)

    assert done.exit_code == 1
    assert "error: 401 Unauthorized" in done.stderr


def test_options_reach_the_requests(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 1), tmp_path / "out.jsonl"
    with loopback() as server:
        invoke("run", rows, "--out", out, "--model", LOCAL, "--url", server.url, "-o", "max_tokens=7", "--rpm", 600)
    side = json.loads((tmp_path / "out.jsonl.run.json").read_text())

    assert side["asked"]["options"] == {"max_tokens": 7}
    assert side["format"] == "interlingua-bulk/1"
    assert len(side["input"]["sha256"]) == 64
    assert len(lines(out)) == 1


def test_another_file_is_no_output(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 1)

    assert "no output of" in invoke("status", rows).output
    assert invoke("retry", rows, "--failed").exit_code == 1


def test_every_command_has_its_help() -> None:
    context = click.Context(bulk)
    for name in bulk.list_commands(context):
        command = bulk.get_command(context, name)
        assert command is not None
        assert command.help
    assert bulk.get_command(context, "nothing") is None

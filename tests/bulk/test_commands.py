"""The commands `interlingua bulk …`, as a user runs them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner, Result

from interlingua import AsyncClient
from interlingua_bulk import batches as batch_runs
from interlingua_bulk import ray_engine
from interlingua_bulk.batch_records import read_batches
from interlingua_bulk.commands import batches, bulk
from interlingua_bulk.runner import BulkReport
from interlingua_cli.root import cli
from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, lines, write_rows
from tests.bulk.test_rows import WIRE_TOOL


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["bulk", *map(str, arguments)], catch_exceptions=False)


def test_a_refused_run_leaves_the_rows_of_the_output(tmp_path: Path) -> None:
    table, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    table.write_text("text\nrow 1\nrow 2\n")
    with loopback(latency_ms=1, bad_rows=[2]) as server:
        arguments = (table, "--out", out, "--model", LOCAL, "--url", server.url)
        invoke("run", *arguments, "--prompt", "A {text}")
    with loopback(latency_ms=1) as server:
        other = invoke("run", *arguments[:-1], server.url, "--prompt", "B {text}")
        retried = invoke("retry", out, "--failed", "--url", server.url)

    assert (other.exit_code, retried.exit_code) == (1, 0)
    assert "different input" in other.output
    assert {line["status"] for line in lines(out) if line["index"] == 0} == {"ok"}


def test_an_output_that_is_named_as_a_table_is_refused(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", 1)
    refused = invoke("run", rows, "--out", tmp_path / "out.parquet", "--model", LOCAL)

    assert refused.exit_code == 1
    assert "compact --parquet" in refused.output
    assert not (tmp_path / "out.parquet").exists()


def test_run_status_retry_and_compact(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 8), tmp_path / "out.jsonl"
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([WIRE_TOOL]))
    with loopback(latency_ms=1, bad_rows=[2, 5]) as server:
        arguments = ("--out", out, "--model", LOCAL, "--tools", tools, "--url", server.url, "--json")
        first = invoke("run", rows, *arguments)
    status = json.loads(invoke("status", out, "--json").output)
    shown = invoke("status", out).output
    with loopback(latency_ms=1) as server:
        unsure = invoke("retry", out, "--url", server.url)
        second = invoke("retry", out, "--failed", "--url", server.url)
    compacted = invoke("compact", out)

    assert first.exit_code == 1
    assert json.loads(first.stdout)["failed"] == 2
    assert "2 failed" in first.stderr
    assert (status["done"], status["failed"], status["left"]) == (6, 2, 0)
    assert status["errors"] == {"BadRequestError": 2}
    assert status["examples"]["BadRequestError"]["index"] in (2, 5)
    cells = ["2", "BadRequestError", status["examples"]["BadRequestError"]["id"], "400", "Bad", "Request"]
    assert shown.splitlines()[-1].split() == cells
    assert unsure.exit_code == 2
    assert second.exit_code == 0, second.output
    assert compacted.exit_code == 0
    assert_every_row_once(out, 8)
    side = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert [tool["name"] for tool in side["asked"]["tools"]] == ["look"]
    assert "8/8 rows" in second.stderr
    assert "done" in invoke("status", out).output
    assert json.loads(invoke("status", out, "--json").output)["examples"] == {}


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

    assert "not an output of" in invoke("status", rows).output
    assert invoke("retry", rows, "--failed").exit_code == 1


def test_the_workers_of_a_cluster_get_the_users_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def run_on_ray(*_: Any, registry: dict[str, Any], **__: Any) -> BulkReport:
        given.append(ray_engine.registry_of_workers(registry, {"INTERLINGUA_PRICES": "own.json"}))
        return BulkReport(rows=1, done=1)

    monkeypatch.setattr(ray_engine, "run_on_ray", run_on_ray)
    monkeypatch.chdir(tmp_path)
    rows, prices = write_rows(tmp_path / "rows.jsonl", 1), tmp_path / "prices.json"
    prices.write_text("{}")
    arguments = ["bulk", "run", str(rows), "--out", "answers.jsonl", "--model", LOCAL, "--engine", "ray"]
    for named, found in (("", "own.json"), (str(prices), "prices.json")):
        environ = {"XDG_CONFIG_HOME": str(tmp_path / "none"), "INTERLINGUA_CONFIG": "", "INTERLINGUA_PRICES": named}
        CliRunner().invoke(cli, arguments, env=environ, catch_exceptions=False)
        assert given[-1]["prices"] == str(tmp_path / found)
    assert ray_engine.registry_of_workers({"rows": ()}, {}) == {"rows": ()}


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_a_cluster_without_ray_says_what_to_install(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 1), tmp_path / "out.jsonl"
    done = invoke("run", rows, "--out", out, "--model", LOCAL, "--engine", "ray", "--url", "http://127.0.0.1:9/v1")
    refused = invoke(
        "run", rows, "--out", out, "--model", LOCAL, "--engine", "ray", "--batch-when", "cheaper-than", "1"
    )

    assert done.exit_code == 1
    assert "pip install 'interlingua-bulk[ray]'" in done.output
    assert refused.exit_code == 2


def test_every_command_has_its_help() -> None:
    context = click.Context(bulk)
    for name in bulk.list_commands(context):
        command = bulk.get_command(context, name)
        assert command is not None
        assert command.help
    assert bulk.get_command(context, "nothing") is None


class Service:
    """A batch API in this process: it takes one batch at a time and ends it with its second look."""

    def __init__(self) -> None:
        self.looks = 0
        self.rows: list[str] = []
        self.result: dict[str, Any] = {"type": "expired"}
        self.interrupt = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if self.interrupt:
            self.interrupt = False
            raise KeyboardInterrupt
        if request.method == "GET" and path.endswith("/batches"):
            return httpx.Response(200, json={"data": []})
        if path.endswith("/results"):
            lines = (json.dumps({"custom_id": row, "result": self.result}) for row in self.rows)
            return httpx.Response(200, text="\n".join(lines))
        if request.method == "POST" and path.endswith("/batches"):
            self.looks, self.rows = 0, [row["custom_id"] for row in json.loads(request.content)["requests"]]
        elif request.method == "GET":
            self.looks += 1
        ended = self.looks > 1
        counts = {"processing": 0 if ended else len(self.rows), "succeeded": 0, "errored": 0, "canceled": 0}
        return httpx.Response(200, json={
            "id": "msgbatch_1", "processing_status": "ended" if ended else "in_progress",
            "created_at": "2026-11-22T10:00:00Z",
            "request_counts": {**counts, "expired": len(self.rows) if ended else 0},
            "results_url": "https://api.anthropic.com/v1/messages/batches/msgbatch_1/results" if ended else None,
        })  # fmt: skip


ANSWERED = {
    "type": "succeeded",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "by batch"}], "usage": {"input_tokens": 1000, "output_tokens": 100},
    },
}  # fmt: skip


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    service = Service()

    def client(_state: Any, model: str | None, _url: str | None) -> AsyncClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(service))
        return AsyncClient(model, settings={"anthropic": {"api_key": "test-key"}}, http_client=http)

    monkeypatch.setattr(batches, "make_client", client)
    return service


def test_failed_rows_of_a_batch_are_a_second_batch(tmp_path: Path, service: Service) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    invoke("submit", rows, "--out", out, "--model", "anthropic:claude-sonnet-4-5")
    invoke("fetch", out)
    assert invoke("fetch", out).exit_code == 0
    first = list(service.rows)

    again = invoke("retry", out, "--failed", "--batch")
    assert "batch 1: 3 rows submitted\n3 rows in 1 batch under way" in again.stderr, again.output
    assert "rows failed" not in again.stderr
    assert service.rows == first
    twice = invoke("retry", out, "--failed", "--batch", "--json")
    assert "3 rows in 1 batch under way" in twice.stderr
    assert "submitted" not in twice.stderr
    assert [(batch["number"], batch["rows"]) for batch in json.loads(twice.stdout)] == [(0, 3), (1, 3)]
    service.result = ANSWERED
    invoke("fetch", out)
    fetched = json.loads(invoke("status", out, "--json").stdout)
    invoke("fetch", out)
    found = {line["index"]: line["status"] for line in lines(out)}
    assert found == {0: "ok", 1: "ok", 2: "ok"}
    assert [batch["state"] for batch in fetched["batches"]] == ["fetched", "submitted"]
    last = json.loads(invoke("status", out, "--json").stdout)["batches"][-1]
    assert (float(last["cost_usd"]), float(last["single_usd"])) == (0.00675, 0.0135)  # 3 and 15 USD a million, halved


def test_a_mixed_run_submits_what_is_cheaper_and_sends_the_rest(tmp_path: Path, service: Service) -> None:
    given = [{"id": f"r{at}", "prompt": f"{at}"} | ({"model": "anthropic:claude-sonnet-4-5"} if at % 2 else {})
             for at in range(6)]  # fmt: skip
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    service.result = ANSWERED
    with loopback(latency_ms=1) as server:
        arguments = ("--out", out, "-m", LOCAL, "--url", server.url, "--batch-when", "cheaper-than")
        done = invoke("run", rows, *arguments, "0.6")
        assert done.exit_code == 0, done.output
        assert "batch 0: 3 rows submitted" in done.stderr
        assert "3/6 rows · 0 failed · 3 in batches" in done.stderr
        assert "3 rows in batches under way: `interlingua bulk fetch" in done.stderr
        assert sorted(line["index"] for line in lines(out)) == [0, 2, 4]
        again = invoke("run", rows, *arguments, "0.6").stderr
        assert "submitted" not in again, "they are under way"
        assert again.count("3/6 rows") == 1, "a line of progress is printed once"
        assert "left" not in again
    invoke("fetch", out)
    assert invoke("fetch", out).exit_code == 0
    assert sorted(line["index"] for line in lines(out)) == list(range(6))
    assert len(service.rows) == 3


def test_a_mixed_run_submits_nothing_that_is_not_cheap_enough(tmp_path: Path, service: Service) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 2), tmp_path / "out.jsonl"
    arguments = ("--out", out, "-m", LOCAL, "--batch-when", "cheaper-than", "0.6")
    with loopback(latency_ms=1) as server:
        done = invoke("run", rows, *arguments, "--url", server.url)
    assert "batch" not in done.stderr
    assert_every_row_once(out, 2)
    assert service.rows == []
    for option in (("--budget", "5"), ("--dedupe",)):
        refused = invoke("run", rows, *arguments, *option)
        assert (refused.exit_code, "do not apply to batches" in refused.stderr) == (2, True)
    assert invoke("run", rows, *arguments, "--engine", "ray").exit_code == 2


def test_a_submission_that_is_interrupted_is_continued(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    submit = ("submit", rows, "--out", out, "--model", "anthropic:claude-sonnet-4-5", "--batch-rows", 2)
    service.interrupt = True
    assert invoke(*submit).exit_code == 130
    assert read_batches(out)[1][0].state == "intent"
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(batch_runs.asyncio, "sleep", sleep)
    fetched = invoke("fetch", out)
    assert "3 rows not sent: repeat `interlingua bulk submit` or `interlingua bulk run`" in fetched.stderr
    assert read_batches(out)[1][0].state == "abandoned"
    assert 5 < waits[0] <= 10, "the service may list it late"
    again = invoke(*submit).stderr
    assert "batch 1: 2 rows submitted\nbatch 2: 1 row submitted\n3 rows in 2 batches under way" in again


def test_answers_of_a_batch_do_not_become_those_of_another_input(tmp_path: Path, service: Service) -> None:
    rows, other, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "other.jsonl", tmp_path / "out.jsonl"
    write_rows(other, [{"id": f"o{number}", "prompt": "another"} for number in range(3)])
    common = ("--out", out, "--model", "anthropic:claude-sonnet-4-5")
    invoke("submit", rows, *common)
    assert "pass --force" in invoke("submit", other, *common).stderr
    for command in (("submit",), ("run",), ("run", "--batch-when", "cheaper-than", "0.6")):
        refused = invoke(command[0], other, *common, "--force", *command[1:])
        assert "batches under way with rows of another input: fetch them first" in refused.stderr
    service.result = ANSWERED
    for _ in range(2):
        invoke("fetch", out)
    assert [line["id"] for line in lines(out)] == ["r0", "r1", "r2"]
    assert invoke("submit", other, *common, "--force").exit_code == 0


def test_waiting_for_batches_shows_what_is_done(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_EVERY_S", 0.01)
    rows, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    invoke("submit", rows, "--out", out, "--model", "anthropic:claude-sonnet-4-5")
    service.result = ANSWERED
    monkeypatch.setattr(batches, "_SHOWN_S", 0.0)
    shown = invoke("fetch", out, "--wait").stderr
    assert "1 batch under way: 0 of 3 rows done\nbatch 0: 1 of 3 rows read\nbatch 0: 2 of 3 rows read\n" in shown


def test_submit_status_fetch_and_cancel(tmp_path: Path, service: Service) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    submitted = invoke("submit", rows, "--out", out, "--model", "anthropic:claude-sonnet-4-5", "--json")
    assert submitted.exit_code == 0, submitted.output
    assert json.loads(submitted.stdout)[0]["rows"] == 3
    assert len(service.rows) == 3
    assert invoke("cancel", out).exit_code == 0
    status = json.loads(invoke("status", out, "--json").stdout)
    assert (status["left"], status["in_batches"], status["batches"][0]["state"]) == (3, 3, "submitted")
    fetched = invoke("fetch", out)
    assert fetched.exit_code == 0, fetched.output
    assert "3 rows failed: `interlingua bulk status" in fetched.stderr
    assert "fetched" in fetched.stdout
    assert [line["error"]["code"] for line in lines(out)] == ["batch_expired"] * 3
    assert "ServerError" in invoke("status", out).stdout


def test_m_sets_the_model_of_a_run(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 2), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        done = invoke("run", rows, "--out", out, "-m", LOCAL, "--url", server.url)
    assert done.exit_code == 0, done.output
    assert_every_row_once(out, 2)

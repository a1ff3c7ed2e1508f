"""Results of batches that are large, cut, in another order, doubled, incomplete or unreadable."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from interlingua import AsyncClient, Retry
from interlingua.errors import APIConnectionError, ProviderError
from interlingua_bulk import results as module
from interlingua_bulk.batch_records import Batch, read_batches, write_batches
from interlingua_bulk.batches import BatchRun
from interlingua_bulk.results import read_lines
from tests.bulk.batch_service import BatchService
from tests.bulk.support import assert_every_row_once, lines, write_rows

ROWS = 40
MODEL = "openai:gpt-5.4-mini"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_seconds: float) -> None:
        return None

    monkeypatch.setattr(module.asyncio, "sleep", at_once)


def _call(service: BatchService, out: Path, rows: Path | None, name: str, **arguments: Any) -> list[Batch]:
    async def main() -> list[Batch]:
        client = AsyncClient(MODEL, api_key="test-key", base_url=service.url, retry=Retry(max_attempts=1))
        async with client, BatchRun(out, client, rows) as run:
            found: list[Batch] = await getattr(run, name)(**arguments)
            return found

    return asyncio.run(main())


def _submit(service: BatchService, folder: Path, count: int = ROWS) -> Path:
    out = folder / "out.jsonl"
    _call(service, out, write_rows(folder / "in.jsonl", count), "submit")
    return out


def _fetch(service: BatchService, out: Path) -> Batch:
    assert _call(service, out, None, "fetch") == []
    return read_batches(out)[1][-1]


def _codes(out: Path) -> dict[int, Any]:
    """Return the codes of the rows with an error, after checking that each row has one line."""
    found = lines(out)
    assert sorted(line["index"] for line in found) == list(range(ROWS))
    for line in found:
        number = line["index"]
        if line["status"] == "ok":
            assert line["message"]["content"][0]["text"].endswith(f"row {number} is {number * number}.")
    return {line["index"]: line["error"].get("code") for line in found if line["status"] == "error"}


def test_lines_in_another_order_and_doubled_ones_reach_their_rows_once(tmp_path: Path) -> None:
    with BatchService(shuffle=True, doubled=[0, 7, ROWS - 1]) as service:
        out = _submit(service, tmp_path)
        batch = _fetch(service, out)

    assert_every_row_once(out, ROWS)
    assert [line["index"] for line in lines(out)] != list(range(ROWS)), "rows are stored as they arrive"
    assert Decimal(batch.cost_usd or 0) == sum(Decimal(line["cost_usd"]) for line in lines(out))


@pytest.mark.parametrize("first", ["ok", "error"])
def test_an_answer_replaces_an_error_of_the_same_row_and_not_the_reverse(first: str, tmp_path: Path) -> None:
    with BatchService(doubled=[3]) as service:
        out = _submit(service, tmp_path)
        line, order = service.line, itertools.cycle([first == "error", first == "ok"])

        def mixed(name: str, row: int) -> bytes:
            service.failed = {3} if row == 3 and next(order) else set()
            return line(name, row)

        service.line = mixed  # type: ignore[method-assign]
        _fetch(service, out)

    assert [line["status"] for line in lines(out) if line["index"] == 3] == (
        ["ok"] if first == "ok" else ["error", "ok"]
    )


@pytest.mark.parametrize("is_framed", [True, False])
@pytest.mark.parametrize("place", [0, 1, 400, 7_001, 15_100])
def test_a_cut_connection_is_followed_by_another_request(place: int, is_framed: bool, tmp_path: Path) -> None:
    with BatchService(is_framed=is_framed, cuts=[place] if place else []) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)
        downloads = service.downloads

    assert_every_row_once(out, ROWS)
    assert downloads == 1 + bool(place)


def test_tries_are_counted_anew_when_rows_arrived(tmp_path: Path) -> None:
    with BatchService(cuts=[1_500 * times for times in range(1, 11)], shuffle=False) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)
        downloads = service.downloads

    assert_every_row_once(out, ROWS)
    assert downloads == 11


def test_a_connection_that_brings_nothing_more_ends_the_fetch_and_the_next_one_continues(tmp_path: Path) -> None:
    with BatchService(cuts=[2_000] * 6) as service:
        out = _submit(service, tmp_path)
        with pytest.raises(APIConnectionError):
            _call(service, out, None, "fetch")
        before = len(lines(out))
        assert 0 < before < ROWS
        assert read_batches(out)[1][0].state == "submitted"
        batch = _fetch(service, out)

    assert_every_row_once(out, ROWS)
    total = sum(Decimal(line["cost_usd"]) for line in lines(out))
    assert (Decimal(batch.cost_usd or 0), Decimal(batch.single_usd or 0)) == (total, 2 * total)


def test_a_fetch_that_was_killed_after_its_last_row_does_not_read_the_results_again(tmp_path: Path) -> None:
    with BatchService(failed=[2]) as service:
        out = _submit(service, tmp_path)
        cost = _fetch(service, out).cost_usd
        run_id, (batch,) = read_batches(out)
        batch.state, batch.cost_usd = "submitted", None
        write_batches(out, run_id, [batch])
        batch = _fetch(service, out)
        downloads = service.downloads

    assert downloads == 1
    assert (batch.state, batch.cost_usd) == ("fetched", cost)
    assert _codes(out) == {2: "bad_row"}


def test_errors_that_an_interrupted_fetch_wrote_are_not_written_again(tmp_path: Path) -> None:
    with BatchService(cuts=[4_000] * 6, failed=[1]) as service:
        out = _submit(service, tmp_path)
        with pytest.raises(APIConnectionError):
            _call(service, out, None, "fetch")
        assert [line["index"] for line in lines(out) if line["status"] == "error"] == [1]
        _fetch(service, out)

    assert _codes(out) == {1: "bad_row"}


def test_a_row_that_the_results_lack_gets_an_error(tmp_path: Path) -> None:
    with BatchService(missing=[5, 6]) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)

    assert _codes(out) == {5: "batch_missing", 6: "batch_missing"}


def test_an_unreadable_line_costs_its_row_only_and_is_named(tmp_path: Path) -> None:
    with BatchService(spoiled=[9]) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)

    assert _codes(out) == {9: "batch_unreadable"}
    (error,) = [line["error"] for line in lines(out) if line["status"] == "error"]
    assert error["type"] == "MalformedResponseError"
    assert "line 10 cannot be read" in error["message"]


_ODD: tuple[Any, ...] = (None, 5, 1.5, True, "x", [], {}, [{}], {"output": 5}, {"output": [5]}, {"error": 5})


def test_lines_of_the_wrong_form_cost_their_rows_only(tmp_path: Path) -> None:
    """Ids, statuses, bodies and whole lines of other types than the service documents."""
    bodies = [{"custom_id": True, "response": {"status_code": 200, "body": odd}} for odd in _ODD]
    statuses = [{"custom_id": True, "response": {"status_code": odd, "body": {}}} for odd in _ODD]
    refusals = [{"custom_id": True, "response": {"status_code": 400, "body": odd}} for odd in _ODD]
    ids = [{"custom_id": odd, "response": None} for odd in _ODD]
    forms = [*bodies, *statuses, *refusals, *ids, *_ODD]
    out = tmp_path / "out.jsonl"
    with BatchService() as service:
        whole = service.line

        def line(name: str, row: int) -> bytes:
            if row >= len(forms):
                return whole(name, row)
            form = forms[row]
            if isinstance(form, dict) and form.get("custom_id") is True and form.get("response"):
                form = {**form, "custom_id": name}
            return json.dumps(form).encode() + b"\n"

        service.line = line  # type: ignore[method-assign]
        _call(service, out, write_rows(tmp_path / "in.jsonl", len(forms) + 2), "submit")
        _fetch(service, out)

    found = {line["index"]: line["status"] for line in lines(out)}
    assert len(lines(out)) == len(found) == len(forms) + 2
    assert (found[len(forms)], found[len(forms) + 1]) == ("ok", "ok")
    assert {found[row] for row in range(len(bodies), len(forms))} == {"error"}


def test_a_line_above_the_limit_costs_its_row_only_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.ResultWriter.__init__, "__defaults__", (10_000, None))
    with BatchService(sizes={"12": 10_000, "13": 9_000}) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)

    assert _codes(out) == {12: "batch_unreadable"}
    (error,) = [line["error"] for line in lines(out) if line["status"] == "error"]
    assert "line 13 is longer than 10,000 bytes" in error["message"]


def test_a_row_of_50_mb_is_read(tmp_path: Path) -> None:
    with BatchService(sizes={"3": 50_000_000}) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)

    assert _codes(out) == {}
    assert out.stat().st_size > 50_000_000


@pytest.mark.parametrize(("state", "code"), [("expired", "batch_expired"), ("cancelled", "batch_cancelled")])
def test_a_batch_that_ended_early_keeps_its_answers(state: str, code: str, tmp_path: Path) -> None:
    errors = {str(row): code for row in range(30, ROWS)}
    with BatchService(state="in_progress", errors=errors) as service:
        out = _submit(service, tmp_path)
        assert len(_call(service, out, None, "cancel")) == 1
        service.state = state
        _fetch(service, out)

    assert _codes(out) == dict.fromkeys(range(30, ROWS), code)


def test_a_batch_that_ended_while_it_was_cancelled_is_fetched_whole(tmp_path: Path) -> None:
    with BatchService(state="completed") as service:
        out = _submit(service, tmp_path)
        _call(service, out, None, "cancel")
        _fetch(service, out)

    assert_every_row_once(out, ROWS)


def test_a_batch_whose_results_are_gone_does_not_keep_the_others_from_being_fetched(tmp_path: Path) -> None:
    with BatchService(gone=[0]) as service:
        out = tmp_path / "out.jsonl"
        made = _call(service, out, write_rows(tmp_path / "in.jsonl", ROWS), "submit", batch_rows=ROWS // 2)
        assert len(made) == 2
        with pytest.raises(ProviderError, match="no such file"):
            _call(service, out, None, "fetch")

    assert [batch.state for batch in read_batches(out)[1]] == ["submitted", "fetched"]
    assert sorted(line["index"] for line in lines(out)) == list(range(ROWS // 2, ROWS))


def test_rows_that_failed_are_submitted_again_and_fetched_with_the_second_batch(tmp_path: Path) -> None:
    with BatchService(errors={"4": "batch_expired"}, failed=[8]) as service:
        out = _submit(service, tmp_path)
        _fetch(service, out)
        service.errors, service.failed = {}, set()
        (second,) = _call(service, out, None, "submit", failed=True)
        assert (second.rows, second.ranges) == (2, [[4, 4], [8, 8]])
        _fetch(service, out)

    last = {line["index"]: line["status"] for line in lines(out)}
    assert Counter(last.values()) == {"ok": ROWS}
    assert len(lines(out)) == ROWS + 2


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 64])
def test_lines_are_the_same_wherever_the_pieces_are_cut(cut: int) -> None:
    data = b'{"a":1}\n\n  \n{"b":"' + b"x" * 20 + b'"}\r\n{"c":2}'

    async def read() -> list[tuple[int, bytes | None, bool]]:
        async def pieces() -> Any:
            for place in range(0, len(data), cut):
                yield data[place : place + cut]

        return [line async for line in read_lines(pieces(), 20)]

    assert asyncio.run(read()) == [(1, b'{"a":1}', True), (4, None, True), (5, b'{"c":2}', False)]


_FETCH = """
import resource, sys
from interlingua_cli import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def _command(out: Path, service: BatchService, code: str) -> list[str]:
    return [sys.executable, "-c", code, "bulk", "fetch", str(out), "--url", service.url]


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_the_memory_of_a_fetch_does_not_grow_with_the_results(tmp_path: Path) -> None:
    """Memory of the process in MB, for results of some KB and of 60 MB."""
    peaks = []
    for number, size in enumerate((20, 1_500_000)):
        (folder := tmp_path / str(number)).mkdir()
        with BatchService(size=size) as service:
            out = _submit(service, folder)
            done = subprocess.run(
                _command(out, service, _FETCH), capture_output=True, text=True, check=True, env=_environment()
            )
        assert len(lines(out)) == ROWS
        peaks.append(int(done.stderr.split()[-1]))

    assert peaks[1] - peaks[0] < 40, peaks


@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
def test_a_killed_fetch_continues_without_losing_or_doubling_a_row(tmp_path: Path) -> None:
    chance = random.Random(31)
    with BatchService(size=20_000, shuffle=True, failed=[3, 17]) as service:
        out = _submit(service, tmp_path)
        whole = service.file

        def slowly(name: str) -> Any:
            for line in whole(name):
                time.sleep(0.003)
                yield line

        service.file = slowly  # type: ignore[method-assign]
        command = _command(out, service, "from interlingua_cli import main; main()")
        killed = 0
        for _ in range(10):
            before = out.stat().st_size
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=_environment())
            while process.poll() is None and out.stat().st_size == before:
                time.sleep(0.002)
            time.sleep(chance.random() * 0.02)
            killed += process.poll() is None
            process.kill()
            process.wait()
        service.file = whole  # type: ignore[method-assign]
        batch = _fetch(service, out)

    assert killed > 2
    assert batch.state == "fetched"
    assert _codes(out) == {3: "bad_row", 17: "bad_row"}
    assert Decimal(batch.cost_usd or 0) == sum(Decimal(line.get("cost_usd") or 0) for line in lines(out))


def _environment() -> dict[str, str]:
    return {**os.environ, "OPENAI_API_KEY": "test-key"}

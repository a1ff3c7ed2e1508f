"""Full disks, inputs that change while they are read, and runs that are stopped."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import interlingua_bulk as bulk
from interlingua.errors import CallerError, DecodeError
from interlingua_bulk.answers import AnswerFile, BulkInput, compact_answers
from interlingua_bulk.rows import spool_rows
from interlingua_bulk.tables import write_answers
from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, lines, run, write_rows

resource = pytest.importorskip("resource", reason="POSIX limits the size of files")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond this size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_stops_a_run_and_leaves_whole_lines(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        with largest_file(20_000):
            report = run(rows, out, server.url)
        assert out.read_bytes().endswith(b"}\n")
        kept = len(lines(out))
        again = run(rows, out, server.url)

    assert isinstance(report.error, CallerError)
    assert str(report.error) == f"{out} cannot be written: {os.strerror(errno.EFBIG)}"
    assert (kept > 5, again.resumed, again.done) == (True, kept, 60)
    assert_every_row_once(out, 60)


@pytest.mark.parametrize(
    "write",
    [
        lambda out: spool_rows(({"prompt": "x" * 99} for _ in range(99)), out.with_name("spooled")),
        compact_answers,
        lambda out: write_answers(out, out.with_name("table.csv"), "csv"),
    ],
)
def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, write: Callable[[Path], object]) -> None:
    out = tmp_path / "out.jsonl"
    with loopback(latency_ms=1) as server:
        run(write_rows(tmp_path / "in.jsonl", 9), out, server.url)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with largest_file(500), pytest.raises(CallerError, match="cannot be written"):
        write(out)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rows_that_are_added_during_a_run_are_not_part_of_it(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl"
    rows.write_bytes(rows.read_bytes()[:-1])  # its last line is continued

    def add(_report: bulk.BulkReport) -> None:
        if rows.stat().st_size < 9000:
            with rows.open("a") as file:
                file.write(" " * 99 + '\n{"id": "r60", "prompt": "row 60"}\n' * 99)

    with loopback(latency_ms=300) as server:
        report = run(rows, out, server.url, concurrency=8, on_progress=add)

    assert rows.stat().st_size > 3000
    assert (report.done, report.stopped) == (60, None)
    assert_every_row_once(out, 60)


@pytest.mark.parametrize("change", ["shorter", "others"])
def test_an_input_that_is_changed_during_a_run_is_an_error(tmp_path: Path, change: str) -> None:
    given = [{"id": f"r{number}", "prompt": f"row {number}: {'x' * 99_000}"} for number in range(60)]
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"

    def alter(report: bulk.BulkReport) -> None:
        if report.done == report.failed == 0:
            if change == "shorter":
                os.truncate(rows, 3_000_000)
            else:
                write_rows(rows, [{**row, "prompt": str(row["prompt"]).upper()} for row in given])

    with loopback(latency_ms=700) as server:
        report = run(rows, out, server.url, concurrency=2, on_progress=alter)

    assert isinstance(report.error, DecodeError)
    assert str(rows) in str(report.error)
    assert report.done == report.asked > 0  # what was under way has its lines


def test_a_run_may_be_stopped_while_its_input_is_read(tmp_path: Path) -> None:
    rows, table, out = write_rows(tmp_path / "in.jsonl", 9), tmp_path / "in.csv", tmp_path / "out.jsonl"
    table.write_text("prompt\nx\n")

    async def stopped(path: Path) -> bulk.BulkReport:
        stop = asyncio.Event()
        stop.set()
        return await bulk.arun(path, out, model=LOCAL, stop=stop)

    for path in (rows, table):
        assert asyncio.run(stopped(path)).stopped == "interrupted"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.jsonl"]


def test_lines_are_on_disk_though_every_task_is_cancelled(tmp_path: Path) -> None:
    """A second Ctrl-C cancels the task that synchronises the file, while another task waits for it."""

    async def main() -> None:
        answers = AnswerFile(tmp_path / "out.jsonl", BulkInput(tmp_path / "in.jsonl", 1, 1, ""), {})
        answers.start()
        await asyncio.sleep(0)
        await answers.add(0, b'{"index":0,"status":"ok"}\n', ok=True)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.wait_for(answers.flush(), 5)
        with pytest.raises(asyncio.CancelledError):
            await answers.close()

    asyncio.run(main())
    assert lines(tmp_path / "out.jsonl") == [{"index": 0, "status": "ok"}]

"""Parquet in and out; skipped where pyarrow is not installed (`make ray` has it)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import CallerError
from tests.bulk.loopback import loopback
from tests.bulk.support import assert_every_row_once, run

HERE = importlib.util.find_spec("pyarrow") is not None
needs_pyarrow = pytest.mark.skipif(not HERE, reason="pyarrow is not installed; .ci/run has it beside Ray")


@needs_pyarrow
def test_rows_are_read_and_answers_written(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from interlingua_bulk.parquet import write_answers

    rows, out = tmp_path / "in.parquet", tmp_path / "out.jsonl"
    given: list[dict[str, Any]] = [{"id": f"r{number}", "prompt": f"row {number}"} for number in range(20)]
    given[3] |= {"prompt": None, "messages": '[{"role": "user", "content": "row 3"}]', "options": '{"max_tokens": 9}'}
    columns = ("id", "prompt", "messages", "options")
    table = pa.table({name: [row.get(name) for row in given] for name in columns})
    pq.write_table(table, rows)
    with loopback(latency_ms=1) as server:
        report = run(rows, out, server.url)
        assert run(rows, out, server.url).asked == 0

    assert report.done == 20
    assert_every_row_once(out, 20)
    assert write_answers(out, tmp_path / "out.parquet") == 20
    written = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in written] == [f"r{number}" for number in range(20)]
    assert all(row["text"].endswith(f"is {row['index'] ** 2}.") for row in written)
    assert written[0]["input_tokens"] == 20


@pytest.mark.skipif(HERE, reason="pyarrow is installed")
def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path) -> None:
    rows = tmp_path / "in.parquet"
    rows.write_bytes(b"PAR1")
    with pytest.raises(CallerError, match=r"interlingua-bulk\[parquet\]"):
        run(rows, tmp_path / "out.jsonl", "http://127.0.0.1:9/v1")

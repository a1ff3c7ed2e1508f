"""Live: 200 rows through a llama.cpp server on this machine, stopped in the middle and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bulk.support import lines, run, write_rows
from tests.support.counts import FULL
from tests.tools.local_server import files
from tests.tools.local_server.server import MODEL, LocalServer

ABSENT = files.missing()
pytestmark = [pytest.mark.live, pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")]
ROWS = 200 if FULL else 24
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def test_rows_are_answered_by_a_real_server(tmp_path: Path) -> None:
    given = [{"id": f"r{number}", "prompt": f"Say the number {number}."} for number in range(ROWS - 1)]
    given.append({"id": "typed", "prompt": "Give n=3 as JSON.", "output_schema": SCHEMA, "options": {"max_tokens": 30}})
    rows, out = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    options = {"max_tokens": 3, "temperature": 0}
    with LocalServer() as server:
        url, model = f"{server.url}/v1", f"llamacpp:{MODEL}"
        run(rows, out, url, model=model, options=options, concurrency=4)
        kept = out.read_bytes().splitlines(keepends=True)[: ROWS - 8]
        out.write_bytes(b"".join(kept))
        report = run(rows, out, url, model=model, options=options, concurrency=4)

    found = lines(out)
    assert (report.resumed, report.asked, report.done, report.failed) == (ROWS - 8, 8, ROWS, 0)
    assert sorted(line["index"] for line in found) == list(range(ROWS))
    assert all(line["usage"]["output_tokens"] > 0 for line in found)
    assert all(line["cost_usd"] == "0" for line in found), "one's own machine costs nothing"
    (typed,) = [line for line in found if line["id"] == "typed"]
    assert typed["message"]["content"][0]["text"].lstrip().startswith("{")

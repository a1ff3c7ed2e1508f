"""docs/reference/swap-matrix.md and its HTML page say what the code does; `make matrix` writes them.

The whole matrix is made once with INTERLINGUA_FULL=1. Otherwise one side of each wire format is swapped with the others
and the pages are not compared.
"""

from __future__ import annotations

import json
import re

import pytest

from interlingua._plugins.registry import Registry
from interlingua_contract.matrix.grid import Grid, Matrix
from interlingua_contract.matrix.reports import html_page, markdown_page
from interlingua_contract.matrix.sides import sides
from tests.support import counts, tree

REFERENCE = tree.ROOT / "docs" / "reference"
LEAST_KEYS = 8 if counts.FULL else 5
full = pytest.mark.skipif(not counts.FULL, reason=counts.SKIP_REASON)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    found = sides(Registry())
    chosen = found if counts.FULL else list({side.api: side for side in reversed(found)}.values())
    return Grid(chosen, cassettes=tree.ROOT / "cassettes").run()


def test_every_pair_is_green(matrix: Matrix) -> None:
    findings = [
        f"{cell.begun} to {cell.swapped}, {run.history}: {finding}"
        for cell in matrix.cells
        for run in cell.runs
        for finding in run.findings
    ]

    assert not findings, "\n".join(findings[:20])
    assert len({side.partition("/")[0] for side in matrix.sides}) >= LEAST_KEYS
    assert len(matrix.cells) == len(matrix.sides) * (len(matrix.sides) - 1)


@full
@pytest.mark.parametrize(("name", "page"), [("swap-matrix.md", markdown_page), ("swap-matrix.html", html_page)])
def test_the_page_is_current(matrix: Matrix, name: str, page: object) -> None:
    assert callable(page)
    assert (REFERENCE / name).read_text(encoding="utf-8") == page(matrix), "run `make matrix`"


def test_the_html_page_loads_nothing_and_holds_every_ledger_row(matrix: Matrix) -> None:
    text = html_page(matrix)
    data = json.loads(re.search(r"const data = (\{.*\});\n", text)[1])  # type: ignore[index]
    rows = {
        tuple(data["texts"][text] for text in data["rows"][row])
        for *_, runs in data["cells"]
        for run in runs
        for row in data["ledgers"][run[3]]
    }

    assert not re.search(
        r"(src|href)=|https?:|@import|url\(", text.replace(json.dumps(data), "").split("const data")[0]
    )
    assert rows == {
        (loss.path, loss.block_type, loss.verdict, loss.reason)
        for cell in matrix.cells
        for run in cell.runs
        for loss in run.losses
    }

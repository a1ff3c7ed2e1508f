"""The matrix as one HTML page: a cell a pair, its ledger behind it; nothing is loaded from anywhere.

Never runs anything and never reads a clock. The command `matrix` comes in, and the test that holds the page.
Equal ledgers are stored once: most pairs lose the same.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from interlingua.json import dumps
from interlingua.plugins.wire import Loss
from interlingua_contract.matrix.cell import Cell, Run
from interlingua_contract.matrix.grid import Matrix
from interlingua_contract.matrix.markdown_report import totals

_PLACE = "/*DATA*/null"


def html_page(matrix: Matrix) -> str:
    """Return the page, its data inside."""
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    # inside a script element only `</` and `<!` could end it
    return template.replace(_PLACE, dumps(_data(matrix)).decode().replace("<", "\\u003c"))


class _Once:
    """Values by number, each kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def _data(matrix: Matrix) -> dict[str, Any]:
    texts, rows, ledgers = _Once(), _Once(), _Once()

    def ledger(losses: tuple[Loss, ...]) -> int:
        found = [(texts(loss.path), texts(loss.block_type), texts(loss.verdict), texts(loss.reason)) for loss in losses]
        return ledgers(tuple(map(rows, found)))

    def run(one: Run) -> list[Any]:
        models = [texts(model) for model in one.models]
        return [texts(one.history), *models, ledger(one.losses), ledger(one.back), list(one.findings)]

    def cell(one: Cell) -> list[Any]:
        places = matrix.sides.index(one.begun), matrix.sides.index(one.swapped)
        return [*places, list(map(run, one.runs))]

    cells = list(map(cell, matrix.cells))
    return {
        "totals": totals(matrix),
        "sides": matrix.sides,
        "texts": texts.values,
        "rows": rows.values,
        "ledgers": ledgers.values,
        "cells": cells,
    }

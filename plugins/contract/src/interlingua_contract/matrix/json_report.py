"""What came of a matrix, for programs: every cell, its ledgers and what is wrong with it.

Never leaves anything out. The command `matrix` comes in.
The form is plain JSON values.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua_contract.matrix.cell import Cell, Run
from interlingua_contract.matrix.grid import Matrix


def as_json(matrix: Matrix) -> dict[str, Any]:
    """Return everything."""
    return {
        "green": matrix.green,
        "sides": list(matrix.sides),
        "histories": list(matrix.histories),
        "cells": [_cell_json(cell) for cell in matrix.cells],
    }


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "begun": cell.begun,
        "swapped": cell.swapped,
        "green": cell.green,
        "histories": [_run_json(run) for run in cell.runs],
    }


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "name": run.history,
        "models": list(run.models),
        "losses": [attrs.asdict(loss) for loss in run.losses],
        "back": [attrs.asdict(loss) for loss in run.back],
        "findings": list(run.findings),
    }

"""The matrix as a Markdown page, an HTML page and JSON; the same bytes for the same matrix."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import attrs

from interlingua.plugins import Loss, dumps
from interlingua_contract.matrix.crossing import Cell, Run
from interlingua_contract.matrix.grid import Matrix

HTML = "swap-matrix.html"

_HEAD = f"""# The swap matrix

Every history of a shared set is started on one provider, continued on another, and moved back.
Written by `make matrix`; a test holds it to what the code does. [{HTML}]({HTML}) shows the ledger behind each cell.

What a green cell means, for every history and every request:

- The request passes its wire's linter, where the provider ships one.
- Every leaf of the canonical history (text, thinking, signatures, calls with name and arguments, results and their
  error flag, media and where it stands, citations, system role, opaque content) is in the wire as it was, or in the
  ledger, and in exactly one of the two. A row that rewrites stands for one leaf. What is in the wire is found by
  searching the request, not by trusting the ledger. Half a surrogate pair counts as U+FFFD, which is all that JSON
  can hold.
- The last request before the swap is an element prefix, byte by byte, of the one after the return, and so is the
  request that would have been sent without a swap: own ids, signatures and arguments return byte-equal. The fields
  beside the conversation do not change.
- Call ids are within the wire's pattern, no two calls share one, each stands with its call and with its result, and an
  id the provider issued is the one it gets back.

Histories are written by hand, each leaf marked; the ones called *recorded* are made of a provider's own answers in the
cassettes, with all the replay state its adapter keeps. Models are the first of a catalogue that declare most of what a
history needs; `any-model` stands for an empty catalogue.
"""


def totals(matrix: Matrix) -> str:
    """Return the tally in a sentence."""
    green = sum(cell.green for cell in matrix.cells)
    runs = sum(len(cell.runs) for cell in matrix.cells)
    return f"{green} of {len(matrix.cells)} pairs are green, over {runs:,} crossings of {len(matrix.sides)} wires."


def markdown_page(matrix: Matrix) -> str:
    """Return the page."""
    return "\n".join(
        [_HEAD, totals(matrix), "", *_pairs(matrix), *_findings(matrix), *_rows(matrix), *_models(matrix), ""]
    )


def _pairs(matrix: Matrix) -> Iterator[str]:
    yield from ("## Pairs", "")
    yield "Begun on the row, swapped to the column: how many rows the ledger has over the shared set, or `RED`."
    yield from _table_head(matrix)
    for begun in matrix.sides:
        cells = [_cell_text(matrix, begun, swapped) for swapped in matrix.sides]
        yield f"| **{begun}** | {' | '.join(cells)} |"


def _table_head(matrix: Matrix) -> list[str]:
    return ["", f"| | {' | '.join(matrix.sides)} |", f"|---|{'---|' * len(matrix.sides)}"]


def _cell_text(matrix: Matrix, begun: str, swapped: str) -> str:
    cell = matrix.cell(begun, swapped)
    if cell is None:
        return ""
    rows = sum(len(run.losses) for run in cell.runs if run.history in matrix.histories)
    return str(rows) if cell.green else "RED"


def _findings(matrix: Matrix) -> Iterator[str]:
    if not matrix.green:
        yield from ("", "## What is wrong", "", *(f"- {finding}" for finding in matrix.findings))


def _rows(matrix: Matrix) -> Iterator[str]:
    yield from ("", "## What a target loses", "")
    yield "Ledger rows by history, the fewest and the most of any origin."
    yield from _table_head(matrix)
    for history in matrix.histories:
        counts = [_range(matrix, history, side) for side in matrix.sides]
        yield f"| {history} | {' | '.join(counts)} |"


def _range(matrix: Matrix, history: str, side: str) -> str:
    counts = [
        len(run.losses) for cell in matrix.cells if cell.swapped == side for run in cell.runs if run.history == history
    ]
    if not counts:
        return ""
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _models(matrix: Matrix) -> Iterator[str]:
    yield from ("", "## Models", "")
    for side in matrix.sides:
        chosen: dict[str, list[str]] = {}
        for history, model in _models_of(matrix, side):
            chosen.setdefault(model, []).append(history)
        said = [f"`{model}` ({'all' if len(names) == len(matrix.histories) else ', '.join(names)})"
                for model, names in chosen.items()]  # fmt: skip
        yield f"- **{side}**: {'; '.join(said)}"


def _models_of(matrix: Matrix, side: str) -> Iterator[tuple[str, str]]:
    cell = next((cell for cell in matrix.cells if cell.begun == side), None)
    for run in cell.runs if cell is not None else ():
        if run.history in matrix.histories:
            yield run.history, run.models[0]


_PLACE = "/*DATA*/null"


def html_page(matrix: Matrix) -> str:
    """Return the page with its data inside."""
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    # inside a script element only `</` and `<!` could end it
    return template.replace(_PLACE, dumps(_data(matrix)).decode().replace("<", "\\u003c"))


class _Interned:
    """Numbers values, storing each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def _data(matrix: Matrix) -> dict[str, Any]:
    texts, rows, ledgers = _Interned(), _Interned(), _Interned()

    def ledger(losses: tuple[Loss, ...]) -> int:
        found = [(texts(loss.path), texts(loss.block_type), texts(loss.verdict), texts(loss.reason)) for loss in losses]
        return ledgers(tuple(map(rows, found)))

    def run(one: Run) -> list[Any]:
        models = [texts(model) for model in one.models]
        return [texts(one.history), *models, ledger(one.losses), ledger(one.back), list(one.findings)]

    def cell(one: Cell) -> list[Any]:
        places = matrix.sides.index(one.begun), matrix.sides.index(one.swapped)
        return [*places, list(map(run, one.runs))]

    cells = list(map(cell, matrix.cells))  # first: it fills the other lists
    return {
        "totals": totals(matrix),
        "sides": matrix.sides,
        "texts": texts.values,
        "rows": rows.values,
        "ledgers": ledgers.values,
        "cells": cells,
    }


def as_json(matrix: Matrix) -> dict[str, Any]:
    """Return everything."""
    cells = [
        {
            "begun": cell.begun,
            "swapped": cell.swapped,
            "green": cell.green,
            "histories": [{"name": run.history, **attrs.asdict(run, filter=_is_not_name)} for run in cell.runs],
        }
        for cell in matrix.cells
    ]
    return {"green": matrix.green, "sides": list(matrix.sides), "histories": list(matrix.histories), "cells": cells}


def _is_not_name(field: attrs.Attribute[Any], _value: Any) -> bool:
    return field.name != "history"

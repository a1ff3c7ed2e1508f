"""The matrix as a Markdown page, an HTML page and JSON; the same bytes for the same matrix."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import attrs

from interlingua.plugins import Loss, dumps
from interlingua_contract.matrix.crossing import Cell, CrossingRun
from interlingua_contract.matrix.grid import Matrix
from interlingua_contract.matrix.serving import ServedCell

HTML = "swap-matrix.html"

_HEAD = f"""# The swap matrix

Every history of a shared set is started on one provider, continued on another, and moved back.
Written by `make matrix`; a test holds it to what the code does. [{HTML}]({HTML}) shows the ledger behind each cell.

A green cell means, for every history and every request:

- The request passes its wire's linter, where the provider ships one.
- Every leaf of the canonical history (text, thinking, signatures, calls with name and arguments, results and their
  error flag, media and their position, citations, system role, opaque content) is either unchanged in the request or in
  the ledger, never in both. A row that rewrites covers one leaf. The check searches the request; it does not trust the
  ledger. A lone surrogate counts as U+FFFD, because JSON cannot hold it.
- The last request before the swap is an element prefix, byte by byte, of the request after the return, and so is the
  request that would have been sent without a swap: own ids, signatures and arguments return byte-equal. The fields
  beside the conversation do not change.
- Call ids match the wire's pattern, no two calls share one, each appears with its call and with its result, and an id
  that the provider issued returns to it.

Histories are written by hand, with a mark in each leaf; those called *recorded* consist of a provider's own answers in
the cassettes, with all the replay state its plugin keeps. Models are the first of a catalogue that declare most of what
a history needs; `any-model` means an empty catalogue.
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


_SERVED_HEAD = """# What callers of a served API lose

A gateway lets a model of any provider answer callers of another provider's API
([how to](../how-to/serve-agents-with-any-model.md)). Here every history of the [swap matrix](swap-matrix.md) takes that
route: the provider of the row produces its answers, the gateway writes them in the API of the column, the caller sends
them back, and the gateway reads them and writes the next request to the provider. `make matrix` writes this page; a
test compares it with the code.

The first number counts the rows of the ledger when an application calls the provider directly; the number after the
plus counts the rows that the API between them adds. `RED` marks a fault: the request breaks a rule of the provider's
wire, or lacks a leaf of the history although no row reports it. In addition to text and calls, signatures, encrypted
thinking and the provider's own call ids must return unchanged.

Content that a caller's API cannot express, such as audio in Messages, is in no request of its callers and not counted.
Options that only one API has are dropped for other services, each with a row. Content that callers do not send back is
kept in the gateway's store and restored from it.
"""


def served_page(cells: Sequence[ServedCell]) -> str:
    """Return the page of what the callers of served APIs lose with each provider."""
    apis, upstreams = [list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("api", "upstream")]
    found = {(cell.api, cell.upstream): cell for cell in cells}
    table = [f"| | {' | '.join(apis)} |", f"|---|{'---|' * len(apis)}"]
    lines = [_SERVED_HEAD, served_totals(cells), "", "## Rows", "", *table]
    for upstream in upstreams:
        texts = [_served_text(found[api, upstream]) for api in apis]
        lines.append(f"| **{upstream}** | {' | '.join(texts)} |")
    for cell in cells:
        lines += [f"- {cell.api}, {cell.upstream}, {run.history}: {text}" for run in cell.runs for text in run.findings]
    for api in apis:
        lines += ["", f"## What {api} adds", ""]
        lines += _reasons(_by_reason((cell, "added") for cell in cells if cell.api == api), upstreams) or ["Nothing."]
    lines += ["", "## What a provider does not take", "", "Whatever API, or none, is between.", ""]
    lines += _reasons(_by_reason((cell, "direct") for cell in cells if cell.api == apis[0]), upstreams)
    return "\n".join([*lines, ""])


def served_totals(cells: Sequence[ServedCell]) -> str:
    """Return the tally in a sentence."""
    green = sum(cell.green for cell in cells)
    runs = sum(len(cell.runs) for cell in cells)
    return f"{green} of {len(cells)} pairs of an API and a provider are green, over {runs:,} histories."


def _served_text(cell: ServedCell) -> str:
    direct, added = [sum(len(getattr(run, name)) for run in cell.runs) for name in ("direct", "added")]
    return f"{direct} + {added}" if cell.green else "RED"


_Reason = tuple[str, str, str]
_ISSUED = re.compile(r"\bcall \S+ of")  # a reason with the id of a call, which is another one for each provider


def _by_reason(cells: Iterable[tuple[ServedCell, str]]) -> dict[_Reason, tuple[list[str], list[str]]]:
    """Return for each reason its histories and providers, in order."""
    found: defaultdict[_Reason, tuple[dict[str, None], dict[str, None]]] = defaultdict(lambda: ({}, {}))
    for cell, name in cells:
        for run in cell.runs:
            for loss in getattr(run, name):
                reason = _ISSUED.sub("call … of", loss.reason)
                histories, upstreams = found[loss.block_type, loss.verdict, reason]
                histories[run.history] = upstreams[cell.upstream] = None
    return {reason: (list(histories), list(upstreams)) for reason, (histories, upstreams) in sorted(found.items())}


def _reasons(rows: dict[_Reason, tuple[list[str], list[str]]], every: Sequence[str]) -> list[str]:
    if not rows:
        return []
    lines = ["| | why | histories | providers |", "|---|---|---|---|"]
    for (kind, verdict, reason), (histories, upstreams) in rows.items():
        who, missing = ", ".join(upstreams), [name for name in every if name not in upstreams]
        if len(missing) < len(upstreams):
            who = f"all but {', '.join(missing)}" if missing else "all"
        lines.append(f"| {kind} {verdict} | {reason} | {'; '.join(histories)} | {who} |")
    return lines


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

    def run(one: CrossingRun) -> list[Any]:
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


def as_json(matrix: Matrix, served: Sequence[ServedCell] = ()) -> dict[str, Any]:
    """Return everything."""
    cells = [{"begun": cell.begun, "swapped": cell.swapped, **_runs_as_json(cell)} for cell in matrix.cells]
    facts = {"green": matrix.green, "sides": list(matrix.sides), "histories": list(matrix.histories), "cells": cells}
    if served:
        facts["served"] = [{"api": cell.api, "upstream": cell.upstream, **_runs_as_json(cell)} for cell in served]
    return facts


def _runs_as_json(cell: Cell | ServedCell) -> dict[str, Any]:
    runs: Sequence[Any] = cell.runs
    histories = [{"name": run.history, **attrs.asdict(run, filter=_is_not_name)} for run in runs]
    return {"green": cell.green, "histories": histories}


def _is_not_name(field: attrs.Attribute[Any], _value: Any) -> bool:
    return field.name != "history"

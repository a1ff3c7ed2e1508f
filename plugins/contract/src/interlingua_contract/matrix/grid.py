"""The whole matrix: every history of every side swapped to every other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from interlingua_contract.guard import silence_log
from interlingua_contract.matrix.crossing import Cell, Crossing, CrossingRun
from interlingua_contract.matrix.histories import HISTORIES, History, Script
from interlingua_contract.matrix.recorded import recorded_histories
from interlingua_contract.matrix.sides import Side, Speaker

Progress = Callable[[Cell], None]


@attrs.frozen(kw_only=True)
class Matrix:
    """The result: a cell for each ordered pair of two different sides; sides and the shared histories by name."""

    sides: tuple[str, ...]
    histories: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def green(self) -> bool:
        """True if every cell is green."""
        return all(cell.green for cell in self.cells)

    @property
    def findings(self) -> list[str]:
        """The failures, each with its pair and history."""
        return [
            f"{cell.begun} to {cell.swapped}, {run.history}: {finding}"
            for cell in self.cells
            for run in cell.runs
            for finding in run.findings
        ]

    def cell(self, begun: str, swapped: str) -> Cell | None:
        """Return the cell of a pair."""
        return next((cell for cell in self.cells if (cell.begun, cell.swapped) == (begun, swapped)), None)


class Grid:
    """Makes a matrix, of the shared histories and of recorded answers where a folder of cassettes is given."""

    def __init__(
        self, sides: Sequence[Side], histories: Sequence[History] = HISTORIES, cassettes: Path | None = None
    ) -> None:
        self.sides, self.histories, self.cassettes = tuple(sides), tuple(histories), cassettes

    def run(self, progress: Progress = lambda _cell: None) -> Matrix:
        """Make the matrix; every cell is reported as soon as it is done."""
        cells = []
        with silence_log():
            for a in self.sides:
                begun = list(self._begun(a))
                for b in self.sides:
                    if b is not a:
                        cells.append(Cell(begun=a.name, swapped=b.name, runs=tuple(_runs(begun, b))))
                        progress(cells[-1])
        names = tuple(history.name for history in self.histories)
        return Matrix(sides=tuple(side.name for side in self.sides), histories=names, cells=tuple(cells))

    def _begun(self, a: Side) -> Iterator[tuple[tuple[str, ...], Crossing]]:
        for history in self.histories:
            script, speaker = Script(), Speaker(side=a, model=a.model_for(history.needs))
            history.write(script, speaker)
            yield history.needs, Crossing(history.name, script, speaker)
        for name, written, speaker in recorded_histories(a, self.cassettes):
            yield ("supports_tools",), Crossing(name, written, speaker)


def _runs(begun: Sequence[tuple[tuple[str, ...], Crossing]], b: Side) -> Iterator[CrossingRun]:
    for needs, crossing in begun:
        yield crossing.run(Speaker(side=b, model=b.model_for(needs)))

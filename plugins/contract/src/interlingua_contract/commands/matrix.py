"""`matrix`: every installed provider swapped with every other, over a shared set of histories.

Never reaches the network. The command group comes in.
Pages are written when all is done, each whole or not at all, so a run that is stopped leaves the old ones.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from interlingua_cli.input import write_file
from interlingua_cli.output import json_option, make_console, print_json, print_table
from interlingua_cli.state import State, plugin_option
from interlingua_contract.matrix.cell import Cell
from interlingua_contract.matrix.grid import Grid, Matrix
from interlingua_contract.matrix.html_report import html_page
from interlingua_contract.matrix.json_report import as_json as matrix_json
from interlingua_contract.matrix.markdown_report import HTML, PAGE, markdown_page, totals
from interlingua_contract.matrix.sides import sides

_SHOWN = 30


@click.command("matrix")
@click.option("--only", metavar="A,B", help="Only these providers (KEY) or wires (KEY/API); at least two wires.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help=f"Write {PAGE} and {HTML} there."
)
@click.option(
    "--cassettes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Recorded answers, a folder per provider; by default cassettes, where there is one.",
)
@json_option
@plugin_option
@click.pass_obj
def command(state: State, only: str | None, out: Path | None, cassettes: Path | None, as_json: bool) -> None:
    """Swap histories between all installed providers and back.

    Every pair is checked: linter, loss ledger against the wire, prefix, ids. Nothing is sent. Exit code 1 if a pair is
    red.
    """
    found = sides(state.registry, filter(None, (only or "").split(",")))
    if len(found) < 2:
        raise click.BadParameter("a swap takes two wires", param_hint="--only")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # before the work: what cannot be written is told at once
    grid = Grid(found, cassettes=cassettes or _usual())
    with _progress(len(found) * (len(found) - 1)) as progress:
        matrix = grid.run(progress)
    if out is not None:
        for name, text in ((PAGE, markdown_page(matrix)), (HTML, html_page(matrix))):
            write_file(out / name, text)
            (out / name).chmod(0o644)  # a page is for everybody, unlike a conversation
    print_json(matrix_json(matrix)) if as_json else _print(matrix)
    sys.exit(0 if matrix.green else 1)


def _usual() -> Path | None:
    folder = Path("cassettes")
    return folder if folder.is_dir() else None


@contextlib.contextmanager
def _progress(pairs: int) -> Iterator[Callable[[Cell], None]]:
    if not sys.stderr.isatty():
        yield lambda cell: None if cell.green else click.echo(f"red: {cell.begun} to {cell.swapped}", err=True)
        return
    from rich.progress import Progress as Bar  # noqa: PLC0415  only for a person

    with Bar(console=make_console(err=True), transient=True) as bar:
        task = bar.add_task("pairs", total=pairs)
        yield lambda cell: bar.update(task, advance=1, description=f"{cell.begun} to {cell.swapped}")


def _print(matrix: Matrix) -> None:
    rows = []
    for side in matrix.sides:
        cells = [cell for cell in matrix.cells if cell.begun == side]
        lost = sum(len(run.losses) for cell in cells for run in cell.runs)
        rows.append((side, sum(cell.green for cell in cells), sum(not cell.green for cell in cells), lost))
    print_table(("begun on", "green", "red", "ledger rows"), rows)
    findings = [
        f"{cell.begun} to {cell.swapped}, {run.history}: {finding}"
        for cell in matrix.cells
        for run in cell.runs
        for finding in run.findings
    ]
    for finding in findings[:_SHOWN]:
        click.echo(finding)
    if len(findings) > _SHOWN:
        click.echo(f"... and {len(findings) - _SHOWN} more (--json lists all)")
    click.echo(totals(matrix))

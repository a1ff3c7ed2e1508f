"""The input of `bulk run` and `bulk submit`: its argument and options, and how it becomes JSON Lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from interlingua.errors import CallerError
from interlingua_bulk.tables import FORMATS, RowTemplate, prepare_input, read_table

rows_argument = click.argument("rows", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))

force_option = click.option(
    "--force", is_flag=True, help="Continue although input, model or options are not those of the output."
)


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how the input becomes requests."""
    options = (
        click.option("--format", "form", type=click.Choice(FORMATS), help="Of the input; the default is its suffix's."),
        click.option("--prompt", metavar="TEMPLATE",
                     help="Prompt of each row: 'Summarise {text}' inserts the column text; @FILE reads the template."),
        click.option("--system", metavar="TEMPLATE", help="System message of each row, in the same form."),
        click.option("--id", "id_column", metavar="COLUMN", help="Column with the ids; default: id, if it exists."),
        click.option("--keep", multiple=True, metavar="COLUMN",
                     help="Return only this column with the answers; may be repeated. The default is all."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def prepare_rows(
    rows: Path, out: Path, form: str | None, prompt: str | None, system: str | None, id_column: str | None,
    keep: Sequence[str],
) -> Path:  # fmt: skip
    """Return the input as a file of JSON Lines; `-` is standard input."""
    template = RowTemplate(_read_template(prompt), _read_template(system), id_column, tuple(keep) or None)
    if str(rows) != "-":
        return prepare_input(rows, out, template, form=form)
    return prepare_input(read_table(sys.stdin.buffer, template, form=form), out)


def _read_template(given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"the template {given[1:]} cannot be read: {error}") from None

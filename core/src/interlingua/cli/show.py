"""What commands print: JSON for programs, tables for a person.

Never mixes the two on stdout, and loads rich only for a table.
The commands come in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import click

from interlingua.jsontext import scrub
from interlingua.wire import Loss

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
_WIDE = 200  # columns where nobody's terminal limits them
_LEDGER = ("path", "block", "verdict", "reason")


def print_json(value: Any) -> None:
    """Print a value as indented JSON; exact money stays exact, as a string."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    click.echo(scrub(text))


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line; None is left out."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            click.echo(f"{name:<{width}}  {value:f}" if isinstance(value, Decimal) else f"{name:<{width}}  {value}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, err: bool = False) -> None:
    """Print a table; None is an empty cell."""
    from rich import box  # noqa: PLC0415  not free to import
    from rich.table import Table  # noqa: PLC0415

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, highlight=False)
    for row in rows:
        table.add_row(*["" if cell is None else _escaped(cell) for cell in row])
    console(err=err).print(table)


def _escaped(cell: Any) -> str:
    from rich.markup import escape  # noqa: PLC0415

    return escape(f"{cell:,}" if type(cell) is int else scrub(str(cell)))


def console(*, err: bool = False) -> Any:
    """Return a rich console on stdout or stderr."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if err else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else _WIDE, soft_wrap=False)


def losses_json(losses: Iterable[Loss]) -> list[dict[str, Any]]:
    """Return ledger rows as JSON objects."""
    return [attrs.asdict(loss) for loss in losses]


def print_ledger(losses: Sequence[Loss], *, err: bool = False) -> None:
    """Print the loss ledger as a table, or that it is empty."""
    if not losses:
        click.echo("nothing is lost", err=err)
        return
    print_table(_LEDGER, [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in losses], err=err)

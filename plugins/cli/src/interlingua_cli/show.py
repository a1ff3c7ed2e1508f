"""What commands print: JSON for programs, tables for a person.

Never mixes the two on stdout, and loads rich only for a table.
The commands come in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TextIO
from urllib.parse import urlsplit, urlunsplit

import attrs
import click

from interlingua.json import replace_lone_surrogates
from interlingua.plugins.wire import Loss
from interlingua_cli.stdio import shown, writes_all

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


_WIDE = 200  # columns where nobody's terminal limits them


_GAP = 3  # columns between a table's cells


_LONG_WORD = 24  # columns; a longer word may be broken


_LEDGER = ("path", "block", "verdict", "reason")


def print_json(value: Any) -> None:
    """Print a value as indented JSON; exact money stays exact, as a string."""
    text = json.dumps(value, ensure_ascii=not writes_all(sys.stdout), indent=2, default=_plain)
    click.echo(replace_lone_surrogates(text))


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_facts(facts: Mapping[str, Any], *, err: bool = False) -> None:
    """Print names and values, one a line; None is left out."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            text = f"{value:f}" if isinstance(value, Decimal) else value
            click.echo(f"{name:<{width}}  {text}", err=err)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, err: bool = False, spare: Sequence[str] = ()
) -> None:
    """Print a table; None is an empty cell.

    Where the terminal is too narrow for it, spare columns are left out, the last first; then each row becomes a block
    of lines. Nothing is cut off.

    Args:
        columns: the headings.
        rows: a cell per column.
        err: on stderr.
        spare: headings of columns that a narrow terminal may do without.
    """
    out = console(err=err)
    lines = [["" if cell is None else _text(cell, out.file) for cell in row] for row in rows]
    kept = list(range(len(columns)))
    left_out = [columns.index(name) for name in spare]
    while not (fits := _narrowest(columns, lines, kept) <= out.width) and left_out:
        kept.remove(left_out.pop())
    if fits:
        out.print(_table([columns[at] for at in kept], [[line[at] for at in kept] for line in lines]))
        return
    for line in lines:
        facts = dict(zip(columns, line, strict=True))
        print_facts({name: cell or None for name, cell in facts.items()}, err=err)
        click.echo(err=err)


def _narrowest(columns: Sequence[str], lines: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    """Return how wide a table is at least, when cells break at spaces and in words longer than `_LONG_WORD`."""
    words = [max((len(word) for line in (columns, *lines) for word in line[at].split()), default=0) for at in kept]
    return sum(min(word, _LONG_WORD) + _GAP for word in words)


def _table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> Any:
    from rich import box  # noqa: PLC0415  not free to import
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, highlight=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*map(escape, line))
    return table


def _text(cell: Any, stream: TextIO) -> str:
    return f"{cell:,}" if type(cell) is int else shown(str(cell), stream)


def console(*, err: bool = False) -> Any:
    """Return a rich console on stdout or stderr."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if err else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else _WIDE, soft_wrap=False)


def without_credentials(url: str) -> str:
    """Return an address with what stands before its host masked: it may hold a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "no valid address"
    host = parts.netloc.rpartition("@")[2]
    return url if host == parts.netloc else urlunsplit(parts._replace(netloc=f"***@{host}"))


def losses_json(losses: Iterable[Loss]) -> list[dict[str, Any]]:
    """Return ledger rows as JSON objects."""
    return [attrs.asdict(loss) for loss in losses]


def print_ledger(losses: Sequence[Loss], *, err: bool = False) -> None:
    """Print the loss ledger as a table, or that it is empty."""
    if not losses:
        click.echo("nothing is lost", err=err)
        return
    print_table(_LEDGER, [(loss.path, loss.block_type, loss.verdict, loss.reason) for loss in losses], err=err)

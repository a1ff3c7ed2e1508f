"""`session search`: messages of all stored sessions by their words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime

import attrs
import click

from interlingua_cli.context import plugin_option
from interlingua_cli.output import json_option, print_json
from interlingua_cli.streams import escape_controls
from interlingua_sessions.commands.shared import complete_sessions, shown, store_at, store_option

_WORTH_A_BAR = 400  # sessions or files


@click.command("search")
@click.argument("text")
@click.option("--session", "session_id", metavar="SESSION", shell_complete=complete_sessions, help="Only this session.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number of results.")
@store_option
@json_option
@plugin_option
def search_command(text: str, session_id: str | None, limit: int, place: str | None, as_json: bool) -> None:
    """Search the messages of all sessions.

    A message is found if it holds all words of TEXT, in any case; "words in quotes" must follow each other. A word of
    three letters or more is also found as the beginning of a longer one. The first search makes an index in the store,
    which continues after an interruption.
    """
    with store_at(place) as store, indexing() as progress:
        found = store.search(text, session_id=session_id, limit=limit, progress=progress)
    if as_json:
        print_json([{**attrs.asdict(one), "created_at": one.created_at.isoformat()} for one in found])
        return
    print_found([(one.created_at, one.session_id, one.role, one.model, one.line) for one in found])


@contextmanager
def indexing() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows a bar, if there is much to index, at its first call."""
    with ExitStack() as stack:
        bars: list[Callable[[int], None] | None] = []
        reached = 0

        def progress(done: int, total: int) -> None:
            nonlocal reached
            if total < _WORTH_A_BAR:
                return
            if not bars:
                bars.append(stack.enter_context(shown("indexed", total)))
            if bars[0] is not None and done > reached:
                bars[0](done - reached)
            reached = done

        yield progress


def print_found(found: Sequence[tuple[datetime, str, str, str | None, str]]) -> None:
    """Print each place with its date, role and model, and the line under it."""
    for made, place, role, model, line in found:
        by = f"{role} ({model})" if model else role
        click.echo(escape_controls(f"{made:%Y-%m-%d %H:%M}  {place}  {by}", sys.stdout))
        click.echo(f"    {escape_controls(line, sys.stdout)}")
    if not found:
        click.echo("nothing is found", err=True)

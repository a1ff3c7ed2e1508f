"""Warnings of a run, one line each on stderr.

Never decides what is worth a warning: the library logs them. The group comes in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from interlingua_cli.state import State

_log = logging.getLogger("interlingua")


class _Warnings(logging.Handler):
    def __init__(self, state: State) -> None:
        super().__init__(logging.WARNING)
        self._state = state

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning; what a command says itself is left to it: ledger rows, models of no catalogue."""
        from interlingua_cli.answer import end_line  # noqa: PLC0415  help needs it not

        told = isinstance(record.args, tuple) and ":".join(map(str, record.args)) in self._state.models_told
        if not (told or (self._state.ledger_shown and hasattr(record, "block_type"))):
            end_line()
            click.echo(f"warning: {record.getMessage()}", err=True)


@contextmanager
def warnings_shown(state: State) -> Iterator[None]:
    """Print what is logged as a warning while this lasts."""
    handler = _Warnings(state)
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)

"""Where the command line keeps sessions, and opening them there.

Never guesses between several places: the option, then the variable, then one default. The commands come in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from interlingua.http.client import Client
from interlingua_sessions.session import Session
from interlingua_sessions.store import SessionNotFound, Store, open_store

VARIABLE = "INTERLINGUA_SESSIONS"

store_option = click.option(
    "--store",
    "place",
    metavar="PLACE",
    envvar=VARIABLE,
    help=f"File or postgresql:// URL of the store; else ${VARIABLE}, else sessions.db in the user's data folder.",
)
"""The option `--store`."""


def default_place(environ: Mapping[str, str]) -> Path:
    """Return where sessions are kept when nobody says: the user's data folder."""
    folder = environ.get("XDG_DATA_HOME")
    return (Path(folder) if folder else Path("~/.local/share").expanduser()) / "interlingua" / "sessions.db"


def store_at(place: str | None) -> Store:
    """Open the store of this run, making its folder where it is the default one."""
    if place is not None:
        if "://" in place and not place.startswith(("postgresql://", "postgres://")):
            raise click.UsageError(f"a store is a file or a postgresql:// URL, not {place.partition('://')[0]}://")
        return open_store(place)
    path = default_place(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    return open_store(path)


def session_in(store: Store, session_id: str, client: Client, *, system: str | None) -> Session:
    """Open a session for talking; a new one is said to be new, so that a mistyped id is seen.

    Raises:
        click.UsageError: there is none, and nobody is named who would answer in a new one.
    """
    try:
        store.session(session_id)
    except SessionNotFound as error:
        if client.model is None:
            raise click.UsageError(f"there is no session {session_id!r}; to begin it, name a model, too") from error
        click.echo(f"(new session {session_id})", err=True)
    return Session.open(store, session_id, client=client, system=system, workspace=str(Path.cwd()))

"""Where the command line keeps sessions, and progress bars for long work on them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.types import Role
from interlingua_cli.config import data_folder
from interlingua_cli.context import CommandContext
from interlingua_cli.output import mask_credentials
from interlingua_sessions.store.schema import EntryKind, SessionNotFoundError

if TYPE_CHECKING:
    from interlingua import Client
    from interlingua_sessions.session import Session
    from interlingua_sessions.store import Store

_COMPLETED = 50  # sessions
VARIABLE = "INTERLINGUA_SESSIONS"

store_option = click.option(
    "--store",
    "place",
    metavar="PLACE",
    envvar=VARIABLE,
    help=f"File or postgresql:// URL of the store; else ${VARIABLE}, else sessions.db in the user's data folder.",
)
"""The option `--store`."""


def complete_sessions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return ids of sessions that begin like this, the latest used first."""
    with store_at(ctx.params.get("place")) as store:
        return [one.id for one in store.sessions() if one.id.startswith(incomplete)][:_COMPLETED]


def store_at(place: str | None) -> Store:
    """Open the store of this run; the default is in the user's data folder, which is created if needed."""
    if place is not None:
        if "://" in place and not place.startswith(("postgresql://", "postgres://")):
            raise click.UsageError(f"a store is a file or a postgresql:// URL, not {place.partition('://')[0]}://")
        return open_private(place)
    path = default_place()
    path.parent.mkdir(parents=True, exist_ok=True)
    store = open_private(path)
    if path.stat().st_mode & 0o077:  # an earlier version made it
        path.chmod(0o600)
    return store


def default_place() -> Path:
    """Return the file of the user's own store."""
    return data_folder(os.environ) / "sessions.db"


def open_private(place: str | Path) -> Store:
    """Open a store; a new file, and the files that SQLite creates with it, are readable by the owner alone."""
    if "://" not in str(place):
        with suppress(OSError):  # it exists or cannot be created: opening it reports that
            os.close(os.open(place, os.O_CREAT | os.O_EXCL, 0o600))
    from interlingua_sessions.store import open_store  # noqa: PLC0415  some commands need no store

    return open_store(place)


def session_client(
    context: CommandContext, store: Store, session_id: str, model: str | None, url: str | None
) -> Client:
    """Make the client of a session, for `model`, or else for the session's model, at `url` or the session's last URL.

    Raises:
        click.UsageError: a URL is set, but no model whose provider it could belong to.
    """
    if model is None:
        with suppress(SessionNotFoundError):
            model = model_of(store, session_id)
    if model is None and url is not None:
        raise click.UsageError("--url is the address of a model's provider: set the model, too")
    name = model or context.config.default_model
    if name is not None:
        url = url or _url_before(store, session_id, context.registry.resolve(name).provider)
    return context.client(name, url)


def _url_before(store: Store, session_id: str, provider: str) -> str | None:
    """Return the URL of the session's last question, if it belongs to this provider."""
    with suppress(SessionNotFoundError):
        kept = arguments_before(store, session_id)
        return kept.get("url") if kept.get("provider") == provider else None
    return None


def keep_url(context: CommandContext, store: Store, session_id: str, model: str, url: str) -> None:
    """Store the URL for the next questions, unless it may hold a password."""
    kept = arguments_before(store, session_id)
    changed = {**kept, "url": url, "provider": context.registry.resolve(model).provider}
    if kept != changed and mask_credentials(url) == url:
        store.append_entry(session_id, EntryKind.CUSTOM, custom_type=ARGUMENTS, data=changed)


def model_of(store: Store, session_id: str) -> str | None:
    """Return the model that a session was switched to, else the model of its first answer, else None.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    switched = store.session(session_id).active_model
    answers = (message for message in store.messages(session_id) if message.role is Role.ASSISTANT)
    return switched or next((message.metadata.model for message in answers if message.metadata.model), None)


ARGUMENTS = "send-arguments"  # custom type of the entry that holds the arguments of the questions after it


def arguments_before(store: Store, session_id: str, message_id: str | None = None) -> Mapping[str, Any]:
    """Return the arguments with which `send` or `chat` asked a question, by default the last; empty if unknown."""
    found = [entry for entry in store.entries(session_id, EntryKind.CUSTOM) if entry.custom_type == ARGUMENTS]
    if message_id is not None:
        found = [entry for entry in found if (entry.after or "") < message_id]
    return found[-1].data if found else {}


def session_in(
    context: CommandContext, store: Store, session_id: str, client: Client, *, system: str | None
) -> Session:
    """Open a session for a conversation; reports a new session, so that a mistyped id is noticed.

    Raises:
        click.UsageError: the session does not exist, and no model is set for a new one.
    """
    from interlingua_sessions.session import Session  # noqa: PLC0415  it loads the client, which many commands do not need

    try:
        store.session(session_id)
    except SessionNotFoundError as error:
        if client.model is None:
            how = f"to create it, set a model. {context.describe_models()}."
            raise click.UsageError(f"there is no session {session_id!r}; {how}") from error
        click.echo(f"(new session {session_id})", err=True)
    return Session.open(store, session_id, client=client, system=system, workspace=str(Path.cwd()))


_WORTH_A_BAR = 1000
"""Fewer messages are done before a person could read a progress bar."""


@contextmanager
def shown(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar; yields a function to be called with every step, or None if no bar is shown.

    Args:
        what: the work, in words.
        total: number of steps.
    """
    if not _seen():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  only for a person
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def over_messages(what: str, store: Store, session_id: str | None) -> Iterator[Callable[[int], None] | None]:
    """Show a bar over the messages of a session, or of all; as `shown`, and none for a few messages."""
    sessions = [session_id] if session_id is not None else [one.id for one in store.sessions()]
    total = sum(map(store.count_messages, sessions)) if _seen() else 0
    if total < _WORTH_A_BAR:
        yield None
        return
    with shown(what, total) as advance:
        yield advance


def _seen() -> bool:
    return sys.stderr.isatty()

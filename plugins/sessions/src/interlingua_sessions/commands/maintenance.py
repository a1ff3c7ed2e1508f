"""`session reprice`, `verify`, `backup`, `export` and `import`: care of stored sessions, and sessions as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import click

from interlingua.codec import dumps_message
from interlingua.plugins import ModelInfo
from interlingua.types import ModelId
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.foreign import SESSION_EXPORT, refuse_foreign
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_sessions.commands.shared import (
    complete_sessions,
    default_place,
    over_messages,
    shown,
    store_at,
    store_option,
)
from interlingua_sessions.compaction import build_context
from interlingua_sessions.store import Repriced, SessionExistsError, StoreFinding
from interlingua_sessions.store.repair import repair_store

_STANDARD = Path("-")


@click.command("reprice")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("--at", type=click.DateTime(("%Y-%m-%d",)), help="Prices of this day instead of each message's own.")
@store_option
@json_option
@plugin_option
@click.pass_obj
def reprice_command(
    context: CommandContext, session: str | None, at: datetime | None, place: str | None, as_json: bool
) -> None:
    """Price stored answers again, from today's catalogues.

    Each change is stored as it is printed, beside what it was before; Ctrl-C loses nothing.
    """

    @cache
    def lookup(model: str) -> ModelInfo | None:
        asked: ModelId = context.registry.resolve(model)
        if asked.provider not in context.registry.found():
            return None
        return context.registry.provider(asked.provider).model(asked.name)

    with store_at(place) as store:
        if session is not None:
            store.session(session)
        with over_messages("looked at", store, session) as progress:
            changed = list(store.reprice(lookup, session_id=session, at=at, progress=progress))
    if as_json:
        print_json([_as_json(one) for one in changed])
        return
    rows = [(one.session_id, one.message_id, one.old.cost_usd, one.new.cost_usd, one.new.pricing_version)
            for one in changed]  # fmt: skip
    print_table(("session", "message", "old USD", "new USD", "prices of"), rows)
    total = sum(((one.new.cost_usd or Decimal(0)) - (one.old.cost_usd or Decimal(0)) for one in changed), Decimal(0))
    click.echo(f"{len(changed):,} repriced, {total:+f} USD", err=True)


def _as_json(one: Repriced) -> dict[str, Any]:
    usages = {name: attrs.asdict(getattr(one, name)) for name in ("old", "new")}
    return {**attrs.asdict(one, recurse=False), **usages, "repriced_at": one.repriced_at.isoformat()}


@click.command("verify")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option(
    "--repair",
    "new",
    type=click.Path(path_type=Path),
    metavar="NEW",
    help="Write a new store with all that can be read of a damaged file, and list what cannot.",
)
@store_option
@json_option
@plugin_option
@click.pass_context
def verify_command(ctx: click.Context, session: str | None, new: Path | None, place: str | None, as_json: bool) -> None:
    """Check stored sessions for faults.

    Exit code 1 when something is wrong that sending would not repair. With --repair the store itself is not changed: a
    damaged page of the file loses the messages on it, and everything else is in the new store.
    """
    if new is not None:
        if session is not None:
            raise click.UsageError("--repair writes all sessions: leave SESSION out")
        findings = _repair(place, new)
    else:
        with store_at(place) as store:
            if session is not None:
                store.session(session)
            with over_messages("verified", store, session) as progress:
                findings = list(store.verify(session, progress=progress))
    if as_json:
        print_json([attrs.asdict(finding) for finding in findings])
    elif findings:
        rows = [(one.session_id, one.message_id, one.check, one.message, "repairable" if one.repairable else "broken")
                for one in findings]  # fmt: skip
        print_table(("session", "message", "check", "what is wrong", ""), rows)
    else:
        click.echo("nothing is wrong" if new is None else "nothing is lost")
    if any(not finding.repairable for finding in findings):
        ctx.exit(1)


def _repair(place: str | None, new: Path) -> list[StoreFinding]:
    damaged = Path(place) if place is not None and "://" not in place else place or default_place()
    pages = damaged.stat().st_size // 4096 if isinstance(damaged, Path) and damaged.is_file() else 0
    with shown("pages read", pages) as progress:
        findings = list(repair_store(damaged, new, progress))
    with store_at(str(new)) as store:
        sessions = [one.id for one in store.sessions()]
        messages = sum(map(store.count_messages, sessions))
    click.echo(f"{messages:,} messages of {len(sessions):,} sessions are in {new}", err=True)
    return findings


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@store_option
@plugin_option
def backup_command(file: Path, place: str | None) -> None:
    """Copy the whole store to a new file.

    Of a SQLite store, as it is at one moment; others may write meanwhile. PostgreSQL has pg_dump.
    """
    with store_at(place) as store:
        store.backup(file)
    click.echo(f"{file.stat().st_size:,} bytes in {file}", err=True)


@click.command("export")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--context", is_flag=True, help="Write what a model is sent of it, as a plain conversation.")
@store_option
@plugin_option
def export_command(session: str, file: Path, force: bool, context: bool, place: str | None) -> None:
    """Write a session to a JSON Lines file.

    FILE - is standard output. With --context it is a conversation as `explain`, `wire` and `doctor` read it; without,
    all that is stored, which `session import` reads.
    """
    if file != _STANDARD and file.exists() and not force:
        raise click.UsageError(f"{file} already exists: --force overwrites it")
    with store_at(place) as store:
        if context:
            store.session(session)
            sent = build_context(list(store.messages(session)), store.entries(session))
            with click.open_file(str(file), "wb", atomic=file != _STANDARD) as out:
                out.writelines(f"{dumps_message(message)}\n".encode() for message in sent)
            return
        if file == _STANDARD:
            for line in store.export_lines(session):
                click.echo(line.encode() + b"\n", nl=False)  # UTF-8, whatever the terminal
            return
        with over_messages("exported", store, session) as progress:
            lines = store.export_jsonl(session, file, progress=progress)
    click.echo(f"{lines:,} lines in {file}", err=True)


@contextmanager
def _naming_the_option() -> Iterator[None]:
    """Add the option that sets another id to the error of an id that exists."""
    try:
        yield
    except SessionExistsError as error:
        raise SessionExistsError(
            str(error).replace("choose another id", "choose another id with --id SESSION")
        ) from error


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--id", "session_id", metavar="SESSION", help="Id of the new session, instead of the file's own.")
@store_option
@plugin_option
def import_command(file: Path, session_id: str | None, place: str | None) -> None:
    """Create a session from a JSON Lines file.

    An export, or lines of canonical messages; FILE - is standard input. All of it is stored or nothing.
    """
    with store_at(place) as store, _naming_the_option():
        if file == _STANDARD:
            lines = list(sys.stdin.buffer)
            refuse_foreign(lines, "standard input", allowed=SESSION_EXPORT)
            record = store.import_lines(lines, session_id)
        else:
            with file.open("rb") as opened:
                refuse_foreign(list(opened), str(file), allowed=SESSION_EXPORT)
            with shown("imported", file.stat().st_size) as progress:
                record = store.import_jsonl(file, session_id, progress=progress)
        count = store.count_messages(record.id)
    click.echo(record.id)
    click.echo(f"{count:,} messages", err=True)

"""`session export` and `session import`: a session as a JSON Lines file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interlingua.codec import dumps_message
from interlingua_cli.state import plugin_option
from interlingua_sessions.commands.shared import over_messages, shown, store_at, store_option
from interlingua_sessions.compaction import build_context

_STANDARD = Path("-")


@click.command("export")
@click.argument("session")
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
        raise click.UsageError(f"{file} is there already: --force writes over it")
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


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--id", "session_id", metavar="SESSION", help="Id of the new session, instead of the file's own.")
@store_option
@plugin_option
def import_command(file: Path, session_id: str | None, place: str | None) -> None:
    """Make a session of a JSON Lines file.

    An export, or lines of canonical messages; FILE - is standard input. All of it is stored or nothing.
    """
    with store_at(place) as store:
        if file == _STANDARD:
            record = store.import_lines(sys.stdin.buffer, session_id)
        else:
            with shown("imported", file.stat().st_size) as progress:
                record = store.import_jsonl(file, session_id, progress=progress)
        count = store.count_messages(record.id)
    click.echo(record.id)
    click.echo(f"{count:,} messages", err=True)

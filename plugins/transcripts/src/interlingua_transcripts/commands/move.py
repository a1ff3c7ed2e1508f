"""`transcript convert`: a session in another system's format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interlingua_cli.state import plugin_option
from interlingua_transcripts.commands.shared import (
    over_files,
    read_session,
    redact_option,
    session_files,
    source_argument,
    system_option,
    why_unread,
    write_session,
)
from interlingua_transcripts.files import write_transcript
from interlingua_transcripts.system import system_of


@click.command("convert")
@source_argument
@system_option("--to", "target", required=True, text="The system it is written for; its own rewrites it.")
@system_option("--system", text="Whose file it is; found out by its content where this is not given.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write, or the folder where SRC is a folder.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@redact_option
@plugin_option
@click.pass_context
def convert_command(
    ctx: click.Context, source: Path, target: str, system: str | None, out: Path | None, force: bool, redact: bool
) -> None:
    """Write a session in another system's format, to stdout or into a file.

    `interlingua transcript fidelity SRC --to SYSTEM` says first what it cannot hold.
    """
    if not source.is_dir():
        data = write_transcript(read_session(source, system, redact=redact), target)
        if out is None:
            sys.stdout.buffer.write(data)
        else:
            write_session(out / f"{source.stem}{system_of(target).suffix}" if out.is_dir() else out, data, force=force)
        return
    if out is None:
        raise click.UsageError("SRC is a folder: --out names the folder to write into")
    failed = 0
    paths = session_files([source])
    with over_files(paths, "converting") as each:
        for path in each:
            place = (out / path.relative_to(source)).with_suffix(system_of(target).suffix)
            try:
                write_session(place, write_transcript(read_session(path, system, redact=redact), target), force=force)
            except Exception as error:  # one bad file never stops the others
                failed += 1
                click.echo(why_unread(path, error), err=True)
    click.echo(f"{len(paths) - failed:,} written, {failed:,} not", err=True)
    if failed:
        ctx.exit(1)

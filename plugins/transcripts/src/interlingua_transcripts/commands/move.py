"""`transcript convert`: a session in another system's format."""

from __future__ import annotations

from pathlib import Path

import click

from interlingua_cli.context import plugin_option
from interlingua_cli.output import json_option
from interlingua_transcripts.commands.progress import over_files
from interlingua_transcripts.commands.shared import (
    check_alone,
    opened_session,
    redact_option,
    session_files,
    source_argument,
    stem_of,
    strict_option,
    system_option,
    why_unread,
)
from interlingua_transcripts.commands.writing import report_unwritten, write_session
from interlingua_transcripts.system import session_format
from interlingua_transcripts.writing import write_pieces


@click.command("convert")
@source_argument
@system_option("--to", "target", required=True, text="The system it is written for; its own rewrites it.")
@system_option("--system", text="The system that wrote the file; by default it is detected from the content.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write, or the folder if SRC is a folder.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@redact_option
@strict_option
@json_option
@plugin_option
@click.pass_context
def convert_command(
    ctx: click.Context,
    source: Path,
    target: str,
    system: str | None,
    out: Path | None,
    force: bool,
    redact: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Write a session in another system's format, to stdout or into a file.

    One line on stderr says what the written file does not get; --json prints it as JSON. `interlingua transcript
    fidelity SRC --to SYSTEM` lists every field.
    """

    def convert(path: Path, place: Path | None) -> None:
        with opened_session(path, system, redact=redact) as session:
            if session.system.name != target:
                check_alone(session, str(path))
            how = {"strict": strict, "as_json": as_json, "to_stdout": place is None}
            report_unwritten(session, target, name=str(path), **how)
            write_session(place, write_pieces(session, target), target, force=force)

    suffix = session_format(target).suffix
    if not source.is_dir():
        place = out / f"{stem_of(source)}{suffix}" if out is not None and out.is_dir() else out
        with over_files([source], "converting", to_stdout=place is None):
            convert(source, place)
        return
    if out is None:
        raise click.UsageError("SRC is a folder: set --out to the folder to write into")
    failed = 0
    made: dict[Path, Path] = {}
    paths = session_files([source])
    with over_files(paths, "converting") as each:
        for path in each:
            place = (out / path.relative_to(source)).with_name(f"{stem_of(path)}{suffix}")
            try:
                if place in made:
                    raise click.UsageError(f"{place} was already converted: {made[place]} became it")
                made[place] = path
                convert(path, place)
            except Exception as error:  # one bad file never stops the others
                failed += 1
                click.echo(why_unread(path, error), err=True)
    click.echo(f"{len(paths) - failed:,} written, {failed:,} not", err=True)
    if failed:
        ctx.exit(1)

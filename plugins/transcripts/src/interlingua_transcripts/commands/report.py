"""`transcript check` and `transcript fidelity`: what became of every leaf of a session's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from interlingua_cli.context import plugin_option
from interlingua_cli.input import write_file
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_transcripts.commands.progress import over_files
from interlingua_transcripts.commands.shared import (
    opened_session,
    session_files,
    source_argument,
    sources_argument,
    system_option,
    why_unread,
)
from interlingua_transcripts.fidelity import Count, Fidelity, measure_fidelity
from interlingua_transcripts.html import to_html

_CONTENT = ("texts", "thinking", "calls", "results", "media")
_COLUMNS = ("file", "system", "entries", "messages", *_CONTENT, "exact", "other form", "kept", "lost", "equal")
_NOTES = 5  # shown of each file


@click.command("check")
@sources_argument
@system_option("--system", text="The system that wrote the files; by default it is detected from the content.")
@json_option
@plugin_option
@click.pass_context
def check_command(ctx: click.Context, sources: tuple[Path, ...], system: str | None, as_json: bool) -> None:
    """Read session files, say what was read, write them back, and say what became of every leaf.

    exact: a message has the value; other form: a message has it in another form; kept: beside the message, and written
    back; lost: gone. Exit code 1 if a file cannot be read, makes no message, is not written back equal, or loses
    something. --json also lists the kinds of entries that made no message.
    """
    paths = session_files(sources)
    rows: list[dict[str, Any]] = []
    try:
        with over_files(paths, "checking") as each:
            for path in each:
                rows.append(_checked(path, system))
    except KeyboardInterrupt:  # what was checked is shown
        pass
    print_json(rows) if as_json else _print_rows(rows)
    if len(rows) < len(paths) or any(map(_is_bad, rows)):
        ctx.exit(1)


def _is_bad(row: dict[str, Any]) -> bool:
    return "error" in row or not row["equal"] or row["lost"] > 0 or row["messages"] == 0


def _checked(path: Path, system: str | None) -> dict[str, Any]:
    try:
        with opened_session(path, system) as session:
            report = measure_fidelity(session).to_json()
    except Exception as error:  # one bad file never stops the others
        return {"path": str(path), "error": why_unread(path, error)}
    return {"path": str(path), **{name: value for name, value in report.items() if name not in ("target", "by_entry")}}


def _print_rows(rows: list[dict[str, Any]]) -> None:
    good = [row for row in rows if "error" not in row]
    if good:
        print_table(_COLUMNS, [_cells_of(row) for row in good], spare=("entries", "thinking", "media"))
    for row in rows:
        if "error" in row:
            click.echo(row["error"], err=True)
        elif row["messages"] == 0:
            kinds = ", ".join([f"{kind} ({number:,})" for kind, number in row["silent"].items()])
            click.echo(f"{row['path']}: no entry made a message: {kinds}", err=True)
        for note in row.get("notes", ())[:_NOTES]:
            place = "" if note["entry"] is None else f"entry {note['entry'] + 1}: "
            click.echo(f"{row['path']}: {place}{note['text']}", err=True)


def _cells_of(row: dict[str, Any]) -> list[Any]:
    counts = [row["content"].get(name, 0) for name in _CONTENT]
    ends = [row[name] for name in ("exact", "other", "kept", "lost", "equal")]
    return [row["path"], row["system"], row["entries"], row["messages"], *counts, *ends]


@click.command("fidelity")
@source_argument
@system_option("--to", "target", text="The format to write; default: the file's own.")
@system_option("--system", text="The system that wrote the file; by default it is detected from the content.")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as a page.")
@json_option
@plugin_option
def fidelity_command(source: Path, target: str | None, system: str | None, page: Path | None, as_json: bool) -> None:
    """Print what another system's format would hold of a session, by kind of entry."""
    with over_files([source], "measuring"), opened_session(source, system) as session:
        report = measure_fidelity(session, target)
    if page is not None:
        write_file(page.resolve(), to_html(report, source.name))
    if as_json:
        print_json(report.to_json())
    elif page is None:
        _print_report(report)


def _print_report(report: Fidelity) -> None:
    click.echo(f"{report.system} {report.version} -> {report.target}, {report.messages:,} messages\n")
    rows = [(kind, *_cells(count)) for kind, count in sorted(report.by_kind.items())]
    print_table(("entry", "leaves", "exact", "other form", "kept", "lost"), [*rows, ("all", *_cells(report.total))])
    for title, counter in (("in another form", report.reasons), ("kept", report.places), ("lost", report.lost)):
        for name, number in counter.most_common(10):
            click.echo(f"{title}: {number:,} of {name}")
    for note in report.notes:
        click.echo(f"note: {note.text}", err=True)


def _cells(count: Count) -> list[int]:
    return [count.leaves, *attrs.astuple(count)]

"""`corpus`: decode recorded exchanges with the installed providers, and report per API."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from interlingua._json import dumps
from interlingua.errors import DecodeError
from interlingua_cli.completion import complete_files
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.output import json_option, make_console, print_json, print_table
from interlingua_cli.replay.exchange import Matcher, Outcome, ReplayReport, outcome_to_json, replay
from interlingua_cli.replay.source import Recording, open_recording, read_entry, read_exclusions

_MAX_FAILURES = 20
_COLUMNS = ("entries", "decoded", "failed", "opaque", "excluded", "not_read")


@click.command("corpus")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_files)
@json_option
@click.option("--emit", type=click.Path(dir_okay=False, allow_dash=True), metavar="OUT",
              help="Write a JSON line per entry.")  # fmt: skip
@click.option("--chunk", type=click.IntRange(min=1), metavar="N", help="Feed streams N bytes at a time.")
@click.option("--exclude", envvar="INTERLINGUA_CORPUS_EXCLUDE", metavar="TOML",
              help="Entries not to judge: [[exclude]] tables of id and reason.")  # fmt: skip
@plugin_option
@click.pass_obj
def corpus(context: CommandContext, files: tuple[str, ...], as_json: bool, emit: str | None, chunk: int | None,
           exclude: str | None) -> None:  # fmt: skip
    """Decode recorded exchanges and report per API.

    FILE is JSON Lines, plain or gzipped; - is standard input. An entry's adapter is found by its host and endpoint.
    A line written by --emit is {id, message} or {id, error, partial}; ids and times come from the entry, so two runs
    write the same bytes. Ctrl-C reports what was read until then. Exit code 0 if nothing failed.
    """
    report, excluded = ReplayReport(), read_exclusions(exclude) if exclude else {}
    matcher, interrupted = Matcher(context.registry), False
    for path in files:
        if path != "-":
            Path(path).stat()  # a wrong name fails now, not after an hour's work
    with _open_emit(emit, files) as out:
        try:
            for path in files:
                with open_recording(path) as recording, _show_progress(recording.name, recording.size) as progress:
                    for outcome in _decode_recording(recording, matcher, chunk, report, excluded):
                        report.add(_emit_line(outcome, out))
                        progress(recording.position)
        except KeyboardInterrupt:
            interrupted = True
            click.echo("interrupted: the report is of what was read until then", err=True)
    data = report.as_json()
    if not data and not interrupted:
        click.echo("the input has no entry", err=True)
    print_json(data) if as_json else _print_report(data)
    sys.exit(130 if interrupted else 1 if report.failed else 0)


@contextlib.contextmanager
def _open_emit(emit: str | None, files: Sequence[str]) -> Iterator[IO[bytes] | None]:
    """Open the file for `--emit`; reject an input file."""
    if emit is None:
        yield None
        return
    for file in files:
        if "-" not in (emit, file) and Path(emit).exists() and Path(emit).samefile(file):
            raise click.UsageError(f"--emit would overwrite the input {file}: choose another file")
    with click.open_file(emit, "wb") as out:
        yield out


def _decode_recording(
    recording: Recording, matcher: Matcher, chunk: int | None, report: ReplayReport, excluded: Mapping[str, str]
) -> Iterator[Outcome]:
    """Decode a recording; if it becomes unreadable, that is one failure, and the entries before it count."""
    try:
        for name, line in recording.lines():
            try:
                entry = read_entry(line, name)
            except Exception as error:
                yield Outcome(id=name, group="unreadable", error=error, decoded=False)
                continue
            if entry.id in excluded:
                report.exclude(entry.group)
            else:
                yield replay(entry, matcher, chunk=chunk)
    except DecodeError as error:
        yield Outcome(id=error.path, group="unreadable", error=error, decoded=False)


def _emit_line(outcome: Outcome, emit: IO[bytes] | None) -> Outcome:
    """Write an entry's line; a message that cannot be encoded counts as not decoded."""
    if emit is None:
        return outcome
    try:
        line = dumps(outcome_to_json(outcome))
    except Exception as error:
        outcome = Outcome(id=outcome.id, group=outcome.group, error=error, decoded=False)
        line = dumps(outcome_to_json(outcome))
    emit.write(line + b"\n")
    return outcome


@contextlib.contextmanager
def _show_progress(name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    if size is None or not sys.stderr.isatty():
        yield lambda _position: None
        return
    from rich.progress import Progress  # noqa: PLC0415  not free to import

    with Progress(console=make_console(err=True), transient=True) as bar:
        task = bar.add_task(name, total=size)
        yield lambda position: bar.update(task, completed=position)


def _print_report(data: Mapping[str, Mapping[str, Any]]) -> None:
    print_table(("api", *_COLUMNS), [(api, *(tally[name] for name in _COLUMNS)) for api, tally in data.items()])
    for api, tally in data.items():
        if tally["errors"]:
            click.echo(f"{api}: {', '.join(f'{name} {count}' for name, count in tally['errors'].items())}")
    failures = [failure for tally in data.values() for failure in tally["failures"]]
    for failure in failures[:_MAX_FAILURES]:
        click.echo(f"{failure['id']}: {' '.join(failure['error'].split())[:300]}")
    if len(failures) > _MAX_FAILURES:
        click.echo(f"... and {len(failures) - _MAX_FAILURES} more (--json lists all)")

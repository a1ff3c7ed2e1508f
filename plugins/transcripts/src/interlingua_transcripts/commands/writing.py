"""Writing the files of sessions, and the line that says what a file does not get."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
import orjson

from interlingua_cli.input import write_file
from interlingua_transcripts.files import MAIN_FILES
from interlingua_transcripts.opened import OpenTranscript
from interlingua_transcripts.system import session_format
from interlingua_transcripts.transcript import Transcript, TranscriptError
from interlingua_transcripts.unwritten import count_unwritten, describe_unwritten


def write_session(path: Path | None, pieces: Iterable[bytes], target: str, *, force: bool) -> None:
    """Write a session's file and the folders above it; an interruption or an error leaves the old file, or none.

    Args:
        path: the file; stdout if missing. The main file of a folder is written with the other files of the session.
        pieces: content of the file, written as produced.
        target: the system.
        force: write over a file that is there.

    Raises:
        click.UsageError: it already exists, and `force` is not set.
    """
    if path is None:
        sys.stdout.buffer.writelines(pieces)
        return
    if path.exists() and not force:
        raise click.UsageError(f"{path} already exists; --force overwrites it")
    if path.exists() and not path.is_file():  # a pipe or a device is written to, never replaced
        with path.open("wb") as file:
            file.writelines(pieces)
        return
    if path.name in MAIN_FILES:
        pieces = [b"".join(pieces)]
        if (files := session_format(target).scatter(pieces[0], path.resolve().parent.name)) is not None:
            _write_folder(path.parent, path.name, files)
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path.resolve(), pieces)  # a link to the file stays one


def _write_folder(folder: Path, main: str, files: Mapping[str, bytes]) -> None:
    """Write the files of a session, its main file last; files of messages that it no longer has are removed."""
    for name in (*(name for name in files if name != main), main):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, files[name])
    for below in {name.rpartition("/")[0] for name in files} - {""}:
        for path in (folder / below).glob("*.json"):
            if f"{below}/{path.name}" not in files:
                path.unlink()


def report_unwritten(
    transcript: Transcript | OpenTranscript, target: str, *, name: str, strict: bool, as_json: bool, to_stdout: bool
) -> None:
    """Print in one line what a file for a system does not get of a session.

    Args:
        transcript: the session.
        target: the system.
        name: name of the session, at the start of the line.
        strict: fail if it is anything.
        as_json: print a JSON object, also if it is nothing.
        to_stdout: the file itself goes to stdout, the line to stderr.

    Raises:
        TranscriptError: the target does not get all, and `strict` is given.
    """
    found = count_unwritten(transcript, target)
    line = describe_unwritten(found, target)
    if as_json:
        click.echo(orjson.dumps({"session": name, "target": target, "unwritten": dict(found)}).decode(), err=to_stdout)
    if line and strict:
        raise TranscriptError(f"{line}; without --strict it is written nevertheless", path=name)
    if line and not as_json:
        click.echo(f"{name}: {line}", err=True)

"""What the commands share: the files that were named, how a session is opened, progress on long work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from interlingua import InterlinguaError
from interlingua_cli.input import write_file
from interlingua_cli.output import make_console
from interlingua_transcripts.files import MAIN_FILES, read_bytes, read_transcript
from interlingua_transcripts.opened import OpenTranscript, open_transcript
from interlingua_transcripts.secrets import find_secrets, redact_secrets
from interlingua_transcripts.system import system_of
from interlingua_transcripts.transcript import Transcript, TranscriptError

F = TypeVar("F", bound=Callable[..., Any])
_PIECE = 1 << 20  # bytes of a file that are searched at a time
_SUFFIXES = (".jsonl", ".json", ".traj")

source_argument = click.argument("source", metavar="SRC", type=click.Path(exists=True, path_type=Path))
sources_argument = click.argument(
    "sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
redact_option = click.option("--redact", is_flag=True, help="Replace secrets, found by their form, by their kind.")


def system_option(*names: str, text: str, required: bool = False) -> Callable[[F], F]:
    """Make an option that takes the name of an installed system."""

    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        if value is not None:
            system_of(value)
        return value

    return click.option(*names, metavar="SYSTEM", callback=check, required=required, help=text)


def session_files(sources: Sequence[Path]) -> list[Path]:
    """Return the files named, and those of the folders named that may hold sessions."""
    found: list[Path] = []
    for source in sources:
        if source.is_dir():
            found += sorted(path for path in source.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
        else:
            found.append(source)
    folders = {path.parent for path in found if path.name == "session.json"}  # a session of many files
    return [
        path for path in found if path.name == "session.json" or folders.isdisjoint((path.parent, path.parent.parent))
    ]


def read_session(path: Path, system: str | None = None, *, redact: bool | None = None) -> Transcript:
    """Read a session file; arguments and errors as `opened_session` has them."""
    with _errors_of(path):
        return read_transcript(_source(path, redact), system)


@contextmanager
def opened_session(path: Path, system: str | None = None, *, redact: bool | None = None) -> Iterator[OpenTranscript]:
    """Open a session file, to read it message by message.

    Args:
        path: the file.
        system: its system; None finds it out by the content.
        redact: replace secrets; False only names them, None does not look for any.

    Raises:
        TranscriptError: it is none of a known system.
        click.UsageError: it is a folder.
    """
    with _errors_of(path), open_transcript(_source(path, redact), system) as session:
        yield session


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:
        raise click.UsageError(f"{path} is a folder; name a file in it") from error
    except TranscriptError as error:
        if error.path is not None:
            raise
        raise TranscriptError(str(error), path=str(path)) from error


def _source(path: Path, redact: bool | None) -> Path | bytes:
    """Return a file, or its bytes with secrets replaced; those in it are named on stderr."""
    if redact is None:
        return path
    if not path.is_file() or path.name in MAIN_FILES:
        return written_data(read_bytes(path), redact=redact, name=str(path))
    if _name_secrets(find_secrets(_pieces(path)), redact=redact, name=str(path)) and redact:
        return redact_secrets(path.read_bytes())
    return path


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while lines := file.readlines(_PIECE):
            yield b"".join(lines)


def written_data(data: bytes, *, redact: bool, name: str) -> bytes:
    """Return a session's file; secrets in it are named on stderr, and replaced where that is wanted."""
    found = _name_secrets(find_secrets([data]), redact=redact, name=name)
    return redact_secrets(data) if redact and found else data


def _name_secrets(found: Counter[str], *, redact: bool, name: str) -> bool:
    if found:
        kinds = ", ".join([f"{kind} ({number})" for kind, number in found.items()])
        how = "replaced" if redact else "--redact replaces them"
        click.echo(f"{name}: secrets by their form: {kinds}; {how}", err=True)
    return bool(found)


def write_session(path: Path, data: bytes, *, force: bool) -> None:
    """Write a session's file and the folders above it; an interruption or an error leaves the old file, or none.

    Raises:
        click.UsageError: it is there and `force` is not given.
    """
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there; --force writes over it")
    if path.exists() and not path.is_file():  # a pipe or a device is written to, never replaced
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path.resolve(), data)  # a link to the file stays one


def why_unread(path: Path, error: Exception) -> str:
    """Return in one line which file could not be read, and why."""
    why = str(error) if isinstance(error, InterlinguaError) else f"{type(error).__name__}: {error}"
    return why if str(path) in why else f"{path}: {why}"


@contextmanager
def over_files(paths: Sequence[Path], what: str) -> Iterator[Iterable[Path]]:
    """Show how many files are done, on a terminal's stderr; and where it is interrupted, how many were."""
    console = make_console(err=True)
    begun = 0

    def counted(each: Iterable[Path]) -> Iterator[Path]:
        nonlocal begun
        for begun, path in enumerate(each):  # noqa: B007  read where it is interrupted
            yield path

    try:
        if len(paths) < 2 or not console.is_terminal:
            yield counted(paths)
        else:
            from rich.progress import track  # noqa: PLC0415  for long work alone

            yield counted(track(paths, description=what, console=console, transient=True))
    except KeyboardInterrupt:
        click.echo(f"{what} was interrupted: {begun:,} of {len(paths):,} files were done", err=True)
        raise

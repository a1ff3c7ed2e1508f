"""What the commands share: the files that were named, how a session is opened, progress on long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from interlingua import InterlinguaError
from interlingua_cli.output import make_console
from interlingua_transcripts.files import read_transcript
from interlingua_transcripts.system import installed_systems, system_of
from interlingua_transcripts.transcript import Transcript

F = TypeVar("F", bound=Callable[..., Any])
_SUFFIXES = (".jsonl", ".json", ".traj")

source_argument = click.argument("source", metavar="SRC", type=click.Path(exists=True, path_type=Path))
sources_argument = click.argument(
    "sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)


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
    return found


def open_session(path: Path, system: str | None = None) -> Transcript:
    """Read a session file.

    Raises:
        TranscriptError: it is none of a known system.
        click.UsageError: it is a folder.
    """
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder; name a file in it")
    return read_transcript(path, system)


def why_unread(error: Exception) -> str:
    """Return in one line why a file could not be read."""
    return str(error) if isinstance(error, InterlinguaError) else f"{type(error).__name__}: {error}"


def known_systems() -> str:
    """Return the names of the systems installed, for help."""
    return ", ".join(installed_systems())


@contextmanager
def over_files(paths: Sequence[Path], what: str) -> Iterator[Iterable[Path]]:
    """Show how many files are done, on a terminal's stderr."""
    console = make_console(err=True)
    if len(paths) < 2 or not console.is_terminal:
        yield paths
        return
    from rich.progress import track  # noqa: PLC0415  for long work alone

    yield track(paths, description=what, console=console, transient=True)

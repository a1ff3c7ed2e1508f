"""Shared code of the commands: options, the files of the arguments, opening sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

import click

from interlingua import InterlinguaError
from interlingua_transcripts.commands.progress import watch_reading
from interlingua_transcripts.files import open_source
from interlingua_transcripts.opened import OpenTranscript, open_transcript
from interlingua_transcripts.system import session_format
from interlingua_transcripts.transcript import TranscriptError

F = TypeVar("F", bound=Callable[..., Any])
_PIECE = 1 << 20  # bytes of a file that are searched at a time
_SUFFIXES = tuple(f"{suffix}{packed}" for suffix in (".jsonl", ".json", ".traj") for packed in ("", ".gz"))

source_argument = click.argument("source", metavar="SRC", type=click.Path(exists=True, path_type=Path))
sources_argument = click.argument(
    "sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
strict_option = click.option("--strict", is_flag=True, help="Fail, and write nothing, if the target does not get all.")
redact_option = click.option("--redact", is_flag=True, help="Replace secrets, found by their form, by their kind.")


def system_option(*names: str, text: str, required: bool = False) -> Callable[[F], F]:
    """Make an option that takes the name of an installed system."""

    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        if value is not None:
            session_format(value)
        return value

    return click.option(*names, metavar="SYSTEM", callback=check, required=required, help=text)


def session_files(sources: Sequence[Path]) -> list[Path]:
    """Return the files named, and those of the folders named that may hold sessions."""
    found: list[Path] = []
    for source in sources:
        if source.is_dir():
            found += sorted(path for path in source.rglob("*") if path.name.endswith(_SUFFIXES) and path.is_file())
        else:
            found.append(source)
    folders = {path.parent for path in found if path.name == "session.json"}  # a session of many files
    return [
        path for path in found if path.name == "session.json" or folders.isdisjoint((path.parent, path.parent.parent))
    ]


def stem_of(path: Path) -> str:
    """Return a file's name without its endings."""
    return Path(path.name.removesuffix(".gz")).stem


@contextmanager
def opened_session(path: Path, system: str | None = None, *, redact: bool | None = None) -> Iterator[OpenTranscript]:
    """Open a session file, to read it message by message.

    Args:
        path: the file.
        system: its system; None finds it out by the content.
        redact: replace secrets; False only lists them, None does not search for them.

    Raises:
        TranscriptError: no known format fits the file.
        click.UsageError: it is a folder.
    """
    with _errors_of(path), _source(path, redact) as source, open_transcript(source, system) as session:
        yield session


def check_alone(session: OpenTranscript, name: str) -> None:
    """Refuse a file of several conversations, which would become one.

    Raises:
        click.UsageError: it is one.
    """
    count = len(session.plan.groups)
    if session.system.several and count > 1:
        raise click.UsageError(
            f"{name} holds {count:,} conversations: `interlingua transcript import` makes a session of each; "
            "export or resume them by their ids"
        )


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


@contextmanager
def _source(path: Path, redact: bool | None) -> Iterator[Path | IO[bytes]]:
    """Yield a file, or a copy with secrets replaced; list the secrets on stderr."""
    with watch_reading(path) as watched:
        if redact is None:
            yield watched
        else:
            with _searched(path, watched, redact=redact) as source:
                yield source


@contextmanager
def _searched(path: Path, watched: Path | IO[bytes], *, redact: bool) -> Iterator[IO[bytes]]:
    from interlingua_transcripts.secrets import SecretSearch  # noqa: PLC0415  compiles many patterns

    search = SecretSearch(redact=redact)
    with open_source(watched) as file, TemporaryFile() as replaced:
        for piece in search.through(_pieces(file)):
            if redact:
                replaced.write(piece)
        name_secrets(search.found, redact=redact, name=str(path))
        source = replaced if redact and search.found else file
        source.seek(0)
        yield source


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while lines := file.readlines(_PIECE):
        yield b"".join(lines)


def name_secrets(found: Mapping[str, int], *, redact: bool, name: str) -> None:
    """Print on stderr which kinds of secrets a file has, and what is done about them."""
    if found:
        kinds = ", ".join([f"{kind} ({number})" for kind, number in found.items()])
        how = "replaced" if redact else "--redact replaces them"
        click.echo(f"{name}: secrets by their form: {kinds}; {how}", err=True)


def why_unread(path: Path, error: Exception) -> str:
    """Return in one line which file could not be read, and why."""
    said = isinstance(error, InterlinguaError | click.ClickException)
    why = str(error) if said else f"{type(error).__name__}: {error}"
    return why if why.startswith(str(path)) else f"{path}: {why}"

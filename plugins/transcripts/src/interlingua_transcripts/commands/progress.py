"""Progress of long work, on a terminal's stderr: how many files are done, how far a large one is read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from interlingua_transcripts.files import MAIN_FILES

if TYPE_CHECKING:
    from rich.progress import Progress

_SHOWN = __name__  # where click's context holds what is shown
_LARGE = 8 << 20  # bytes of a file whose reading is shown


@contextmanager
def over_files(paths: Sequence[Path], what: str, *, to_stdout: bool = False) -> Iterator[Iterable[Path]]:
    """Show the number of finished files, and the progress within a large one; after an interruption, print the number.

    Args:
        paths: paths of the files.
        what: is done to them, such as "importing".
        to_stdout: the output goes to standard output; show nothing if that is the same terminal.
    """
    begun = 0
    long = len(paths) > 1 or any(path.is_file() and path.stat().st_size >= _LARGE for path in paths)
    visible = long and sys.stderr.isatty() and not (to_stdout and sys.stdout.isatty())
    try:
        with _show(visible) as progress:
            task = progress.add_task(what, total=len(paths), visible=len(paths) > 1) if progress else None

            def counted() -> Iterator[Path]:
                nonlocal begun
                for begun, path in enumerate(paths):
                    if progress and task is not None:
                        progress.update(task, completed=begun)
                    yield path

            yield counted()
    except KeyboardInterrupt:
        click.echo(f"{what} was interrupted: {begun:,} of {len(paths):,} files were done", err=True)
        raise


@contextmanager
def _show(visible: bool) -> Iterator[Progress | None]:
    if not visible:
        yield None
        return
    from rich.progress import Progress  # noqa: PLC0415  for long work alone

    from interlingua_cli.output import make_console  # noqa: PLC0415  as above

    meta = click.get_current_context().meta
    with Progress(console=make_console(err=True), transient=True) as progress:
        meta[_SHOWN] = progress
        try:
            yield progress
        finally:
            del meta[_SHOWN]


@contextmanager
def watch_reading(path: Path) -> Iterator[Path | IO[bytes]]:
    """Yield an open file whose reading is shown if the file is large and progress is shown."""
    progress = click.get_current_context().meta.get(_SHOWN)
    whole = path.is_file() and path.name not in MAIN_FILES
    if progress is None or not whole or path.stat().st_size < _LARGE:
        yield path
        return
    task = progress.add_task(path.name, total=path.stat().st_size)
    try:
        with BufferedReader(_WatchedFile(path, lambda at: progress.update(task, completed=at)), 1 << 16) as file:
            yield file
    finally:
        progress.remove_task(task)


class _WatchedFile(FileIO):
    """A file that says how far it was read."""

    def __init__(self, path: Path, report: Any) -> None:
        super().__init__(path, "rb")
        self._report = report

    def readinto(self, buffer: Any) -> int | None:
        """Read as FileIO does, and report the place reached."""
        count = super().readinto(buffer)
        self._report(self.tell())
        return count

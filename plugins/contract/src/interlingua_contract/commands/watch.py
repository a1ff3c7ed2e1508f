"""Check a plugin again whenever one of its files changes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import click

_EVERY = 0.5
"""Seconds between two readings of the files' times."""

_COMMAND = (sys.executable, "-c", "from interlingua_cli import main; main()")
_SUFFIXES = frozenset({".py", ".toml", ".json", ".jsonl", ".yaml"})


def watch(provider: str, cassettes: Path | None, arguments: Sequence[str], *, rounds: int | None = None) -> None:
    """Run `interlingua` with these arguments, again after each change, until the user stops it.

    A run that is not finished when a file changes is ended: its result is out of date.

    Args:
        provider: provider key.
        cassettes: folder of recorded traffic, whose files count too.
        arguments: arguments of the command line.
        rounds: runs after which to return; None for no end.
    """
    folders = [*_package_folders(provider), *([cassettes] if cassettes is not None else [])]
    if not folders:
        raise click.UsageError(f"{provider} was not installed as a package, so there are no files to watch")
    command = [*_COMMAND, *arguments]
    while rounds is None or rounds > 0:
        rounds = None if rounds is None else rounds - 1
        before = _times(folders)
        run = subprocess.Popen(command)  # noqa: S603  our own command line
        try:
            while _times(folders) == before and (rounds != 0 or run.poll() is None):
                time.sleep(_EVERY)
        except KeyboardInterrupt:
            rounds = 0
        finally:
            if run.poll() is None:
                run.terminate()
            run.wait()
        if rounds != 0:
            click.echo("\na file changed: checking again\n", err=True)


def _package_folders(provider: str) -> Iterator[Path]:
    """Yield the folders of the packages that have the provider's entry points."""
    found = {
        entry.module.partition(".")[0]
        for group in ("interlingua.providers", "interlingua.presets", "interlingua.serving")
        for entry in entry_points(group=group, name=provider)
    }
    for package in sorted(found):
        spec = find_spec(package)
        yield from map(Path, spec.submodule_search_locations or () if spec is not None else ())


def _times(folders: Sequence[Path]) -> dict[Path, int]:
    """Return when each file was changed, in nanoseconds."""
    times: dict[Path, int] = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix in _SUFFIXES:
                try:
                    times[path] = path.stat().st_mtime_ns
                except OSError:  # removed since it was listed
                    continue
    return times

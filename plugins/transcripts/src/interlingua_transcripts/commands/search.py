"""`transcript search`: messages of every session file on this machine by their words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from interlingua import InterlinguaError
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.output import json_option, print_json
from interlingua_sessions.commands.search import indexing, print_found
from interlingua_sessions.store.schema import StoreError
from interlingua_sessions.store.search import Progress
from interlingua_sessions.store.sqlite import SqliteDatabase
from interlingua_sessions.store.statements import stamp_of, time_of
from interlingua_sessions.store.text_index import (
    FoundPassage,
    Passage,
    Revision,
    TextIndex,
    check_sum,
    line_around,
    passages_of,
    phrases_of,
)
from interlingua_transcripts.commands.shared import system_option
from interlingua_transcripts.files import MAIN_FILES, ODD
from interlingua_transcripts.opened import open_transcript
from interlingua_transcripts.system import SessionFormat, find_files, installed_formats, list_files

_TOGETHER = 2_000  # passages that are indexed in a transaction


class _File(NamedTuple):
    """A session file, and a number that changes when it is written; the path is a string, which is looked up faster."""

    system: SessionFormat
    path: str
    changed: float
    stamp: int


@click.command("search")
@click.argument("text")
@system_option("--system", text="Sessions of this system only.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of results.")
@json_option
@plugin_option
@click.pass_obj
def search_command(context: CommandContext, text: str, system: str | None, limit: int, as_json: bool) -> None:
    """Search the messages of all sessions on this machine.

    A message is found if it holds all words of TEXT, in any case; "words in quotes" must follow each other. A word of
    three letters or more is also found as the beginning of a longer one. The first search makes an index in the user's
    cache folder; later ones read the files that changed since. Ctrl-C while files are indexed: only what is indexed is
    searched, and the next search continues.
    """
    phrases = phrases_of(text)
    if not phrases:
        raise click.UsageError(f"there is no word to search for in {text!r}")
    path = _index_file(context.environ)
    try:
        with closing(SqliteDatabase(path)) as database:
            index = TextIndex(database, keep_text=True)
            index.create()
            _update(index, context.environ)
            where, values = ("", []) if system is None else (" AND d.about LIKE ?", [f'%"system":"{system}"%'])
            found = index.search(phrases, limit=limit, where=where, values=values)
    except StoreError as error:
        if not any(word in str(error) for word in ("not a database", "malformed", "no such")):
            raise
        raise StoreError(f"{path}: the index is damaged; delete it, and the next search makes another") from error
    if as_json:
        print_json([_as_json(one, text) for one in found])
        return
    print_found([
        (
            time_of(one.created_at),
            f"{one.key} message {one.position + 1}",
            one.role,
            one.model,
            line_around(one.text or "", text),
        )
        for one in found
    ])  # fmt: skip


def _index_file(environ: Mapping[str, str]) -> Path:
    """Return the file of the index, which only the user can read; its folder is created if needed."""
    folder = environ.get("XDG_CACHE_HOME")
    path = (Path(folder) if folder else Path("~/.cache").expanduser()) / "interlingua" / "transcripts.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT, 0o600))
    return path


def _as_json(one: FoundPassage, query: str) -> dict[str, Any]:
    return {
        "path": one.key,
        **one.about,
        "message": one.position + 1,
        "message_id": one.message_id,
        "role": one.role,
        "model": one.model,
        "created_at": time_of(one.created_at).isoformat(),
        "line": line_around(one.text or "", query),
    }


def _update(index: TextIndex, environ: Mapping[str, str]) -> None:
    """Bring the index up to date; an interruption keeps what is indexed."""
    found = find_files(installed_formats().values(), environ)
    files = [_File(system, path, status.st_mtime, _stamp(path, status)) for system, status, path in found]
    unread: list[str] = []
    try:
        with indexing() as progress:
            unread = update_files(index, files, progress)
    except KeyboardInterrupt:
        click.echo("interrupted: only what is indexed is searched; the next search continues", err=True)
    if unread:
        more = f" and {len(unread) - 1:,} more" if unread[1:] else ""
        click.echo(f"not read: {unread[0]}{more}; `interlingua transcript check FILE` says why", err=True)


def _stamp(path: str, status: os.stat_result) -> int:
    """Return a number that changes with a file, also if its new content has the old size and time."""
    found: tuple[int, ...] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    if path.endswith(MAIN_FILES):  # the session has other files
        for other in (f"{path}-wal", *sorted(list_files(Path(path).parent, "messages/*.json"))):
            with suppress(OSError):
                one = Path(other).stat()
                found += (one.st_mtime_ns, one.st_ctime_ns, one.st_size)
    return hash(found)


def update_files(index: TextIndex, files: Iterable[_File], progress: Progress | None = None) -> list[str]:
    """Index files that changed, the oldest first, and forget those that are gone.

    Returns:
        The files that could not be read.
    """
    by_path = {one.path: one for one in files}
    known = index.stamps()
    gone = known.keys() - by_path.keys()
    if gone:
        index.forget(gone, index.changes())
    stale = [one for path, one in by_path.items() if known.get(path) != one.stamp]
    stale.sort(key=lambda one: one.changed)
    unread: list[str] = []
    seen = index.changes()
    waiting: list[Revision] = []
    for number, one in enumerate(stale):
        if progress is not None:
            progress(number, len(stale))
        revision, is_read = _read(index, one, known=one.path in known)
        unread += [] if is_read else [one.path]
        waiting.append(revision)
        if sum(len(each.passages) for each in waiting) >= _TOGETHER:
            seen = _store(index, waiting, seen)
            waiting = []
    if waiting:
        _store(index, waiting, seen)
    return unread


def _store(index: TextIndex, revisions: Sequence[Revision], seen: int) -> int:
    """Store what was read; of files that another process indexed meanwhile, the next search looks again."""
    if index.revise(revisions, seen):
        return seen + 1
    return index.changes()


def _read(index: TextIndex, file: _File, *, known: bool) -> tuple[Revision, bool]:
    """Return the passages of a file that are not indexed yet, and whether it could be read."""
    old = index.sums(file.path) if known else {}
    about: dict[str, Any] = {"system": file.system.name}
    passages: dict[tuple[str, int], Passage] = {}
    is_read = True
    try:
        with open_transcript(file.path, file.system) as session:
            plan = session.plan
            about |= {"session": plan.session_id, "title": plan.title, "cwd": plan.cwd}
            for number, message in enumerate(session):
                for passage in passages_of(message, number, stamp_of(message.created_at)):
                    passages.setdefault((passage.message_id, passage.part), passage)
    except (*ODD, InterlinguaError, OSError):
        is_read = False
    kept = {place for place, one in passages.items() if place in old and old[place][1] == check_sum(one.text)}
    removed = [number for place, (number, _) in old.items() if place not in kept]
    fresh = [one for place, one in passages.items() if place not in kept]
    return Revision(file.path, file.stamp, about, fresh, removed), is_read

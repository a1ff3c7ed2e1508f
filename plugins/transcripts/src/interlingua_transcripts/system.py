"""Session formats: how their files are recognised, read, written and found; and the installed formats."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import entry_points
from os import scandir, stat, stat_result
from pathlib import Path
from typing import Any, ClassVar

from interlingua.plugins import dumps
from interlingua.types import Message
from interlingua_transcripts.imported import ImportedIds
from interlingua_transcripts.loading import (
    dump_document,
    dump_escaped,
    load_document,
    load_entry,
    load_exactly,
    load_unchanged,
)
from interlingua_transcripts.transcript import (
    Conversation,
    MessageGroup,
    ReadPlan,
    SessionPlace,
    TranscriptError,
    Written,
)
from interlingua_transcripts.values import Form

_log = logging.getLogger("interlingua")
GROUP = "interlingua.session_formats"


class SessionFormat:
    """One system whose session files can be read; override what differs.

    A file is a list of *entries*: the lines of a JSON Lines file, or the pieces a JSON document is split into. Reading
    takes two steps: `plan` reads all entries and returns those of the conversation, `to_messages` translates
    one group of them. `write` is the way back.

    Attributes:
        name: name in commands.
        title: its name for people.
        suffix: suffix of the files that it writes.
        writable: False if files are only read.
        several: True if a file holds several conversations, each a separate group.
        results_in_calls: True if a result is a part of its call's entry.
        text: True if a file is not JSON: `detect` gets its beginning as a string, and `parse` makes the entries.
        links: if entries form a tree, the members that hold an entry's id and its parent's.
        forms: rules that turn a value of an entry into the values by which a message says the same: end of its path,
            without indexes, such as `usage.input` -> rule.
        beside: beginnings of places, without indexes, whose values belong to no message although their entry makes one,
            such as a copy of a result for the screen.
        lacks: what a file of this system has no place for, in the words of `transcript convert`: `image`,
            `mark of a failed result`, `call`; also `system prompt`, which is written as a user's text, `stop reason`,
            `time`, `media type` and `session id`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str] = ".jsonl"
    writable: ClassVar[bool] = True
    several: ClassVar[bool] = False
    results_in_calls: ClassVar[bool] = False
    text: ClassVar[bool] = False
    links: ClassVar[tuple[str, str] | None] = None
    forms: ClassVar[Mapping[str, Form]] = {}
    beside: ClassVar[Sequence[str]] = ()
    lacks: ClassVar[Set[str]] = frozenset()

    # -- the file and its entries --------------------------------------------------------------------------------

    def detect(self, head: Sequence[Any]) -> str | None:
        """Return the format's version ("" where the file says none) when this is a file of this system, else None.

        Args:
            head: the first entries as JSON values: lines, or the whole document alone.
        """
        raise NotImplementedError

    def split(self, data: bytes) -> list[bytes]:
        r"""Return the JSON text of each entry: here the lines, split at \n only. Blank lines are left out."""
        return list(filter(bytes.strip, data.split(b"\n")))

    def parse(self, data: bytes, document: Any = None) -> tuple[list[bytes], list[Any]]:
        """Return the result of `split`, and the JSON value of each entry; None for an entry that is not JSON.

        Args:
            data: the file.
            document: its JSON value, if it is one document that was parsed before.
        """
        entries = self.split(data)
        return entries, list(map(load_entry, entries))

    def load(self, entry: bytes) -> Any:
        """Return the JSON value that `parse` returns for an entry; None if it is not JSON."""
        return load_entry(entry)

    def join(self, entries: Iterable[bytes]) -> bytes:
        """Return the file that `split` would take apart into these entries."""
        return b"".join([entry + b"\n" for entry in entries])

    def suffix_of(self, entries: Sequence[bytes]) -> str:
        """Return the suffix of the file that `join` makes of entries."""
        return self.suffix

    def kind_of(self, value: Any) -> str:
        """Return what sort of entry this is, in the system's own words, for tables."""
        return str(value.get("type", "")) if isinstance(value, dict) else type(value).__name__

    # -- reading -------------------------------------------------------------------------------------------------

    def outline(self, value: Any) -> Any:
        """Return what `plan` needs of an entry, here all of it; `open_transcript` holds no more of a long file."""
        return value

    def plan(self, values: Sequence[Any]) -> ReadPlan:
        """Return which entries make up the conversation.

        Args:
            values: the entries as JSON values, or their outlines; None for an entry that is not JSON.
        """
        raise NotImplementedError

    def to_messages(
        self, group: MessageGroup, values: Sequence[Any], plan: ReadPlan, ids: ImportedIds
    ) -> list[Message]:
        """Return the messages of one group.

        Args:
            group: the group.
            values: the JSON values of its entries.
            plan: the result of `plan`.
            ids: source of canonical ids for messages and calls, the same on every reading.
        """
        raise NotImplementedError

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, conversation: Conversation) -> Iterator[Written]:
        """Yield the entries of a conversation: a header first if `before` is empty. Pure: ids are made of ids.

        Raises:
            TranscriptError: this system cannot hold it.
        """
        raise TranscriptError(f"files of {self.title} can be read, not written")

    def change_repeats(
        self, entries: Sequence[bytes], groups: Sequence[MessageGroup], changes: Mapping[int, bytes | None]
    ) -> dict[int, bytes | None]:
        """Return further changes, of entries that repeat messages from others or are numbered; none by default.

        Args:
            entries: entries of the file, before the changes.
            groups: the messages that they make.
            changes: index of an entry -> the new string; None for an omitted entry.
        """
        return {}

    def change_folder(self, value: Any, cwd: str) -> Any:
        """Return the value of an entry near the beginning of a file, with another folder in it.

        None if it names none, which is the default: for agents that continue a session in any folder.
        """
        return None

    # -- finding -------------------------------------------------------------------------------------------------

    def place(
        self, session_id: str, cwd: str, created_at: datetime, *, home: Path, environ: Mapping[str, str]
    ) -> SessionPlace | None:
        """Return where the agent looks for a session; None if it has no place for a file.

        Args:
            session_id: a UUID.
            cwd: the folder that the session belongs to.
            created_at: when it began.
            home: the user's home folder.
            environ: environment variables, some of which move the folders.
        """
        return None

    def gather(self, path: Path) -> bytes | None:
        """Return as one file what a session's folder, or its main file, holds; None if a file is whole by itself."""
        return None

    def scatter(self, data: bytes, name: str) -> Mapping[str, bytes] | None:
        """Return the files of a session's folder, from the one file that `gather` makes of them.

        Args:
            data: the one file.
            name: name of the folder; for a session without a folder, its id.

        Returns:
            path in the folder -> content; None if a session is a file.

        Raises:
            TranscriptError: a name of the file cannot be the name of a file in the folder.
        """
        return None

    def find(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path | str]:
        """Yield the paths of this system's session files on this machine, without opening them.

        Args:
            home: the user's home folder.
            environ: environment variables, some of which move the folders.
        """
        return iter(())


class DocumentFormat(SessionFormat):
    """A format whose file is one JSON document: entry 0 is the part around the list, each further entry an item of it.

    Attributes:
        items: name of the document's member that holds the list; "" where the document is the list itself.
        exact: False if its files may also be lines, of which an integer beyond 64 bits is a float in messages.
    """

    suffix: ClassVar[str] = ".json"
    items: ClassVar[str]
    exact: ClassVar[bool] = True

    def split(self, data: bytes) -> list[bytes]:
        """Return the document without its list, then the items."""
        return self.parse(data)[0]

    def parse(self, data: bytes, document: Any = None) -> tuple[list[bytes], list[Any]]:
        """Return the entries and their values; the file is parsed once."""
        read, exact, unchanged = load_document(data, document)
        values = self.pieces(exact)
        entries = list(map(dumps, values)) if unchanged is exact else list(map(dump_escaped, self.pieces(unchanged)))
        return entries, values if self.exact or exact is read else list(map(load_entry, entries))

    def pieces(self, document: Any) -> list[Any]:
        """Return the values of the entries of a document: None, or the part around the list, then the items.

        Raises:
            TypeError: it is not a document of this format.
        """
        if not self.items:
            if not isinstance(document, list):
                raise TypeError("the file is not a JSON list")
            return [None, *document]
        if not isinstance(document, dict):
            raise TypeError("the file is not a JSON object")
        held = document.get(self.items)
        return [{**document, self.items: None}, *held] if isinstance(held, list) and held else [document]

    def load(self, entry: bytes) -> Any:
        """Return the value of an entry, as `parse` does."""
        return load_exactly(entry) if self.exact else load_entry(entry)

    def join(self, entries: Iterable[bytes]) -> bytes:
        """Return the document, indented as such files are."""
        first, *items = map(load_unchanged, entries)
        whole = items if first is None or not self.items else {**first, self.items: items} if items else first
        return dump_document(whole) + b"\n"


def pick(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of an object's members that have these names."""
    return {name: value[name] for name in names if name in value}


@cache
def installed_formats() -> Mapping[str, SessionFormat]:
    """Return every installed system by name; one that fails to import is left out with one WARN."""
    found: dict[str, SessionFormat] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in found:
            _log.warning("two distributions bring the system %r; %s is not used", point.name, point.value)
            continue
        try:
            found[point.name] = point.load()
        except Exception as error:
            name = point.dist.name if point.dist else "?"
            _log.warning("the system %r of %s cannot be loaded: %s: %s", point.name, name, type(error).__name__, error)
    return found


def session_format(name: str) -> SessionFormat:
    """Return an installed system.

    Raises:
        TranscriptError: no format has this name; the message lists the installed ones.
    """
    found = installed_formats().get(name)
    if found is None:
        raise TranscriptError(f"no system {name!r}; there are {', '.join(installed_formats())}")
    return found


def list_files(folder: Path | str, pattern: str, *left_out: str) -> Iterator[str]:
    """Yield the paths of the files below a folder that match a pattern, in half the time of `Path.glob`.

    Args:
        folder: the folder; nothing is yielded if it does not exist or cannot be read.
        pattern: patterns of folders and of a file, such as `*/chats/*.json`; `**` stands for folders of any depth. No
            symbolic link is followed for it.
        left_out: patterns of the names of files that are left out.
    """
    first, _, rest = pattern.partition("/")
    try:
        with scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        return
    if first == "**":
        yield from list_files(folder, rest, *left_out)
        folders = [one for one in listed if one.is_dir(follow_symlinks=False)]
    elif rest:
        folders = [one for one in listed if fnmatch(one.name, first) and one.is_dir()]
        pattern = rest
    else:
        folders = []
        for one in listed:
            if fnmatch(one.name, first) and not any(fnmatch(one.name, name) for name in left_out):
                yield one.path
    for one in folders:
        yield from list_files(one.path, pattern, *left_out)


def find_files(
    systems: Iterable[SessionFormat], environ: Mapping[str, str]
) -> Iterator[tuple[SessionFormat, stat_result, str]]:
    """Yield the paths of the session files of systems on this machine, with their size and times."""
    home = Path(environ.get("HOME") or Path.home())
    for system in systems:
        for path in system.find(home, environ):
            try:
                status = stat(path)  # noqa: PTH116  there may be ten thousand
            except OSError:
                continue
            yield system, status, str(path)

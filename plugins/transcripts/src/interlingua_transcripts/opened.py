"""Read a long session file message by message."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any, overload

import attrs

from interlingua.types import Message
from interlingua_transcripts.files import (
    HEAD_BYTES,
    MAIN_FILES,
    NOT_JSON,
    ODD,
    attach_entries,
    entries_by_group,
    gc_paused,
    group_messages,
    parse_file,
    place_of,
    plan_entries,
    read_bytes,
    recognise,
    unknown_file,
)
from interlingua_transcripts.system import DocumentSystem, System, load_entry, system_of
from interlingua_transcripts.transcript import Note, Plan


class _Lines(Sequence[bytes]):
    """The lines of an open file, each read again when it is asked for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._starts = array("Q")
        self._lengths = array("Q")

    def read(self) -> Iterator[bytes]:
        """Yield each line while its place is noted; blank ones are left out."""
        at = 0
        for line in self._file:
            if line.strip():
                self._starts.append(at)
                self._lengths.append(len(line))
                yield line.removesuffix(b"\n")
            at += len(line)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        self._file.seek(self._starts[index])
        return self._file.read(self._lengths[index]).removesuffix(b"\n")


class _Values(Sequence[Any]):
    """The JSON values of entries, each made when it is asked for; `held` has some, until they are asked for once."""

    def __init__(self, entries: Sequence[bytes]) -> None:
        self._entries = entries
        self.held: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        value = self.held.pop(index, None)
        return load_entry(self._entries[index]) if value is None else value


class OpenTranscript:
    """A session whose messages are read one after the other: `for message in session`, as often as needed.

    Of a JSON Lines file, memory holds the entries of one message, the outline of each entry and, so that most files are
    parsed once, the values of the first lines. A file that is one JSON document, and a session that is a folder, is
    held whole.

    Attributes:
        system: whose file it is.
        plan: the session's facts: its id, version, title, folder, groups.
        counts: how many messages each group made, as far as they were read.
    """

    def __init__(self, system: System, plan: Plan, entries: Sequence[bytes], values: Sequence[Any]) -> None:
        self.system = system
        self.plan = plan
        self._notes: list[Note] = []
        self.counts: list[int] = []
        self._entries = entries
        self._values = values

    def __iter__(self) -> Iterator[Message]:
        for messages in self.groups():
            yield from messages

    def notes(self) -> list[Note]:
        """Return what was repaired, guessed or not understood; complete after the messages were read."""
        return sorted([*self.plan.notes, *self._notes], key=place_of)

    def groups(self) -> Iterator[list[Message]]:
        """Yield the messages of each group of the plan: none where they could not be understood."""
        self.counts, self._notes = [], []
        for messages in group_messages(self.system, self.plan, self._values, self._notes):
            self.counts.append(len(messages))
            yield messages

    def context(self) -> tuple[Message, ...]:
        """Return the messages that the model would see next: after a compaction, not all of them."""
        if self.plan.context is None:
            return tuple(self)
        wanted = set(self.plan.context)
        found = {number: messages for number, messages in enumerate(self.groups()) if number in wanted}
        return tuple([message for number in self.plan.context for message in found.get(number, ())])

    def updated_at(self) -> datetime | None:
        """Return the time of the last message, read for itself; None without any."""
        for group in reversed(self.plan.groups):
            alone = attrs.evolve(self.plan, groups=[group])
            for messages in group_messages(self.system, alone, self._values, []):
                if messages:
                    return messages[-1].created_at
        return None

    def with_entries(self) -> Iterator[Message]:
        """Yield the messages as `with_entries` gives them: `from_messages` makes the transcript of them again."""
        of_groups = entries_by_group(self.plan.groups, len(self._entries))
        about = {"system": self.system.name, "session": self.plan.session_id}
        pairs = ((messages, of_groups[number]) for number, messages in enumerate(self.groups()))
        return attach_entries(pairs, self._entries, about)


@contextmanager
def open_transcript(
    source: str | Path | bytes, system: str | System | None = None, *, hold: int = 8 << 20
) -> Iterator[OpenTranscript]:
    """Open one session, to read it message by message.

    Args:
        source: a file, or its bytes; a folder where a system keeps each session in one.
        system: its system; None finds it out by the content.
        hold: bytes of lines at the beginning that are parsed once, and held as values until their messages are read;
            the lines after them are parsed twice.

    Raises:
        TranscriptError: no installed system knows this file.
        OSError: the file cannot be read.
    """
    path = None if isinstance(source, bytes) else Path(source)
    with _open_file(source) as file:
        named = system_of(system) if isinstance(system, str) else system
        reader, document = _detected(file, path) if named is None else (named, None)
        file.seek(0)
        if isinstance(reader, DocumentSystem) or type(reader).parse is not System.parse:
            entries: Sequence[bytes]
            values: Sequence[Any]
            entries, values = parse_file(reader, file.read(), path, document)
            outlines = values
        else:
            entries = lines = _Lines(file)
            values = kept = _Values(lines)
            outlines = _outlines(reader, lines, kept.held, hold)
        plan = plan_entries(reader, outlines)
        unread = [at for at, outline in enumerate(outlines) if outline is None and entries[at] != b"null"]
        plan.notes += [Note(at, NOT_JSON) for at in unread]
        del outlines
        yield OpenTranscript(reader, plan, entries, values)


@gc_paused()
def _outlines(system: System, lines: _Lines, held: dict[int, Any], hold: int) -> list[Any]:
    """Return what a plan needs of each line; of the first `hold` bytes all of it, which `held` gets as well."""
    found = []
    for number, line in enumerate(lines.read()):
        value = load_entry(line)
        hold -= len(line)
        if hold >= 0:
            held[number] = value
        found.append(value if hold >= 0 else _outline(system, value))
    return found


def _outline(system: System, value: Any) -> Any:
    try:
        return system.outline(value)
    except ODD:  # the plan leaves it aside, as it does where a file is read whole
        return value


def _open_file(source: str | Path | bytes) -> IO[bytes]:
    if isinstance(source, bytes):
        return BytesIO(source)
    path = Path(source)
    if path.is_dir() or path.name in MAIN_FILES:
        return BytesIO(read_bytes(path))
    file = path.open("rb")
    if file.seekable():
        return file
    with file:  # a pipe
        return BytesIO(file.read())


def _detected(file: IO[bytes], path: Path | None) -> tuple[System, Any]:
    """Return the system, and the value of a file that is one JSON document."""
    head = file.read(HEAD_BYTES)
    found = recognise(head)
    if found is not None:
        return found[0], None if file.read(1) else found[2]
    if (found := recognise(head + file.read())) is None:
        raise unknown_file(head, path)
    return found[0], found[2]

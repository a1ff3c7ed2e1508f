"""Read a long session file message by message."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any

import attrs

from interlingua.types import Message
from interlingua_transcripts.files import (
    HEAD_BYTES,
    NOT_JSON,
    ODD,
    attach_entries,
    entries_by_group,
    group_messages,
    open_source,
    parse_file,
    path_of,
    place_of,
    plan_entries,
    recognise,
    unknown_file,
)
from interlingua_transcripts.imported import rename_calls
from interlingua_transcripts.lazy import EntryValues, FileEntries, LazyMessages
from interlingua_transcripts.system import DocumentFormat, SessionFormat, session_format
from interlingua_transcripts.transcript import Note, ReadPlan, Transcript


class OpenTranscript:
    """A session whose messages are read one after the other: `for message in session`, as often as needed.

    Of a JSON Lines file, memory holds the entries of one message, the outline of each entry and, so that most files are
    parsed once, the values of the first lines. A file that is one JSON document, and a session that is a folder, is
    held whole.

    Attributes:
        system: the system that wrote the file.
        plan: the session's facts: its id, version, title, folder, groups.
        entries: the JSON text of each entry.
        counts: how many messages each group made, as far as they were read.
    """

    def __init__(self, system: SessionFormat, plan: ReadPlan, entries: Sequence[bytes], values: Sequence[Any]) -> None:
        self.system = system
        self.plan = plan
        self._notes: list[Note] = []
        self.counts: list[int] = []
        self.entries = entries
        self._values = values
        self._renamed: dict[int, Sequence[str]] = {}

    def __iter__(self) -> Iterator[Message]:
        for messages in self.groups():
            yield from messages

    def notes(self) -> list[Note]:
        """Return what was repaired, guessed or not understood; complete after the messages were read."""
        return sorted([*self.plan.notes, *self._notes], key=place_of)

    def groups(self) -> Iterator[list[Message]]:
        """Yield the messages of each group of the plan: none where they could not be understood."""
        self.counts, self._notes = [], []
        for messages in group_messages(self.system, self.plan, self._values, self._notes, self._renamed):
            self.counts.append(len(messages))
            yield messages

    def context(self) -> tuple[Message, ...]:
        """Return the messages that the model would see next: after a compaction, not all of them."""
        if self.plan.context is None:
            return tuple(self)
        wanted = {one if isinstance(one, int) else one[0] for one in self.plan.context}
        return tuple(
            self.plan.seen({number: messages for number, messages in enumerate(self.groups()) if number in wanted})
        )

    def updated_at(self) -> datetime | None:
        """Return the time of the last message, read for itself; None without any."""
        for number in reversed(range(len(self.plan.groups))):
            if messages := self.group(number):
                return messages[-1].created_at
        return None

    def group(self, number: int) -> list[Message]:
        """Return the messages of one group, read for itself; their ids rise only if all are read.

        Calls that share an id have own ids if all groups were read before.
        """
        alone = attrs.evolve(self.plan, groups=[self.plan.groups[number]])
        found = next(group_messages(self.system, alone, self._values, []))
        names = self._renamed.get(number)
        return found if names is None else rename_calls(found, names)

    def with_entries(self) -> Iterator[Message]:
        """Yield the messages as `with_entries` returns them: `from_messages` restores the transcript from them."""
        of_groups = entries_by_group(self.plan.groups, len(self.entries))
        about = {"system": self.system.name, "session": self.plan.session_id}
        pairs = ((messages, of_groups[number]) for number, messages in enumerate(self.groups()))
        return attach_entries(pairs, self.entries, about)

    def transcript(self) -> Transcript:
        """Return the session as `read_transcript` does, its entries and messages read when they are asked for."""
        messages = _SessionMessages(self)
        starts = messages.starts
        return Transcript(
            system=self.system.name,
            version=self.plan.version,
            session_id=self.plan.session_id,
            messages=messages,
            entries=self.entries,
            groups=tuple(self.plan.groups),
            counts=tuple([end - start for start, end in pairwise(starts)]),
            context=_ContextMessages(self),
            branches=self.plan.branches,
            title=self.plan.title,
            cwd=self.plan.cwd,
            notes=tuple(self.notes()),
        )


class _SessionMessages(LazyMessages):
    """The messages of an open session."""

    def __init__(self, session: OpenTranscript) -> None:
        self._session = session
        self._last: tuple[int, list[Message]] = (-1, [])

    def __iter__(self) -> Iterator[Message]:
        return iter(self._session)

    def one(self, index: int) -> Message:
        number = bisect_right(self.starts, index) - 1
        if self._last[0] != number:
            self._last = number, self._session.group(number)
        message = self._last[1][index - self.starts[number]]
        return attrs.evolve(message, id=self.overview.ids[index])

    @cached_property
    def starts(self) -> Sequence[int]:
        """Index of the first message of each group, and the number of all."""
        len(self)  # counts the messages of each group
        return [0, *accumulate(self._session.counts)]


class _ContextMessages(LazyMessages):
    """The messages of an open session that the model would see next."""

    def __init__(self, session: OpenTranscript) -> None:
        self._session = session

    def __iter__(self) -> Iterator[Message]:
        return iter(self._session.context())


@contextmanager
def open_transcript(
    source: str | Path | bytes | IO[bytes], system: str | SessionFormat | None = None, *, hold: int = 8 << 20
) -> Iterator[OpenTranscript]:
    """Open one session, to read it message by message.

    Args:
        source: a file, its bytes, or the file open already; a folder if the system keeps each session in a folder.
        system: its system; None finds it out by the content.
        hold: bytes of lines at the beginning that are parsed once, and held as values until their messages are read;
            the lines after them are parsed twice.

    Raises:
        TranscriptError: no installed system knows this file.
        OSError: the file cannot be read.
    """
    path = path_of(source)
    with open_source(source) as file:
        named = session_format(system) if isinstance(system, str) else system
        reader, document = _detected(file, path) if named is None else (named, None)
        file.seek(0)
        if isinstance(reader, DocumentFormat) or type(reader).parse is not SessionFormat.parse:
            entries, parsed = parse_file(reader, file.read(), path, document)
            yield _opened(reader, entries, parsed, parsed)
        else:
            lines = FileEntries(file)
            values = EntryValues(lines, reader.load)
            yield _opened(reader, lines, values, _outlines(reader, lines.read_lines(), values.held, hold))


def open_entries(system: SessionFormat, entries: Sequence[bytes]) -> OpenTranscript:
    """Open a session of entries that were read before; the first of them are parsed once, as `open_transcript` does."""
    values = EntryValues(entries, system.load)
    return _opened(system, entries, values, _outlines(system, entries, values.held, 1 << 20))


def _opened(
    system: SessionFormat, entries: Sequence[bytes], values: Sequence[Any], outlines: list[Any]
) -> OpenTranscript:
    plan = plan_entries(system, outlines)
    unread = [at for at, outline in enumerate(outlines) if outline is None and entries[at] != b"null"]
    plan.notes += [Note(at, NOT_JSON) for at in unread]
    return OpenTranscript(system, plan, entries, values)


def _outlines(system: SessionFormat, lines: Iterable[bytes], held: dict[int, Any], hold: int) -> list[Any]:
    """Return what a plan needs of each line; of the first `hold` bytes all of it, which `held` gets as well."""
    found = []
    for number, line in enumerate(lines):
        value = system.load(line)
        hold -= len(line)
        if hold >= 0:
            held[number] = value
        found.append(value if hold >= 0 else _outline(system, value))
    return found


def _outline(system: SessionFormat, value: Any) -> Any:
    try:
        return system.outline(value)
    except ODD:  # the plan leaves it aside, as it does if a file is read whole
        return value


def _detected(file: IO[bytes], path: Path | None) -> tuple[SessionFormat, Any]:
    """Return the system, and the value of a file that is one JSON document."""
    head = file.read(HEAD_BYTES)
    found = recognise(head)
    if found is not None:
        return found[0], None if file.read(1) else found[2]
    if (found := recognise(head + file.read())) is None:
        raise unknown_file(head, path)
    return found[0], found[2]

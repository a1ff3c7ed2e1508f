"""Read a session file: whose it is, its entries, its messages."""

from __future__ import annotations

import zlib
from base64 import b64encode
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from gzip import BadGzipFile, GzipFile
from io import BytesIO
from itertools import accumulate, islice, pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import attrs

from interlingua import CallerError
from interlingua.types import Message
from interlingua_transcripts.imported import CallNames, ImportedIds
from interlingua_transcripts.loading import load_entry, load_flagged
from interlingua_transcripts.system import DocumentFormat, SessionFormat, installed_formats, session_format
from interlingua_transcripts.transcript import MessageGroup, Note, ReadPlan, Transcript, TranscriptError

ODD = (ArithmeticError, AttributeError, CallerError, LookupError, TypeError, ValueError)  # what odd values lead to
_REPAIRS = 50  # entries that may be left aside before a plan is given up
MAIN_FILES = ("session.json", "threads.db")  # of sessions that are folders, or databases
_HEAD = 40  # lines that tell a system
HEAD_BYTES = 4 << 20  # no more of the file is read for them
_BEGINNING = 4_096  # bytes of a file of text that tell its system
NOT_JSON = "not JSON; kept unchanged"
_GZIP = b"\x1f\x8b"
_PACKED = {b"PK\x03\x04": "unzip", b"(\xb5/\xfd": "zstd -d"}  # zip, Zstandard: first bytes -> what unpacks it
_LARGEST = 16 << 30  # bytes that a compressed file may unpack to; more is not a session
APP = "interlingua.session_formats"
"""Under which name a message keeps the entries it came from (`MessageMetadata.app`)."""


def detect_format(data: bytes) -> tuple[SessionFormat, str] | None:
    """Return the system whose file this is, and its format's version; None if no installed system knows it."""
    found = recognise(data)
    return None if found is None else found[:2]


def recognise(data: bytes) -> tuple[SessionFormat, str, Any] | None:
    """Return the system, its format's version and, of a file that is one JSON document, its value; else None.

    The value is None, too, if something in it was repaired.
    """
    texts = list(islice(filter(bytes.strip, data[:HEAD_BYTES].split(b"\n")), _HEAD))
    flagged = [load_flagged(text) for text in texts[:2]]
    lines = [value for value, _ in flagged]
    document, unchanged = None, True
    if lines[:1] == [None]:  # no JSON Lines, unless the first line is broken
        document, unchanged = load_flagged(data)
    elif len(texts) == 1 and len(data) <= HEAD_BYTES:
        document, unchanged = flagged[0]
    if document is None or len(texts) == 1:
        lines += map(load_entry, texts[2:])
    whole = lines if document is None else [document]
    for system in installed_formats().values():
        head = whole if isinstance(system, DocumentFormat) else lines
        if system.text:
            head = [data[:_BEGINNING].decode(errors="replace")]
        version = _detect(system, head) if (head and head[0] is not None) or len(head) > 1 else None
        if version is not None:
            return system, version, document if unchanged else None
    return None


def _detect(system: SessionFormat, head: Sequence[Any]) -> str | None:
    try:
        return system.detect(head)
    except ODD:  # a value of a type that this system's files never have
        return None


def read_transcript(source: str | Path | bytes, system: str | SessionFormat | None = None) -> Transcript:
    """Read one session.

    Unreadable parts are kept unchanged and listed in the notes: a cut last line, a line that is not JSON, an
    entry of an unknown kind.

    Args:
        source: a file, or its bytes; a folder if the system keeps each session in a folder.
        system: its system; None finds it out by the content.

    Raises:
        TranscriptError: no installed system knows this file.
        OSError: the file cannot be read.
    """
    path = path_of(source)
    with open_source(source) as file:
        data = file.read()
    document = None
    if system is None:
        found = recognise(data)
        if found is None:
            raise unknown_file(data, path)
        system, _, document = found
    reader = system if isinstance(system, SessionFormat) else session_format(system)
    return _read(reader, *parse_file(reader, data, path, document))


def unknown_file(head: bytes, path: str | Path | None) -> TranscriptError:
    """Return the error for a file that no installed system knows, by its first bytes."""
    if not head.strip():
        return TranscriptError("the file is empty", path=path)
    for letters, command in _PACKED.items():
        if head.startswith(letters):
            return TranscriptError(f"the file is compressed; unpack it first (`{command}`)", path=path)
    if head.startswith(b"SQLite format 3"):
        return TranscriptError("the file is a database; of these, only Zed's `threads.db` is read", path=path)
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return TranscriptError("the file is UTF-16; save it as UTF-8", path=path)
    names = ", ".join(installed_formats())
    return TranscriptError(f"not a session file of a known system ({names})", path=path)


def parse_file(
    system: SessionFormat, data: bytes, path: str | Path | None, document: Any = None
) -> tuple[list[bytes], list[Any]]:
    """Return a file's entries and their values; `document` is its value if that is known.

    Raises:
        TranscriptError: the file has another format.
    """
    try:
        return system.parse(data, document)
    except (ValueError, TypeError, AttributeError) as error:
        raise TranscriptError(
            f"not a file of {system.title}: {error}", path=None if path is None else str(path)
        ) from error


def open_source(source: str | Path | bytes | IO[bytes]) -> IO[bytes]:
    """Open a session's file, from its beginning and seekable; what is compressed by gzip is unpacked.

    Where a system keeps a session in a folder, its files are read as one.

    Args:
        source: the file, its bytes, or the file open already.

    Raises:
        TranscriptError: it is compressed and damaged, or unpacks to more than 16 GiB.
        OSError: it cannot be read.
    """
    path = path_of(source)
    if path is None:
        file = BytesIO(source) if isinstance(source, bytes) else cast("IO[bytes]", source)
    elif (gathered := _gather(path)) is not None:
        file = BytesIO(gathered)
    else:
        file = path.open("rb", buffering=1 << 17)  # lines are longer than the usual 8 KB
        if not file.seekable():  # a pipe
            with file:
                file = BytesIO(file.read())
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return _unpack(file, path) if packed else file


def path_of(source: str | Path | bytes | IO[bytes]) -> Path | None:
    """Return the file's path, if the source is one."""
    return Path(source) if isinstance(source, str | Path) else None


def _gather(path: Path) -> bytes | None:
    if path.is_dir() or path.name in MAIN_FILES:
        for system in installed_formats().values():
            if (data := system.gather(path)) is not None:
                return data
    return None


def _unpack(packed: IO[bytes], path: Path | None) -> IO[bytes]:
    """Return what a gzip file holds, in a temporary file."""
    file = TemporaryFile()  # noqa: SIM115  the caller closes it
    try:
        with packed, GzipFile(fileobj=packed) as unpacked:
            while data := unpacked.read1(1 << 20):
                file.write(data)
                if file.tell() > _LARGEST:
                    raise TranscriptError(f"it unpacks to more than {_LARGEST:,} bytes", path=path)
        file.seek(0)
    except (EOFError, zlib.error, BadGzipFile) as error:
        file.close()
        raise TranscriptError(f"the gzip file is damaged: {error}", path=path) from error
    except BaseException:
        file.close()
        raise
    return file


def _read(system: SessionFormat, entries: Sequence[bytes], values: list[Any]) -> Transcript:
    plan = plan_entries(system, values)
    unread = [at for at, value in enumerate(values) if value is None and entries[at] != b"null"]
    notes = [Note(at, NOT_JSON) for at in unread]
    messages: list[Message] = []
    counts = []
    for group, made in zip(plan.groups, group_messages(system, plan, values, notes), strict=True):
        messages += made
        counts.append(len(made))
        for at in group.entries:  # memory for the next messages
            values[at] = None
    return Transcript(
        system=system.name,
        version=plan.version,
        session_id=plan.session_id,
        messages=tuple(messages),
        entries=tuple(entries),
        groups=tuple(plan.groups),
        counts=tuple(counts),
        context=_context(plan, messages, counts),
        branches=plan.branches,
        title=plan.title,
        cwd=plan.cwd,
        notes=tuple(sorted([*plan.notes, *notes], key=place_of)),
    )


def place_of(note: Note) -> int:
    """Return the position of a note among others: notes of the whole file come first."""
    return -1 if note.entry is None else note.entry


def plan_entries(system: SessionFormat, values: Sequence[Any]) -> ReadPlan:
    """Plan the conversation, as `_plan_understood`; facts about the session that are not strings are left out."""
    plan = _plan_understood(system, values)
    for name, otherwise in (("session_id", ""), ("version", ""), ("title", None), ("cwd", None)):
        if not isinstance(getattr(plan, name), str):
            setattr(plan, name, otherwise)
    return plan


def _plan_understood(system: SessionFormat, values: Sequence[Any]) -> ReadPlan:
    """Plan the conversation; entries that a system cannot make anything of are left aside, one by one, with a note."""
    try:
        return system.plan(values)
    except ODD as error:
        why = f"{type(error).__name__}: {error}"
    notes: list[Note] = []
    left = list(values)
    for _ in range(min(_REPAIRS, len(left))):
        at = bisect_left(range(len(left) - 1), True, key=lambda last: not _is_planned(system, left, last))
        left[at] = None
        notes.append(Note(at, f"not understood, kept unchanged: {why}"))
        try:
            plan = system.plan(left)
        except ODD as error:
            why = f"{type(error).__name__}: {error}"
        else:
            plan.notes += notes
            return plan
    return ReadPlan(session_id="", notes=[Note(None, f"no conversation was found: {why}")])


def _is_planned(system: SessionFormat, values: Sequence[Any], last: int) -> bool:
    try:
        system.plan([*values[: last + 1], *[None] * (len(values) - last - 1)])
    except ODD:
        return False
    return True


def _context(plan: ReadPlan, messages: Sequence[Message], counts: Sequence[int]) -> tuple[Message, ...]:
    if plan.context is None:
        return tuple(messages)
    starts = [0, *accumulate(counts)]
    return tuple(plan.seen({at: messages[start:end] for at, (start, end) in enumerate(pairwise(starts))}))


def group_messages(
    system: SessionFormat,
    plan: ReadPlan,
    values: Sequence[Any],
    notes: list[Note],
    renamed: dict[int, Sequence[str]] | None = None,
) -> Iterator[list[Message]]:
    """Yield each group's messages; one that cannot be understood has none, and a note.

    Args:
        system: the system that wrote the file.
        plan: plan of the conversation.
        values: the JSON values of the entries.
        notes: gets the notes.
        renamed: gets, for the number of each group, the ids of its calls and results if calls of the file share an id.
    """
    ids = ImportedIds(system.name, plan.session_id)
    names = CallNames(renamed)
    for group in plan.groups:
        ids.begin(group.key, group.entries[0])
        try:
            made = system.to_messages(group, [values[at] for at in group.entries], plan, ids)
        except ODD as error:
            notes.append(Note(group.entries[0], f"not understood, kept unchanged: {type(error).__name__}: {error}"))
            made = []
        yield names.rename(made)


def kind_of(system: SessionFormat, value: Any) -> str:
    """Return the kind of an entry, also if it is not JSON or unknown to the format."""
    if value is None:
        return "not JSON"
    try:
        return system.kind_of(value)
    except ODD:
        return "unknown"


def entries_by_group(groups: Sequence[MessageGroup], count: int) -> list[list[int]]:
    """Return, for each group, the indexes of its entries and of those that follow them; one list more for no group."""
    place: dict[int, int] = {}
    for number, group in enumerate(groups):
        place.update(dict.fromkeys(group.entries, number))
    found: list[list[int]] = [[] for _ in range(len(groups) + 1)]
    beside = 0
    for index in range(count):
        beside = place.get(index, beside)
        found[beside].append(index)
    return found


def attach_entries(
    groups: Iterable[tuple[Iterable[Message], list[int]]], entries: Sequence[bytes], about: Mapping[str, str]
) -> Iterator[Message]:
    """Yield messages with their entries; those of groups without one go with the next message, or with the last.

    Args:
        groups: each group's messages, and the indexes of its entries.
        entries: the entries' JSON strings.
        about: the system and the session's id.
    """
    held: Message | None = None
    own: list[int] = []
    waiting: list[int] = []

    def kept(message: Message, indexes: list[int]) -> Message:
        texts = [[index, *_as_text(entries[index])] for index in sorted(indexes)]
        return with_app(message, {**message.metadata.app, APP: {**about, "id": message.id, "entries": texts}})

    for messages, indexes in groups:
        waiting += indexes
        for message in messages:
            if held is not None:
                yield kept(held, own)
            held, own, waiting = message, waiting, []
    if held is not None:
        yield kept(held, own + waiting)


def _as_text(entry: bytes) -> tuple[str, ...]:
    try:
        return (entry.decode(),)
    except UnicodeDecodeError:
        return (b64encode(entry).decode(), "base64")


def with_app(message: Message, app: Mapping[str, Any]) -> Message:
    """Return the message with other values kept beside it."""
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, app=app))

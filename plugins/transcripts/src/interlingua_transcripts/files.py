"""Read a session file into a transcript, write one, and keep a file's entries with its messages on the way."""

from __future__ import annotations

import gc
from base64 import b64decode, b64encode
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any

import attrs
import orjson

from interlingua import CallerError
from interlingua.types import DEFAULT_SESSION, ContentBlock, Message, Role, ToolResultBlock, ToolUseBlock
from interlingua_transcripts.imported import EPOCH, ImportedIds
from interlingua_transcripts.system import DocumentSystem, System, installed_systems, load_entry, system_of
from interlingua_transcripts.transcript import Conversation, Group, Note, Plan, Transcript, TranscriptError

ODD = (ArithmeticError, AttributeError, CallerError, LookupError, TypeError, ValueError)  # what odd values lead to
_REPAIRS = 50  # entries that may be left aside before a plan is given up
MAIN_FILES = ("session.json",)  # of sessions that are folders
_HEAD = 40  # lines that tell a system
HEAD_BYTES = 4 << 20  # no more of the file is looked at for them
NOT_JSON = "not JSON; kept as it is"
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"(\xb5/\xfd")  # gzip, zip, Zstandard
APP = "interlingua.transcripts"
"""Under which name a message keeps the entries it came from (`MessageMetadata.app`)."""


def detect_system(data: bytes) -> tuple[System, str] | None:
    """Return the system whose file this is, and its format's version; None where no installed system knows it."""
    found = recognise(data)
    return None if found is None else found[:2]


def recognise(data: bytes) -> tuple[System, str, Any] | None:
    """Return the system, its format's version and, of a file that is one JSON document, its value; else None."""
    texts = list(islice(filter(bytes.strip, data[:HEAD_BYTES].split(b"\n")), _HEAD))
    lines = [load_entry(text) for text in texts[:2]]
    document = None
    if lines[:1] == [None]:  # no JSON Lines, unless the first line is broken
        document = load_entry(data)
    elif len(texts) == 1 and len(data) <= HEAD_BYTES:
        document = lines[0]
    if document is None or len(texts) == 1:
        lines += map(load_entry, texts[2:])
    whole = lines if document is None else [document]
    for system in installed_systems().values():
        head = whole if isinstance(system, DocumentSystem) else lines
        version = _detect(system, head) if (head and head[0] is not None) or len(head) > 1 else None
        if version is not None:
            return system, version, document
    return None


def _detect(system: System, head: Sequence[Any]) -> str | None:
    try:
        return system.detect(head)
    except ODD:  # a value of a type that this system's files never have
        return None


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause Python's cycle collector while a file is read; it goes on afterwards, unless it was off before.

    Every few hundred new objects start the collector, and each time it walks over what was just read, all of which
    stays (docs/explanation/performance.md). Of two threads that do this at once, the first to finish ends the pause for
    both: that costs time and nothing else.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@gc_paused()
def read_transcript(source: str | Path | bytes, system: str | System | None = None) -> Transcript:
    """Read one session.

    What cannot be read of it is kept as it stands and named in the notes: a cut last line, a line that is not JSON, an
    entry of an unknown kind.

    Args:
        source: a file, or its bytes; a folder where a system keeps each session in one.
        system: its system; None finds it out by the content.

    Raises:
        TranscriptError: no installed system knows this file.
        OSError: the file cannot be read.
    """
    path = None if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else read_bytes(Path(source))
    document = None
    if system is None:
        found = recognise(data)
        if found is None:
            raise unknown_file(data, path)
        system, _, document = found
    reader = system if isinstance(system, System) else system_of(system)
    return _read(reader, *parse_file(reader, data, path, document))


def unknown_file(head: bytes, path: str | Path | None) -> TranscriptError:
    """Return the error for a file that no installed system knows, by its first bytes."""
    if not head.strip():
        return TranscriptError("the file is empty", path=path)
    if head.startswith(_PACKED):
        return TranscriptError("the file is compressed; unpack it first", path=path)
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return TranscriptError("the file is UTF-16; save it as UTF-8", path=path)
    names = ", ".join(installed_systems())
    return TranscriptError(f"not a session file of a known system ({names})", path=path)


def parse_file(
    system: System, data: bytes, path: str | Path | None, document: Any = None
) -> tuple[list[bytes], list[Any]]:
    """Return a file's entries and their values; `document` is its value where that is known.

    Raises:
        TranscriptError: it is none of this system.
    """
    try:
        return system.parse(data, document)
    except (ValueError, TypeError, AttributeError) as error:
        raise TranscriptError(
            f"not a file of {system.title}: {error}", path=None if path is None else str(path)
        ) from error


def read_bytes(path: Path) -> bytes:
    """Return a session's file; where a system keeps a session in a folder, its files as one.

    Raises:
        OSError: it cannot be read.
    """
    if path.is_dir() or path.name in MAIN_FILES:
        for system in installed_systems().values():
            if (data := system.gather(path)) is not None:
                return data
    return path.read_bytes()


@gc_paused()
def read_entries(system: System, entries: Sequence[bytes]) -> Transcript:
    """Read a session from the JSON texts of its entries."""
    return _read(system, entries, [load_entry(entry) for entry in entries])


def _read(system: System, entries: Sequence[bytes], values: list[Any]) -> Transcript:
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
    """Return where a note stands among others: those of the whole file are first."""
    return -1 if note.entry is None else note.entry


def plan_entries(system: System, values: Sequence[Any]) -> Plan:
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
        notes.append(Note(at, f"not understood, kept as it is: {why}"))
        try:
            plan = system.plan(left)
        except ODD as error:
            why = f"{type(error).__name__}: {error}"
        else:
            plan.notes += notes
            return plan
    return Plan(session_id="", notes=[Note(None, f"no conversation was found: {why}")])


def _is_planned(system: System, values: Sequence[Any], last: int) -> bool:
    try:
        system.plan([*values[: last + 1], *[None] * (len(values) - last - 1)])
    except ODD:
        return False
    return True


def _context(plan: Plan, messages: Sequence[Message], counts: Sequence[int]) -> tuple[Message, ...]:
    if plan.context is None:
        return tuple(messages)
    starts = [0, *accumulate(counts)]
    return tuple([message for at in plan.context for message in messages[starts[at] : starts[at + 1]]])


def group_messages(system: System, plan: Plan, values: Sequence[Any], notes: list[Note]) -> Iterator[list[Message]]:
    """Yield each group's messages; one that cannot be understood has none, and a note."""
    ids = ImportedIds(system.name, plan.session_id)
    for group in plan.groups:
        ids.begin(group.key, group.entries[0])
        try:
            yield system.to_messages(group, [values[at] for at in group.entries], plan, ids)
        except ODD as error:
            notes.append(Note(group.entries[0], f"not understood, kept as it is: {type(error).__name__}: {error}"))
            yield []


def write_transcript(transcript: Transcript, system: str | System | None = None) -> bytes:
    """Write a session as a file.

    Args:
        transcript: what was read, or made of messages by `transcript_of`.
        system: of the file; None is the transcript's own. To its own system, entries whose messages are unchanged are
            written as they were.

    Raises:
        TranscriptError: the system's files are only read, or cannot hold this conversation.
    """
    target = system_of(transcript.system) if system is None else system
    target = target if isinstance(target, System) else system_of(target)
    return target.join(write_entries(transcript, target))


def write_entries(transcript: Transcript, system: System) -> list[bytes]:
    """Return the entries of a session in a system's format."""
    own = system.name == transcript.system
    if own and not transcript.entries and not transcript.messages:
        return []  # an empty file
    if not own or not transcript.entries:
        return [orjson.dumps(one.value) for one in system.write(new_conversation(transcript, transcript.messages))]
    before = read_entries(system, transcript.entries)
    if before.messages == transcript.messages:
        return list(transcript.entries)
    return _changed_entries(transcript, before, system)


def _changed_entries(transcript: Transcript, before: Transcript, system: System) -> list[bytes]:
    """Return a file's entries with the changes that its messages got: edited, left out, added at the end."""
    known = {message.id for message in before.messages}
    now = {message.id: message for message in transcript.messages}
    whole = new_conversation(before, before.messages)
    entries: list[bytes | None] = list(before.entries)
    at = 0
    for group, count in zip(before.groups, before.counts, strict=True):
        old = before.messages[at : at + count]
        at += count
        new = [now[message.id] for message in old if message.id in now]
        if tuple(new) == old:
            continue
        one_line = len(group.entries) == 1 and all(message.role is Role.TOOL for message in old)
        was, becomes = (_written_entries(system, whole, messages, one_line) for messages in (old, new))
        values = [load_entry(before.entries[index]) for index in group.entries]
        for index, value, old_value, new_value in zip(
            group.entries, values, paired(system, values, was), paired(system, values, becomes), strict=True
        ):
            if new_value is None and (old_value is not None or not becomes):
                entries[index] = None
            elif old_value != new_value:
                entries[index] = orjson.dumps(patched(value, old_value, new_value))
    if system.links is not None:
        _link_past(entries, before.entries, *system.links)
    kept = [entry for entry in entries if entry is not None]
    added = [message for message in transcript.messages if message.id not in known]
    if added:
        conversation = attrs.evolve(
            new_conversation(transcript, added),
            before=[load_entry(entry) for entry in kept],
            branch=_branch(before, entries),
        )
        kept += [orjson.dumps(one.value) for one in system.write(conversation)]
    return kept


def _written_entries(system: System, whole: Conversation, messages: Sequence[Message], one_line: bool) -> list[Any]:
    """Return the entries a system writes for the messages of a group; results that shared an entry share one again."""
    if not messages:
        return []
    conversation = attrs.evolve(whole, messages=messages, spread={} if one_line else whole.spread)
    return [one.value for one in system.write(conversation) if one.messages]


def _link_past(entries: list[bytes | None], before: Sequence[bytes], own: str, parent: str) -> None:
    """Give the children of entries that are left out the nearest ancestor that is kept."""
    gone = [load_entry(was) for was, entry in zip(before, entries, strict=True) if entry is None]
    above = {str(value[own]): value.get(parent) for value in gone if isinstance(value, dict) and own in value}
    if not above:
        return
    for at, entry in enumerate(entries):
        value = None if entry is None else load_entry(entry)
        if isinstance(value, dict) and str(value.get(parent)) in above:
            found: Any = value[parent]
            for _ in above:  # no farther: broken files have circles
                found = above.get(str(found), found)
            entries[at] = orjson.dumps({**value, parent: None if str(found) in above else found})


def _branch(before: Transcript, entries: Sequence[bytes | None]) -> list[Any]:
    """Return the values of the active branch's entries, without what follows the last kept message."""
    last = max((at for group in before.groups for at in group.entries if entries[at] is not None), default=-1)
    left_out = (at for at in range(last + 1, len(entries)) if entries[at] is None)
    kept = islice(enumerate(entries), next(left_out, len(entries)))
    return [load_entry(entry) for at, entry in kept if entry is not None and at not in before.branches]


def paired(system: System, values: Sequence[Any], made: Sequence[Any]) -> list[Any]:
    """Return, for each entry of a group, the one written anew for it: of the same kind, in order; else None."""
    left: dict[str, list[Any]] = {}
    for value in made:
        left.setdefault(kind_of(system, value), []).append(value)
    waiting = {kind: iter(found) for kind, found in left.items()}
    return [next(waiting.get(kind_of(system, value), iter(())), None) for value in values]


def kind_of(system: System, value: Any) -> str:
    """Return what sort of entry this is, also of one that is not JSON or like none of the system's."""
    if value is None:
        return "not JSON"
    try:
        return system.kind_of(value)
    except ODD:
        return "unknown"


def patched(value: Any, was: Any, becomes: Any) -> Any:
    """Return a JSON value with the changes between two others made to it; what they share stays as it is."""
    if was == becomes:
        return value
    if isinstance(value, dict) and isinstance(was, dict) and isinstance(becomes, dict):
        made = {name: item for name, item in value.items() if name in becomes or name not in was}
        for name, item in becomes.items():
            if name not in was:
                made[name] = item
            elif was[name] != item:
                made[name] = patched(made.get(name), was[name], item)
        return made
    lists = isinstance(value, list) and isinstance(was, list) and isinstance(becomes, list)
    if lists and len(value) == len(was) == len(becomes):
        return [patched(*three) for three in zip(value, was, becomes, strict=True)]
    return becomes


def new_conversation(transcript: Transcript, messages: Sequence[Message]) -> Conversation:
    """Return what a system writes of these messages, with the facts of the session they are of."""
    began = transcript.messages[0].created_at if transcript.messages else EPOCH
    return Conversation(
        messages=messages,
        session_id=transcript.session_id,
        created_at=began,
        title=transcript.title,
        cwd=transcript.cwd,
        calls={
            block.id: block
            for message in transcript.messages
            for block in message.content
            if isinstance(block, ToolUseBlock)
        },
        spread=_spread(transcript),
    )


def _spread(transcript: Transcript) -> dict[str, int]:
    found: dict[str, int] = {}
    at = 0
    for group, count in zip(transcript.groups, transcript.counts, strict=True):
        found.update((message.id, len(group.entries)) for message in transcript.messages[at : at + count])
        at += count
    return found


def transcript_of(messages: Sequence[Message], system: str, session_id: str, **facts: Any) -> Transcript:
    """Return messages of any origin as a transcript that `write_transcript` writes."""
    return Transcript(system=system, version="", session_id=session_id, messages=tuple(messages), **facts)


# -- entries kept with messages ---------------------------------------------------------------------------------------
def with_entries(transcript: Transcript) -> tuple[Message, ...]:
    """Return the messages, each with the entries it came from and those beside them, in `MessageMetadata.app`.

    So a session may go through a store or a JSON Lines file, go on there, and be written back.
    """
    starts = [0, *accumulate(transcript.counts)]
    made = [transcript.messages[start:end] for start, end in pairwise(starts)]
    made.append(transcript.messages[starts[-1] :])  # what was added
    of_groups = entries_by_group(transcript.groups, len(transcript.entries))
    about = {"system": transcript.system, "session": transcript.session_id}
    return tuple(attach_entries(zip(made, of_groups, strict=True), transcript.entries, about))


def entries_by_group(groups: Sequence[Group], count: int) -> list[list[int]]:
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
    groups: Iterable[tuple[Sequence[Message], list[int]]], entries: Sequence[bytes], about: Mapping[str, str]
) -> Iterator[Message]:
    """Yield messages with their entries; those of groups without one go with the next message, or with the last.

    Args:
        groups: each group's messages, and the indexes of its entries.
        entries: the entries' JSON texts.
        about: the system and the session's id.
    """
    held: Message | None = None
    own: list[int] = []
    waiting: list[int] = []

    def kept(message: Message, indexes: list[int]) -> Message:
        texts = [[index, *_as_text(entries[index])] for index in sorted(indexes)]
        return _with_app(message, {**message.metadata.app, APP: {**about, "id": message.id, "entries": texts}})

    for messages, indexes in groups:
        waiting += indexes
        for message in messages:
            if held is not None:
                yield kept(held, own)
            held, own, waiting = message, waiting, []
    if held is not None:
        yield kept(held, own + waiting)


def from_messages(messages: Sequence[Message]) -> Transcript | None:
    """Return the transcript that `with_entries` took apart, with whatever was changed or added since; None without.

    Messages and calls get back the ids they had in the file: a store may have given them others.
    """
    entries: dict[int, bytes] = {}
    plain = []
    system = ""
    for message in messages:
        kept: Mapping[str, Any] | None = message.metadata.app.get(APP)
        if kept is not None:
            system = kept["system"]
            entries.update({index: _as_bytes(*text) for index, *text in kept["entries"]})
            app = {name: value for name, value in message.metadata.app.items() if name != APP}
            back = attrs.evolve(message, id=kept["id"], session_id=kept["session"] or DEFAULT_SESSION)
            plain.append(_with_app(back, app))
        else:
            plain.append(message)
    if not system:
        return None
    read = read_entries(system_of(system), [entries[index] for index in sorted(entries)])
    return attrs.evolve(read, messages=tuple(_with_own_calls(plain, read.messages)))


def _with_own_calls(messages: Sequence[Message], before: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with the ids that their calls had before, found by the ids the calls were issued under."""
    known = {message.id: {call.provider_id: call.id for call in message.tool_calls()} for message in before}
    names = {
        call.id: known[message.id].get(call.provider_id, call.id)
        for message in messages
        if message.id in known
        for call in message.tool_calls()
    }
    if all(new == old for new, old in names.items()):
        return messages
    return [_with_calls(message, names) for message in messages]


def _with_calls(message: Message, names: Mapping[str, str]) -> Message:
    content: list[ContentBlock] = []
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            content.append(attrs.evolve(block, id=names.get(block.id, block.id)))
        elif isinstance(block, ToolResultBlock):
            content.append(attrs.evolve(block, tool_use_id=names.get(block.tool_use_id, block.tool_use_id)))
        else:
            content.append(block)
    answered = message.metadata.parent_tool_use_id
    metadata = attrs.evolve(message.metadata, parent_tool_use_id=names.get(answered, answered) if answered else None)
    return attrs.evolve(message, content=content, metadata=metadata)


def _as_text(entry: bytes) -> tuple[str, ...]:
    try:
        return (entry.decode(),)
    except UnicodeDecodeError:
        return (b64encode(entry).decode(), "base64")


def _as_bytes(text: str, coding: str = "") -> bytes:
    return b64decode(text) if coding else text.encode()


def _with_app(message: Message, app: Mapping[str, Any]) -> Message:
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, app=app))

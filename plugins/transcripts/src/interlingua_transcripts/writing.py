"""Write a session as a file: anew for another system, with the unchanged entries as they were for its own."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any

import attrs

from interlingua.plugins import dumps
from interlingua.types import Message, Role
from interlingua_transcripts.files import kind_of
from interlingua_transcripts.imported import EPOCH, content_id, uuid_of
from interlingua_transcripts.lazy import EntryValues, LazyCalls, MessagesInOrder, index_messages
from interlingua_transcripts.loading import load_exactly
from interlingua_transcripts.opened import OpenTranscript, open_entries
from interlingua_transcripts.system import SessionFormat, session_format
from interlingua_transcripts.transcript import Conversation, Transcript, TranscriptError

_BEGINNING = 40  # entries of which one may name the folder


def write_transcript(transcript: Transcript | OpenTranscript, system: str | SessionFormat | None = None) -> bytes:
    """Write a session as a file.

    Args:
        transcript: a transcript that was read or opened, or that `transcript_of` made of messages.
        system: format of the file; default: the transcript's own, in which entries whose messages are unchanged are
            written unchanged.

    Raises:
        TranscriptError: the system's files are only read, or cannot hold this conversation.
    """
    return b"".join(write_pieces(transcript, system))


def write_pieces(transcript: Transcript | OpenTranscript, system: str | SessionFormat | None = None) -> Iterator[bytes]:
    """Yield a session's file in pieces: by lines if it has lines; otherwise as `write_transcript`."""
    target = transcript.system if system is None else system
    target = target if isinstance(target, SessionFormat) else session_format(target)
    entries = write_entries(transcript, target)
    if type(target).join is SessionFormat.join:
        for entry in entries:
            yield entry + b"\n"
    else:
        yield target.join(list(entries))


def write_entries(transcript: Transcript | OpenTranscript, system: SessionFormat) -> Iterator[bytes]:
    """Yield the entries of a session in a system's format."""
    if isinstance(transcript, OpenTranscript):
        if system.name == transcript.system.name:
            yield from transcript.entries
            return
        transcript = transcript.transcript()
    own = system.name == transcript.system
    if own and transcript.entries:
        yield from _own_entries(transcript, system)
    elif not own or transcript.messages:  # else it is an empty file
        conversation = new_conversation(transcript, transcript.messages, system)
        yield from (dumps(one.value) for one in system.write(conversation))


def _own_entries(transcript: Transcript, system: SessionFormat) -> Iterator[bytes]:
    before = open_entries(system, transcript.entries)
    if all(old == new for old, new in zip_longest(before, transcript.messages)):
        yield from transcript.entries
    else:
        yield from _changed_entries(transcript, before.transcript(), system)


def _changed_entries(transcript: Transcript, before: Transcript, system: SessionFormat) -> Iterator[bytes]:
    """Yield a file's entries with the changes that its messages got: edited, left out, added at the end."""
    known = set(index_messages(before.messages).ids)
    answers = _answers_to(transcript, before, known) if system.results_in_calls else {}
    changes = _find_changes(transcript, before, system, answers)
    changes |= system.change_repeats(before.entries, before.groups, changes)
    known.update(message.id for found in answers.values() for message in found)
    added = [at for at, own in enumerate(index_messages(transcript.messages).ids) if own not in known]
    if not added and system.links is not None:
        changes |= dict.fromkeys(_later_branches(before, changes))
    above = {} if system.links is None else _parents(before.entries, changes, *system.links)
    indexes = array("Q", [at for at in range(len(before.entries)) if changes.get(at, b"") is not None])
    kept = _KeptEntries(before.entries, changes, above, system.links or ("", ""), indexes)
    yield from kept
    if added:
        conversation = attrs.evolve(
            new_conversation(transcript, [transcript.messages[at] for at in added], system),
            before=EntryValues(kept, system.load),
            branch=EntryValues(attrs.evolve(kept, indexes=_branch(before, changes, indexes)), system.load),
        )
        yield from (dumps(one.value) for one in system.write(conversation))


def _answers_to(transcript: Transcript, before: Transcript, known: set[str]) -> dict[str, list[Message]]:
    """Return the new results of calls that the file has: id of the call's message -> the results' messages."""
    callers = {call: before.messages[at].id for call, at in index_messages(before.messages).calls.items()}
    found: dict[str, list[Message]] = {}
    for at, own in enumerate(index_messages(transcript.messages).ids):
        if own in known:
            continue
        message = transcript.messages[at]
        caller = next((callers[one.tool_use_id] for one in message.tool_results if one.tool_use_id in callers), None)
        if caller is not None:
            found.setdefault(caller, []).append(message)
    return found


def _find_changes(
    transcript: Transcript, before: Transcript, system: SessionFormat, answers: Mapping[str, list[Message]]
) -> dict[int, bytes | None]:
    """Return the entries that changed: index -> the new string; None for an omitted entry.

    Args:
        transcript: the session as it is now.
        before: as its file has it.
        system: the file's.
        answers: id of a message -> new messages that are written in its entry.
    """
    ids = index_messages(before.messages).ids
    now = {own: at for at, own in enumerate(index_messages(transcript.messages).ids)}
    different = _different(transcript.messages, before.messages, ids)
    whole = new_conversation(before, before.messages, system)
    changes: dict[int, bytes | None] = {}
    at = 0
    for group, count in zip(before.groups, before.counts, strict=True):
        own = range(at, at + count)
        at += count
        answered = [message for number in own for message in answers.get(ids[number], ())]
        if not answered and all(ids[number] in now and ids[number] not in different for number in own):
            continue
        old = [before.messages[number] for number in own]
        new = [transcript.messages[now[message.id]] for message in old if message.id in now] + answered
        one_line = len(group.entries) == 1 and all(message.role is Role.TOOL for message in old)
        was, becomes = (_written_entries(system, whole, messages, one_line) for messages in (old, new))
        if system.results_in_calls and len(was) > len(group.entries) and was != becomes:
            raise TranscriptError(
                f"entry {group.entries[0] + 1} holds several answers, and some of them changed: "
                "leave out or edit all of its messages"
            )
        values = [load_exactly(before.entries[index]) for index in group.entries]
        for index, value, old_value, new_value in zip(
            group.entries, values, paired(system, values, was), paired(system, values, becomes), strict=True
        ):
            if new_value is None and (old_value is not None or not becomes):
                changes[index] = None
            elif old_value != new_value:
                changes[index] = dumps(patched(value, old_value, new_value))
    return changes


def _different(messages: Sequence[Message], before: Sequence[Message], ids: Sequence[str]) -> set[str]:
    """Return the ids of the messages that are other than before; both are gone through once if the order is kept."""
    places = {own: at for at, own in enumerate(ids)}
    found = set()
    old = MessagesInOrder(before)
    for message in messages:
        place = places.get(message.id)
        if place is not None and old.take(place, place + 1)[0] != message:
            found.add(message.id)
    return found


def _written_entries(
    system: SessionFormat, whole: Conversation, messages: Sequence[Message], one_line: bool
) -> list[Any]:
    """Return the entries a system writes for the messages of a group; results that shared an entry share one again."""
    if not messages:
        return []
    conversation = attrs.evolve(whole, messages=messages, spread={} if one_line else whole.spread)
    return [one.value for one in system.write(conversation) if one.messages]


@attrs.frozen
class _KeptEntries(Sequence[bytes]):
    """The entries of a file that are kept, with what changed in them.

    Attributes:
        entries: entries of the file.
        changes: index -> the new text.
        above: id of an entry that is left out -> the nearest ancestor that is kept.
        links: the members that hold an entry's id and its parent's.
        indexes: indexes of the entries that are kept.
    """

    entries: Sequence[bytes]
    changes: Mapping[int, bytes | None]
    above: Mapping[str, Any]
    links: tuple[str, str]
    indexes: Sequence[int]

    def __len__(self) -> int:
        return len(self.indexes)

    def __getitem__(self, number: Any) -> Any:
        index = self.indexes[number]
        entry = self.changes.get(index)
        entry = self.entries[index] if entry is None else entry
        if not self.above:
            return entry
        value, parent = load_exactly(entry), self.links[1]
        if not isinstance(value, dict) or str(value.get(parent)) not in self.above:
            return entry
        return dumps({**value, parent: self.above[str(value[parent])]})


def _parents(entries: Sequence[bytes], changes: Mapping[int, bytes | None], own: str, parent: str) -> dict[str, Any]:
    """Return, for the id of each entry that is left out, its nearest ancestor that is kept."""
    gone = [load_exactly(entries[at]) for at, entry in sorted(changes.items()) if entry is None]
    above = {str(value[own]): value.get(parent) for value in gone if isinstance(value, dict) and own in value}
    nearest = {}
    for name in above:
        found: Any = name
        for _ in above:  # no farther: broken files have circles
            found = above.get(str(found), found)
        nearest[name] = None if str(found) in above else found
    return nearest


def _later_branches(before: Transcript, changes: Mapping[int, bytes | None]) -> Iterator[int]:
    """Yield the entries of other branches that would be the end of a file whose last messages are left out."""
    kept = [any(changes.get(at, b"") is not None for at in group.entries) for group in before.groups]
    if kept and any(kept) and not kept[-1]:
        last = max(at for group, is_kept in zip(before.groups, kept, strict=True) if is_kept for at in group.entries)
        yield from (at for at in before.branches if at > last)


def _branch(before: Transcript, changes: Mapping[int, bytes | None], indexes: Sequence[int]) -> Sequence[int]:
    """Return the indexes of the active branch's entries, without what follows the last kept message."""
    last = max((at for group in before.groups for at in group.entries if changes.get(at, b"") is not None), default=-1)
    end = min((at for at, entry in changes.items() if entry is None and at > last), default=len(before.entries))
    return array("Q", [at for at in indexes if at < end and at not in before.branches])


def paired(system: SessionFormat, values: Sequence[Any], made: Sequence[Any]) -> list[Any]:
    """Return, for each entry of a group, the one written anew for it: of the same kind, in order; else None."""
    left: dict[str, list[Any]] = {}
    for value in made:
        left.setdefault(kind_of(system, value), []).append(value)
    waiting = {kind: iter(found) for kind, found in left.items()}
    return [next(waiting.get(kind_of(system, value), iter(())), None) for value in values]


def patched(value: Any, was: Any, becomes: Any) -> Any:
    """Return a JSON value with the changes between two others applied; parts that they share stay unchanged.

    An item of a list that is written as before is kept; at another place, with what would be written of it as well.
    """
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
    return _patched_list(value, was, becomes) if lists and len(value) == len(was) else becomes


def _patched_list(value: list[Any], was: list[Any], becomes: list[Any]) -> list[Any]:
    made: list[Any] = []
    texts = [[dumps(item) for item in items] for items in (was, becomes)]
    for what, start, end, first, last in SequenceMatcher(a=texts[0], b=texts[1], autojunk=False).get_opcodes():
        if what == "equal":
            moved = len(made) != start
            made += [
                {**new, **old} if moved and isinstance(old, dict) else old
                for old, new in zip(value[start:end], becomes[first:last], strict=True)
            ]
        elif end - start == last - first:
            made += map(patched, value[start:end], was[start:end], becomes[first:last])
        else:
            made += becomes[first:last]
    return made


def change_folder(transcript: Transcript, cwd: str) -> Transcript:
    """Return a session with another folder, which its file names if its agent needs it; other entries are unchanged."""
    system = session_format(transcript.system)
    for at, entry in enumerate(islice(transcript.entries, _BEGINNING)):
        value = system.change_folder(load_exactly(entry), cwd)
        if value is not None:
            indexes = range(len(transcript.entries))
            entries = _KeptEntries(transcript.entries, {at: dumps(value)}, {}, ("", ""), indexes)
            return attrs.evolve(transcript, cwd=cwd, entries=entries)
    return attrs.evolve(transcript, cwd=cwd)


def new_conversation(transcript: Transcript, messages: Sequence[Message], system: SessionFormat) -> Conversation:
    """Return what a system writes of these messages, with the facts of the session they are of."""
    first = next(iter(transcript.messages), None)
    return Conversation(
        messages=messages,
        session_id=transcript.session_id or _made_id(transcript, system),
        created_at=EPOCH if first is None else first.created_at,
        title=transcript.title,
        cwd=transcript.cwd,
        calls=LazyCalls(transcript.messages),
        spread=_spread(transcript) if system.name == transcript.system else {},
    )


def _made_id(transcript: Transcript, system: SessionFormat) -> str:
    """Return a UUID for a session whose file has no id, the same each time.

    "" if its own system, or the name of the folder that is written, says what the id is.
    """
    if system.name == transcript.system or not transcript.entries or type(system).scatter is not SessionFormat.scatter:
        return ""
    return uuid_of(f"{transcript.system}\0{content_id(transcript.entries)}")


def _spread(transcript: Transcript) -> dict[str, int]:
    if not transcript.groups:
        return {}
    found: dict[str, int] = {}
    ids = index_messages(transcript.messages).ids
    at = 0
    for group, count in zip(transcript.groups, transcript.counts, strict=True):
        found.update((own, len(group.entries)) for own in ids[at : at + count])
        at += count
    return found


def transcript_of(messages: Sequence[Message], system: str, session_id: str, **facts: Any) -> Transcript:
    """Return messages of any origin as a transcript that `write_transcript` writes."""
    return Transcript(system=system, version="", session_id=session_id, messages=messages, **facts)

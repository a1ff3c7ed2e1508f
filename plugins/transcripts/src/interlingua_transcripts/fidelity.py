"""The part of a session file that canonical messages carry, counted over the leaves of its entries.

A leaf is a string, number, boolean, null, empty list or empty object. It is *exact* when the entry written anew from
the canonical messages alone has the same value at the same place; in *another form* when the format declares it
(`SessionFormat.forms`); else it is *kept*: the entry's text holds it and is written back. A leaf that a rewritten file
lacks is *lost*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import Any

import attrs

from interlingua_transcripts.entries import KeptMessages, open_messages
from interlingua_transcripts.files import kind_of
from interlingua_transcripts.lazy import MessagesInOrder, index_messages, temporary_entries
from interlingua_transcripts.opened import OpenTranscript, open_entries
from interlingua_transcripts.system import SessionFormat, load_entry, session_format
from interlingua_transcripts.transcript import Conversation, Note, Transcript
from interlingua_transcripts.writing import new_conversation, paired, write_entries

_PIECE = 400  # items of two lists that are compared at a time
_INDEX = re.compile(r"\[\d+\]")


@attrs.define
class Count:
    """Leaves by what became of them.

    Attributes:
        exact: carried unchanged.
        other: carried in another form.
        kept: not expressed in canonical messages; the entry's text is kept and written back.
        lost: gone.
    """

    exact: int = 0
    other: int = 0
    kept: int = 0
    lost: int = 0

    @property
    def leaves(self) -> int:
        """The sum."""
        return self.exact + self.other + self.kept + self.lost

    def __iadd__(self, more: Count) -> Count:
        self.exact += more.exact
        self.other += more.other
        self.kept += more.kept
        self.lost += more.lost
        return self


@attrs.define
class Fidelity:
    """The report of one file.

    Attributes:
        system: whose file it is.
        version: of the format.
        session_id: the system's id of the session.
        target: the format to write; default: the file's own.
        entries: how many the file has.
        messages: how many messages the conversation has.
        equal: the rewritten file has the same entries, as JSON.
        total: all leaves.
        by_entry: index of an entry -> its leaves.
        by_kind: kind of entry -> its leaves.
        reasons: why leaves have another form: reason -> how many.
        places: path of a leaf, without indexes -> how many were kept; so what has no canonical place can be read off.
        lost: path of a leaf, without indexes -> how many were lost.
        notes: what reading had to say.
    """

    system: str
    version: str
    session_id: str
    target: str
    entries: int
    messages: int
    equal: bool = True
    total: Count = attrs.field(factory=Count)
    by_entry: dict[int, Count] = attrs.field(factory=dict)
    by_kind: dict[str, Count] = attrs.field(factory=dict)
    reasons: Counter[str] = attrs.field(factory=Counter)
    places: Counter[str] = attrs.field(factory=Counter)
    lost: Counter[str] = attrs.field(factory=Counter)
    notes: Sequence[Note] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values; `by_entry` has a separate list for each entry."""
        return {
            "system": self.system,
            "version": self.version,
            "session": self.session_id,
            "target": self.target,
            "entries": self.entries,
            "messages": self.messages,
            "leaves": self.total.leaves,
            **attrs.asdict(self.total),
            "equal": self.equal,
            "by_kind": {kind: attrs.asdict(count) for kind, count in sorted(self.by_kind.items())},
            "by_entry": [[at, *attrs.astuple(count)] for at, count in sorted(self.by_entry.items())],
            "other_forms": dict(self.reasons.most_common()),
            "kept_places": dict(self.places.most_common()),
            "lost_places": dict(self.lost.most_common()),
            "notes": [{"entry": note.entry, "text": note.text} for note in self.notes],
        }


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of every leaf of a JSON value; an entry that is not JSON (None) is one leaf."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from leaves(item, f"{path}[{at}]")
    else:
        yield path, value


def measure_fidelity(transcript: Transcript | OpenTranscript, target: str | None = None) -> Fidelity:
    """Count what becomes of a session's leaves when it is written back, or for another system.

    Args:
        transcript: as `read_transcript` or `open_transcript` gave it.
        target: the other system; what its files cannot hold counts as lost.

    Raises:
        TranscriptError: there is no such system, or its files are only read.
    """
    read = transcript.transcript() if isinstance(transcript, OpenTranscript) else transcript
    system = session_format(read.system)
    other = system if target is None else session_format(target)
    report = Fidelity(
        system=system.name,
        version=read.version,
        session_id=read.session_id,
        target=other.name,
        entries=len(read.entries),
        messages=len(read.messages),
        notes=read.notes,
    )
    if other is system:
        with _rewritten(system, read) as rewritten:
            _count_entries(report, system, read, rewritten, None)
    else:
        with _crossed(system, other, read) as crossed:
            _count_entries(report, system, read, iter(read.entries), crossed)
    return report


def _count_entries(
    report: Fidelity,
    system: SessionFormat,
    read: Transcript,
    rewritten: Iterator[bytes],
    crossed: Iterator[dict[str, Any]] | None,
) -> None:
    """Count the leaves of each entry.

    Args:
        report: gets the counts.
        system: the file's.
        read: the session.
        rewritten: the entries of the file that was written back.
        crossed: of each entry that has an equal one in `made`, the leaves after the way through another system.
    """
    for index, (value, made) in enumerate(_written_anew(system, read)):
        entry, text = read.entries[index], next(rewritten, None)
        report.equal = report.equal and text is not None
        again = value if text == entry else load_entry(text or b"{}")
        report.equal = report.equal and again == value
        back = next(crossed) if crossed is not None and made is not None else None
        count = _counted(system, value, made, again, back, report)
        report.by_entry[index] = count
        kind = kind_of(system, value)
        report.by_kind.setdefault(kind, Count())
        report.by_kind[kind] += count
        report.total += count
    report.equal = report.equal and next(rewritten, None) is None


def _counted(
    system: SessionFormat, value: Any, made: Any, again: Any, crossed: dict[str, Any] | None, report: Fidelity
) -> Count:
    count = Count()
    fresh = dict(leaves(made)) if made is not None else {}
    kept = None if again is value else dict(leaves(again))
    for path, leaf in leaves(value):
        if kept is not None and not (path in kept and _same(kept[path], leaf)):
            count.lost += 1
            report.lost[_place(path)] += 1
            continue
        carried = path in fresh and _same(fresh[path], leaf)
        reason = None if carried else _form_of(system, path)
        if not carried and reason is None:
            count.kept += 1
            report.places[_place(path)] += 1
        elif crossed is not None and carried and not (path in crossed and _same(crossed[path], leaf)):
            count.lost += 1
            report.lost[_place(path)] += 1
        elif carried:
            count.exact += 1
        else:
            count.other += 1
            report.reasons[str(reason)] += 1
    return count


@lru_cache(1 << 14)
def _place(path: str) -> str:
    return _INDEX.sub("[]", path)


def _same(left: Any, right: Any) -> bool:
    return left == right and isinstance(left, bool) is isinstance(right, bool)


def _written_anew(system: SessionFormat, read: Transcript) -> Iterator[tuple[Any, Any]]:
    """Yield, for each entry, its value, and what the system writes for it of the messages alone; None for nothing."""
    whole = new_conversation(read, read.messages)
    starts = [0, *accumulate(read.counts)]
    begin: dict[int, list[int]] = {}  # index of an entry -> the groups that it begins
    for number, group in enumerate(read.groups if system.writable else ()):
        begin.setdefault(group.entries[0], []).append(number)
    messages = MessagesInOrder(read.messages)
    values: dict[int, Any] = {}
    found: dict[int, Any] = {}
    for index, entry in enumerate(read.entries):
        for number in begin.get(index, ()):
            part = messages.take(starts[number], starts[number + 1])
            if not part:
                continue
            made = [one.value for one in system.write(attrs.evolve(whole, messages=part)) if one.messages]
            own = read.groups[number].entries
            values.update((at, load_entry(read.entries[at])) for at in own)
            pairs = zip(own, paired(system, [values[at] for at in own], made), strict=True)
            found.update((at, one) for at, one in pairs if one is not None)
        value = values.pop(index) if index in values else load_entry(entry)
        yield value, found.pop(index, None)


@contextmanager
def _crossed(system: SessionFormat, other: SessionFormat, read: Transcript) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield, for each entry that the system writes anew, the leaves it has after the way through another system.

    Each entry of the rewritten file is compared with the entry of its kind, in order.
    """
    with temporary_entries() as entries:
        for entry in write_entries(read, other):
            entries.append(entry)
        back = open_entries(other, entries).transcript()
        conversation = _conversation_back(read, back)
        made = [kind_of(system, value) for _, value in _written_anew(system, read) if value is not None]
        again = [kind_of(system, value) for value in _written_of(system, conversation)]
        yield _leaves_back(len(made), dict(_equal_pairs(made, again)), _written_of(system, conversation))


def _conversation_back(read: Transcript, back: Transcript) -> Conversation:
    """Return the transcript read back from another format's file, to be written in the first format again."""
    conversation = new_conversation(attrs.evolve(back, session_id=read.session_id), back.messages)
    spread = new_conversation(read, ()).spread
    left, right = index_messages(read.messages), index_messages(back.messages)
    pairs = _equal_pairs(left.roles, right.roles)
    same = {right.ids[other]: spread.get(left.ids[own], 1) for own, other in pairs}
    return attrs.evolve(conversation, spread=same)


def _written_of(system: SessionFormat, conversation: Conversation) -> Iterator[Any]:
    return (one.value for one in system.write(conversation) if one.messages) if system.writable else iter(())


def _leaves_back(count: int, places: Mapping[int, int], values: Iterator[Any]) -> Iterator[dict[str, Any]]:
    """Yield the leaves of the returned entries: those of the value at its place, if it has one."""
    at = -1
    for number in range(count):
        place = places.get(number)
        if place is None:
            yield {}
            continue
        yield dict(leaves(next(islice(values, place - at - 1, None))))
        at = place


def _equal_pairs(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of equal items of two lists, in order; piece by piece, for the search takes quadratic time."""
    at = other = 0
    while at < len(left) and other < len(right):
        matcher = SequenceMatcher(None, left[at : at + _PIECE], right[other : other + _PIECE], autojunk=False)
        *blocks, _ = matcher.get_matching_blocks()
        for start, begin, size in blocks:
            yield from ((at + start + step, other + begin + step) for step in range(size))
        start, begin, size = blocks[-1] if blocks else (0, 0, _PIECE)
        at, other = at + start + size, other + begin + size


@contextmanager
def _rewritten(system: SessionFormat, read: Transcript) -> Iterator[Iterator[bytes]]:
    """Yield the entries of the file after the way through messages, as a store keeps them, and back."""
    if not read.messages:
        yield _split_again(system, write_entries(read, system))
        return
    with open_messages(KeptMessages(read)) as kept:
        yield iter(()) if kept is None else _split_again(system, write_entries(kept, system))


def _split_again(system: SessionFormat, entries: Iterator[bytes]) -> Iterator[bytes]:
    """Return the entries of the file that these make."""
    if type(system).join is SessionFormat.join and type(system).split is SessionFormat.split:  # a line each
        return entries
    return iter(system.split(system.join(list(entries))))


@lru_cache(1 << 14)  # the entries of a kind have the same paths
def _form_of(system: SessionFormat, path: str) -> str | None:
    plain = _INDEX.sub("", path)
    for pattern, reason in system.forms.items():
        if _pattern(pattern).fullmatch(plain):
            return reason
    return None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = [".*" if part == "**" else r"[^.]*" if part == "*" else re.escape(part) for part in pattern.split(".")]
    return re.compile(r"\.".join(parts))

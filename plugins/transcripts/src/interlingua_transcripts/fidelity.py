"""What of a session's file is carried by canonical messages, counted over the leaves of its entries.

A leaf is a string, number, boolean, null, empty list or empty object. It is *exact* when the entry written anew from
the canonical messages alone has the same value at the same place; in *another form* when the system says so
(`System.forms`); else it is *kept*: the entry's text holds it and is written back. What a rewritten file lacks is
*lost*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

import attrs
import orjson

from interlingua.types import Message
from interlingua_transcripts.files import (
    from_messages,
    kind_of,
    new_conversation,
    paired,
    read_entries,
    with_entries,
    write_entries,
)
from interlingua_transcripts.system import System, load_entry, system_of
from interlingua_transcripts.transcript import Note, Transcript

_PIECE = 400  # items of two lists that are compared at a time
_INDEX = re.compile(r"\[\d+\]")


@attrs.define
class Count:
    """Leaves by what became of them.

    Attributes:
        exact: carried as they are.
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
        target: the system it is to be written for; its own, where it is only rewritten.
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
        """Return the report as JSON values; `by_entry` has a list of its own for each entry."""
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


def measure_fidelity(transcript: Transcript, target: str | None = None) -> Fidelity:
    """Count what becomes of a session's leaves when it is written back, or for another system.

    Args:
        transcript: as `read_transcript` gave it.
        target: the other system; what its files cannot hold counts as lost.

    Raises:
        TranscriptError: there is no such system, or its files are only read.
    """
    system = system_of(transcript.system)
    other = None if target in (None, system.name) else system_of(str(target))
    made = _written_anew(system, transcript, transcript.messages)
    if other is None:
        rewritten: Sequence[bytes] = _rewritten(system, transcript)
        crossed = None
    else:
        entries = [orjson.dumps(one.value) for one in other.write(new_conversation(transcript, transcript.messages))]
        back = read_entries(other, entries)
        rewritten = transcript.entries
        crossed = _aligned(system, made, _written_anew_whole(system, transcript, back))
    report = Fidelity(
        system=system.name,
        version=transcript.version,
        session_id=transcript.session_id,
        target=system.name if other is None else other.name,
        entries=len(transcript.entries),
        messages=len(transcript.messages),
        equal=len(rewritten) == len(transcript.entries),
        notes=transcript.notes,
    )
    for index, entry in enumerate(transcript.entries):
        value = load_entry(entry)
        text = rewritten[index] if index < len(rewritten) else b"{}"
        again = value if text == entry else load_entry(text)
        report.equal = report.equal and again == value
        count = _counted(system, value, made.get(index), again, None if crossed is None else crossed.get(index), report)
        report.by_entry[index] = count
        kind = kind_of(system, value)
        report.by_kind.setdefault(kind, Count())
        report.by_kind[kind] += count
        report.total += count
    return report


def _counted(
    system: System, value: Any, made: Any, again: Any, crossed: dict[str, Any] | None, report: Fidelity
) -> Count:
    count = Count()
    fresh = dict(leaves(made)) if made is not None else {}
    kept = None if again is value else dict(leaves(again))
    for path, leaf in leaves(value):
        if kept is not None and not (path in kept and _same(kept[path], leaf)):
            count.lost += 1
            report.lost[_INDEX.sub("[]", path)] += 1
            continue
        carried = path in fresh and _same(fresh[path], leaf)
        reason = None if carried else _form_of(system, path)
        if not carried and reason is None:
            count.kept += 1
            report.places[_INDEX.sub("[]", path)] += 1
        elif crossed is not None and carried and not (path in crossed and _same(crossed[path], leaf)):
            count.lost += 1
            report.lost[_INDEX.sub("[]", path)] += 1
        elif carried:
            count.exact += 1
        else:
            count.other += 1
            report.reasons[str(reason)] += 1
    return count


def _same(left: Any, right: Any) -> bool:
    return left == right and isinstance(left, bool) is isinstance(right, bool)


def _written_anew(system: System, transcript: Transcript, messages: Sequence[Message]) -> dict[int, Any]:
    """Return what a system writes of the messages alone: index of the entry they came from -> the new entry."""
    if not system.writable:
        return {}
    found: dict[int, Any] = {}
    whole = new_conversation(transcript, messages)
    at = 0
    for group, count in zip(transcript.groups, transcript.counts, strict=True):
        part = messages[at : at + count]
        at += count
        if part:
            made = [one.value for one in system.write(attrs.evolve(whole, messages=part)) if one.messages]
            values = [load_entry(transcript.entries[index]) for index in group.entries]
            pairs = zip(group.entries, paired(system, values, made), strict=True)
            found.update((index, value) for index, value in pairs if value is not None)
    return found


def _written_anew_whole(system: System, transcript: Transcript, back: Transcript) -> list[Any]:
    """Return what a system writes of the messages that came back from another system's file."""
    if not system.writable:
        return []
    conversation = new_conversation(attrs.evolve(back, session_id=transcript.session_id), back.messages)
    spread = new_conversation(transcript, ()).spread
    roles, other = [one.role for one in transcript.messages], [one.role for one in back.messages]
    same: dict[str, int] = {}
    for left, right in _equal_pairs(roles, other):
        same[back.messages[right].id] = spread.get(transcript.messages[left].id, 1)
    conversation = attrs.evolve(conversation, spread=same)
    return [one.value for one in system.write(conversation) if one.messages]


def _aligned(system: System, made: Mapping[int, Any], back: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """Return, for each entry, the leaves it has after the way through another system: entries of one kind in order."""
    indexes = sorted(made)
    kinds, other = [kind_of(system, made[index]) for index in indexes], [kind_of(system, value) for value in back]
    found: dict[int, dict[str, Any]] = {}
    for left, right in _equal_pairs(kinds, other):
        found[indexes[left]] = dict(leaves(back[right]))
    return {index: found.get(index, {}) for index in indexes}


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


def _rewritten(system: System, transcript: Transcript) -> list[bytes]:
    """Return the entries of the file after the way through messages, as a store keeps them, and back."""
    kept = from_messages(with_entries(transcript)) if transcript.messages else transcript
    if kept is None:
        return []
    return system.split(system.join(write_entries(kept, system)))


def _form_of(system: System, path: str) -> str | None:
    plain = _INDEX.sub("", path)
    for pattern, reason in system.forms.items():
        if _pattern(pattern).fullmatch(plain):
            return reason
    return None


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = [".*" if part == "**" else r"[^.]*" if part == "*" else re.escape(part) for part in pattern.split(".")]
    return re.compile(r"\.".join(parts))

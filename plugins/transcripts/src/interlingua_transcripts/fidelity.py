"""The fate of every value of a session file, counted over the leaves of its entries.

A leaf is a string, number, boolean, null, empty list or empty object. It is *exact* when its value is in what was
written: in the canonical messages or, on the way to another system, in that system's entries. It has *another form*
when a named rule turns it into values that are there. Else it is *kept* if only the entry's text holds it, which is
written back, and *lost* if the messages hold it and the written file does not. Values are found anywhere:
the search knows nothing of readers and writers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from typing import Any

import attrs

from interlingua.codec import encode_message
from interlingua.types import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_transcripts.entries import KeptMessages, open_messages
from interlingua_transcripts.files import APP, ODD, kind_of, with_app
from interlingua_transcripts.lazy import MessagesInOrder
from interlingua_transcripts.opened import OpenTranscript
from interlingua_transcripts.system import SessionFormat, session_format
from interlingua_transcripts.transcript import Note, Transcript, TranscriptError
from interlingua_transcripts.values import EMPTY, ONCE, TAG, Form, Haystack, find_form, leaves
from interlingua_transcripts.writing import new_conversation, write_entries
from interlingua_transcripts.written import WrittenEntries

NATIVE = "interlingua"
"""The system that a report names for a session made here, which has no file."""
REPEATED = "repeated in each entry of a message"

_INDEX = re.compile(r"\[\d+\]")


@attrs.define
class Count:
    """Leaves by what became of them.

    Attributes:
        exact: the value is there.
        other: there in another form.
        kept: not in canonical messages; the entry's text is kept and written back.
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
        system: the system that wrote the file; `interlingua` for a session made here.
        version: version of the format.
        session_id: the system's id of the session.
        target: the format to write; default: the file's own.
        entries: how many the file has.
        messages: how many messages the conversation has.
        content: kind of block (`texts`, `thinking`, `calls`, `results`, `media`, `other`) -> how many were read.
        silent: kind of entry -> how many of them made no message.
        equal: the rewritten file has the same entries, as JSON.
        total: all leaves.
        by_entry: index of an entry -> its leaves.
        by_kind: kind of entry -> its leaves.
        reasons: why leaves have another form: reason -> how many.
        places: path of a leaf, without indexes -> how many were kept; so what has no canonical place can be read off.
        lost: path of a leaf, without indexes -> how many were lost.
        notes: notes of the reader.
    """

    system: str
    version: str
    session_id: str
    target: str
    entries: int
    messages: int
    content: Counter[str] = attrs.field(factory=Counter)
    silent: Counter[str] = attrs.field(factory=Counter)
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
            "content": dict(self.content),
            "silent": dict(self.silent.most_common()),
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


def measure_fidelity(transcript: Transcript | OpenTranscript, target: str | None = None) -> Fidelity:
    """Count what becomes of a session's leaves when it is written back, or for another system.

    Of a session made here (`transcript_of`), its messages' leaves are counted.

    Args:
        transcript: as `read_transcript`, `open_transcript` or `transcript_of` gave it.
        target: the other system; what its files do not get counts as lost.

    Raises:
        TranscriptError: there is no such system, or its files are only read.
    """
    read = transcript.transcript() if isinstance(transcript, OpenTranscript) else transcript
    native = not read.entries and len(read.messages) > 0
    system = session_format(read.system)
    other = system if target is None else session_format(target)
    report = Fidelity(
        system=NATIVE if native else system.name,
        version=read.version,
        session_id=read.session_id,
        target=other.name,
        entries=len(read.messages) if native else len(read.entries),
        messages=len(read.messages),
        notes=read.notes,
    )
    if native or other is not system:
        if not other.writable:
            raise TranscriptError(f"files of {other.title} can be read, not written")
        with WrittenEntries.of(other, new_conversation(read, read.messages, other)) as written:
            _count(report, system, _native_groups(read) if native else _groups(read), read, written)
    else:
        _count(report, system, _groups(read), read, None)
        with _rewritten(system, read) as rewritten:
            _compare(report, read, rewritten)
    return report


def find_uncarried(read: Transcript) -> Iterator[tuple[int, str, Any]]:
    """Yield the leaves of the conversation's entries that no message has: index of the entry, place, value."""
    system = session_format(read.system)
    about = {"session": read.session_id, "title": read.title, "cwd": read.cwd, "version": read.version}
    issued: dict[str, str] = {}
    for group in _groups(read):
        for message in group.messages:
            issued.update((call.id, call.provider_id or call.id) for call in message.tool_calls)
        own = [Haystack(_value_of(message), _issued_ids(message, issued)) for message in group.messages]
        carried = _Search(system, group, own, Haystack(about), {}).carried() if own else {}
        for at, value in group.entries:
            for path, leaf in leaves(value) if own else ():
                if (at, path) not in carried:
                    yield at, _place(path), leaf


@attrs.frozen
class _Group:
    """Entries and the messages they made: (index, value) of each entry; without messages, entries beside them."""

    entries: Sequence[tuple[int, Any]]
    messages: Sequence[Message]


def _groups(read: Transcript) -> Iterator[_Group]:
    """Yield the groups of a file in order, and each entry that is of no group."""
    load = session_format(read.system).load
    starts = [0, *accumulate(read.counts)]
    messages = MessagesInOrder(read.messages)
    grouped = {at for group in read.groups for at in group.entries}
    for number, group in enumerate(read.groups):
        made = messages.take(starts[number], starts[number + 1])
        yield _Group([(at, load(read.entries[at])) for at in group.entries], made)
    for at, entry in enumerate(read.entries):
        if at not in grouped:
            yield _Group([(at, load(entry))], ())


def _native_groups(read: Transcript) -> Iterator[_Group]:
    for at, message in enumerate(read.messages):
        yield _Group([(at, _value_of(message))], [message])


def _value_of(message: Message) -> Any:
    """Return a message as JSON, without the entries that are kept beside it."""
    app = {name: value for name, value in message.metadata.app.items() if name != APP}
    return encode_message(with_app(message, app) if APP in message.metadata.app else message)


def _count(
    report: Fidelity, system: SessionFormat, groups: Iterator[_Group], read: Transcript, written: WrittenEntries | None
) -> None:
    """Count the leaves of each entry.

    Args:
        report: gets the counts.
        system: the file's.
        groups: the entries, with the messages they made.
        read: the session.
        written: the entries of the other system's file; None if it is written back for its own.
    """
    about = {"session": read.session_id, "title": read.title, "cwd": read.cwd, "version": read.version}
    issued: dict[str, str] = {}
    for group in groups:
        for message in group.messages:
            issued.update((call.id, call.provider_id or call.id) for call in message.tool_calls)
            report.content.update(_content_of(message))
        own = [Haystack(_value_of(message), _issued_ids(message, issued)) for message in group.messages]
        there = own if written is None else written.stacks([message.id for message in group.messages])
        facts = Haystack(about) if written is None else written.header
        native = report.system == NATIVE
        carried = _Search(system, group, there, facts, issued if native else {}).carried()
        known = carried
        if written is not None and not native:
            known = _Search(system, group, own, Haystack(about), {}).carried()
        for at, value in group.entries:
            kind = f"message/{value['role']}" if native else kind_of(system, value)
            count = _judged(report, at, value, carried, None if native else known)
            report.by_entry[at] = count
            report.by_kind.setdefault(kind, Count())
            report.by_kind[kind] += count
            report.total += count
            if not group.messages:
                report.silent[kind] += 1


def _issued_ids(message: Message, issued: Mapping[str, str]) -> list[str]:
    return [issued[block.tool_use_id] for block in message.tool_results if block.tool_use_id in issued]


def _content_of(message: Message) -> Iterator[str]:
    """Yield a word for each block."""
    for block in message.content:
        if isinstance(block, TextBlock):
            yield "texts"
        elif isinstance(block, ThinkingBlock) or block.type == "redacted_thinking":
            yield "thinking"
        elif isinstance(block, ToolUseBlock):
            yield "calls"
        elif isinstance(block, ToolResultBlock):
            yield "results"
            yield from ("media" for inner in block.content if hasattr(inner, "source"))
        else:
            yield "media" if hasattr(block, "source") else "other"


class _Search:
    """The search for the leaves of a group's entries in what was written of its messages.

    Args:
        system: its rules are tried before the general ones.
        group: the entries.
        stacks: entries written for the group's messages.
        facts: facts written about the session.
        issued: canonical id of a call -> the id a service issued; of a session made here.
    """

    def __init__(
        self,
        system: SessionFormat,
        group: _Group,
        stacks: Sequence[Haystack],
        facts: Haystack,
        issued: Mapping[str, str],
    ) -> None:
        self._system, self._group, self._stacks, self._facts = system, group, stacks, facts
        self._issued = issued
        self._seen: dict[tuple[str, Any], int] = {}  # place and value -> the entry

    def carried(self) -> dict[tuple[int, str], str]:
        """Return the rule that found each leaf that is there; "" for the value itself."""
        found: dict[tuple[int, str], str] = {}
        open_: list[tuple[int, str, Any, Any]] = []
        for at, value in self._group.entries:
            for path, leaf in leaves(value):
                own = self._issued.get(leaf, leaf) if isinstance(leaf, str) else leaf
                if _form_of(self._system, _place(path)) is None and any(stack.take(own) for stack in self._stacks):
                    found[at, path] = ""
                    self._note(at, path, leaf)
                else:
                    open_.append((at, path, leaf, value))
        for at, path, leaf, value in open_:
            rule = _rule(self._system, path, leaf, value, self._stacks)
            rule = self._rule(at, path, leaf) if rule is None else rule
            if rule is not None:
                found[at, path] = rule
                self._note(at, path, leaf)
        for at, path, *_ in open_:
            if (at, path) not in found and _is_tag(path) and _has_values(at, path, found):
                found[at, path] = TAG
        return found

    def _note(self, at: int, path: str, leaf: Any) -> None:
        if not isinstance(leaf, list | dict):
            self._seen.setdefault((_place(path), leaf), at)

    def _rule(self, at: int, path: str, leaf: Any) -> str | None:
        if isinstance(leaf, list | dict) or leaf in ("", None, False):
            return find_form(leaf, self._stacks) if self._stacks else None
        if path.lower().endswith(("id", "name")) and any(stack.was(leaf) for stack in self._stacks):
            return ONCE
        if self._facts.has(leaf):
            return ""  # a fact of the session, which each entry may repeat
        if "content" not in path and self._seen.get((_place(path), leaf), at) != at:
            return REPEATED
        return find_form(leaf, self._stacks) if self._stacks else None


def _rule(system: SessionFormat, path: str, leaf: Any, value: Any, stacks: Sequence[Haystack]) -> str | None:
    form = _form_of(system, _place(path))
    if form is None or not stacks:
        return None
    if any(stack.take(leaf) for stack in stacks):
        return ""
    try:
        turned = form.turn(leaf, _parent(value, path))
    except ODD:
        return None
    there = turned is not None and all(
        one == "" or one is False or any(stack.has(one) or stack.was(one) for stack in stacks) for one in turned
    )
    return form.reason if there else None


def _parent(value: Any, path: str) -> Any:
    steps = [step for step in re.split(r"\.|(?=\[)", path) if step]
    for step in steps[:-1]:
        value = value[int(step[1:-1])] if step.startswith("[") else value[step]
    return value


def _is_tag(path: str) -> bool:
    return path == "type" or path.endswith(".type")


def _has_values(at: int, path: str, found: Mapping[tuple[int, str], str]) -> bool:
    """Tell whether a value of the object that a tag names was found."""
    above = path.removesuffix("type")
    others = ((other, rule) for (own, other), rule in found.items() if own == at and other != path)
    return any(other.startswith(above) and rule != EMPTY for other, rule in others)


def _judged(
    report: Fidelity,
    at: int,
    value: Any,
    carried: Mapping[tuple[int, str], str],
    known: Mapping[tuple[int, str], str] | None,
) -> Count:
    """Count one entry's leaves.

    Args:
        report: gets places and reasons.
        at: the entry's index.
        value: its value.
        carried: values found in the written entries.
        known: values found in the messages; None if the messages are the entries.
    """
    count = Count()
    for path, _ in leaves(value):
        rule = carried.get((at, path))
        if rule == "":
            count.exact += 1
        elif rule is not None:
            count.other += 1
            report.reasons[rule] += 1
        elif known is not None and (at, path) not in known:
            count.kept += 1
            report.places[_place(path)] += 1
        else:
            count.lost += 1
            report.lost[_place(path)] += 1
    return count


def _compare(report: Fidelity, read: Transcript, rewritten: Iterator[bytes]) -> None:
    """Compare the rewritten file entry by entry; what it lacks is lost, whatever was found before."""
    system = session_format(read.system)
    for at, entry in enumerate(read.entries):
        text = next(rewritten, None)
        if text == entry:
            continue
        value, again = system.load(entry), system.load(text or b"{}")
        report.equal = report.equal and text is not None and again == value
        if again == value:
            continue
        held = Haystack(again)
        kind = kind_of(system, value)
        for path, leaf in leaves(value):
            if not held.take(leaf):
                report.lost[_place(path)] += 1
                for count in (report.total, report.by_kind[kind], report.by_entry[at]):
                    count.lost += 1
                    name = next(name for name in ("kept", "other", "exact") if getattr(count, name))
                    setattr(count, name, getattr(count, name) - 1)
    report.equal = report.equal and next(rewritten, None) is None


@lru_cache(1 << 14)
def _place(path: str) -> str:
    return _INDEX.sub("[]", path)


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


@lru_cache(1 << 14)  # the entries of a kind have the same places
def _form_of(system: SessionFormat, place: str) -> Form | None:
    plain = place.replace("[]", "")
    ends = (form for end, form in system.forms.items() if plain == end or plain.endswith(f".{end}"))
    return next(ends, None)

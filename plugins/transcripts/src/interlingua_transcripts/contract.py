"""The laws that every system's reader and writer keep, to be tried with session files of yours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import orjson

from interlingua.codec import dumps_message
from interlingua.types import user
from interlingua_transcripts.entries import from_messages, with_entries
from interlingua_transcripts.fidelity import measure_fidelity
from interlingua_transcripts.files import detect_format, read_transcript
from interlingua_transcripts.opened import open_transcript
from interlingua_transcripts.system import DocumentFormat, SessionFormat, load_entry
from interlingua_transcripts.transcript import Transcript, TranscriptError
from interlingua_transcripts.writing import write_transcript

_GROWTH = 4  # JSON of messages to JSON of the file, without the fields of every message
_UNKNOWN = {"type": "entry-of-a-later-version", "payload": {"new": [1, None]}}


def check_format(system: SessionFormat, files: Iterable[bytes]) -> None:
    """Try every law with every file: recognition, writing back, going on, a cut end, an entry of a newer version, size.

    Args:
        system: reads and writes the files.
        files: whole session files, the more different the better; each should hold a conversation.

    Raises:
        AssertionError: a law does not hold; the message lists each that does not, with the number of the file.
    """
    wrong = [f"file {number}: {fault}" for number, data in enumerate(files, 1) for fault in _faults(system, data)]
    if wrong:
        raise AssertionError("\n".join(wrong))


def _faults(system: SessionFormat, data: bytes) -> Iterator[str]:
    found = detect_format(data)
    if found is None or found[0].name != system.name:
        yield f"recognised as {'nothing' if found is None else found[0].name}, not as {system.name}"
    read = read_transcript(data, system)
    if not read.messages:
        yield "no message was found in it"
        return
    yield from _reading_faults(system, data, read)
    yield from _writing_faults(system, data, read)
    if system.writable:
        yield from _added_faults(system, read)
    if not isinstance(system, DocumentFormat):
        yield from _later_faults(system, data, read)


def _reading_faults(system: SessionFormat, data: bytes, read: Transcript) -> Iterator[str]:
    if read_transcript(data, system).messages != read.messages:
        yield "reading the file twice produces different conversations: derive ids from the file's content"
    with open_transcript(data, system, hold=0) as opened:
        if tuple(opened) != read.messages or opened.context() != read.context:
            yield "reading message by message produces another conversation: `plan` needs more than `outline` returns"
        if tuple(opened.with_entries()) != with_entries(read):
            yield "read message by message, its messages keep other entries"
    ids = [message.id for message in read.messages]
    if sorted(set(ids)) != ids:
        yield "message ids do not rise, or an id occurs twice"
    size = sum(len(dumps_message(message)) for message in read.messages)
    if size > _GROWTH * len(data) + 2_000 * len(ids):
        yield f"{len(data):,} bytes became messages of {size:,}: something is taken more than once"
    shown = {message.id for message in read.messages}
    if any(message.id not in shown for message in read.context):
        yield "the context holds messages that the conversation does not"


def _writing_faults(system: SessionFormat, data: bytes, read: Transcript) -> Iterator[str]:
    if not _is_whole(data, system.join(system.split(data))):
        yield "its entries put together are another file"
    if _values(system, write_transcript(read, system)) != _values(system, data):
        yield "written back, it has other entries"
    kept = from_messages(with_entries(read))
    if kept is None or _values(system, write_transcript(kept, system)) != _values(system, data):
        yield "written back after a way through messages, it has other entries"
    report = measure_fidelity(read)
    if report.total.lost:
        yield f"leaves are lost: {', '.join(report.lost)}"


def _added_faults(system: SessionFormat, read: Transcript) -> Iterator[str]:
    """Yield faults of a conversation continued from its end and from its middle, as after a rewind."""
    question = user("And then?", session_id=read.messages[0].session_id)
    for kept in sorted({len(read.messages), (len(read.messages) + 1) // 2}):
        messages = (*read.messages[:kept], question)
        again = read_transcript(write_transcript(attrs.evolve(read, messages=messages), system), system).messages
        if [message.content for message in again] != [message.content for message in messages]:
            yield f"a question added after message {kept} of {len(read.messages)} produces another conversation"
        if [message.metadata for message in again[:kept]] != [message.metadata for message in messages[:kept]]:
            yield f"a question added after message {kept} of {len(read.messages)} changes the facts of other messages"


def _is_whole(data: bytes, joined: bytes) -> bool:
    """Tell whether two files have the same JSON, or the same text except for white space."""
    return data.split() == joined.split() or (load_entry(data) is not None and load_entry(data) == load_entry(joined))


def _later_faults(system: SessionFormat, data: bytes, read: Transcript) -> Iterator[str]:
    """Yield faults with lines that a crash cut, and with lines that a later version writes."""
    for what, end in (("half of a line", b'{"type":"mess'), ("an unknown entry", orjson.dumps(_UNKNOWN) + b"\n")):
        longer = data.rstrip(b"\n") + b"\n" + end
        try:
            again = read_transcript(longer, system)
        except TranscriptError as error:
            yield f"with {what} at its end it is not read: {error}"
            continue
        if again.messages != read.messages:
            yield f"with {what} at its end the file produces another conversation"
        if _values(system, write_transcript(again, system)) != _values(system, longer):
            yield f"with {what} at its end it is written back with other entries"


def _values(system: SessionFormat, data: bytes) -> Sequence[Any]:
    pairs = [(load_entry(entry), entry) for entry in system.split(data)]
    return [entry if value is None else value for value, entry in pairs]

"""The laws that every system's reader and writer keep, to be tried with session files of yours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any

import attrs
import orjson

from interlingua.codec import dumps_message
from interlingua.types import ImageBlock, Message, Role, TextBlock, ToolResultBlock, ToolUseBlock, user
from interlingua_transcripts.contract_history import HISTORY
from interlingua_transcripts.entries import from_messages, with_entries
from interlingua_transcripts.fidelity import find_uncarried, measure_fidelity
from interlingua_transcripts.files import detect_format, read_transcript
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.opened import open_transcript
from interlingua_transcripts.system import DocumentFormat, SessionFormat, installed_formats
from interlingua_transcripts.transcript import Note, Transcript, TranscriptError
from interlingua_transcripts.unwritten import count_missing, count_unwritten
from interlingua_transcripts.writing import transcript_of, write_transcript

_GROWTH = 4  # JSON of messages to JSON of the file, without the fields of every message
_SESSION = "11111111-2222-4333-8444-555555555555"
_WIDTH = 200  # letters of a fault that are shown
_UNKNOWN = {"type": "entry-of-a-later-version", "payload": {"new": [1, None]}}


def check_format(system: SessionFormat, files: Iterable[bytes]) -> None:
    """Try every law with every file: recognition, writing back, continuing, a cut end, an unknown entry, size.

    A format that is written also gets a new conversation, which is written and read again.

    Args:
        system: reads and writes the files.
        files: whole session files, the more different the better; each should hold a conversation.

    Raises:
        AssertionError: a law does not hold; the message lists each that does not, with the number of the file.
    """
    wrong = [*_look_alikes(system), *(_own_faults(system) if system.writable else ())]
    wrong += [f"file {number}: {fault}" for number, data in enumerate(files, 1) for fault in _faults(system, data)]
    if wrong:
        raise AssertionError("\n".join(wrong))


def _look_alikes(system: SessionFormat) -> Iterator[str]:
    """Yield the other systems whose files this one recognises as its own."""
    for other in installed_formats().values():
        if other.writable and other.name != system.name:
            data = write_transcript(transcript_of(HISTORY, other.name, _SESSION), other)
            found = detect_format(data)
            if found is not None and found[0].name == system.name:
                yield f"a file of {other.name} is recognised as {system.name}"


def _faults(system: SessionFormat, data: bytes) -> Iterator[str]:
    found = detect_format(data)
    if found is None or found[0].name != system.name:
        yield f"recognised as {'nothing' if found is None else found[0].name}, not as {system.name}"
    read = read_transcript(data, system)
    if not read.messages:
        yield "no message was found in it"
        return
    yield from _reading_faults(system, data, read)
    yield from _uncarried_faults(system, read)
    yield from _writing_faults(system, data, read)
    if system.writable:
        yield from _added_faults(system, read)
    if not isinstance(system, DocumentFormat):
        yield from _later_faults(system, data, read)


def _shown_note(note: Note) -> str:
    return note.text if note.entry is None else f"entry {note.entry + 1}: {note.text}"


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


def _uncarried_faults(system: SessionFormat, read: Transcript) -> Iterator[str]:
    """Yield the places of sentences and of true flags, in entries of messages, that no message has."""
    found: dict[str, int] = {}
    for at, place, leaf in find_uncarried(read):
        said = leaf is True or (isinstance(leaf, str) and len(leaf.split()) > 1)
        if said and not place.replace("[]", "").startswith(tuple(system.beside)):
            found.setdefault(place, at)
    for place, at in found.items():
        yield f"entry {at + 1}: no message has the value of {place}; `beside` names places that belong to none"


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


def _own_faults(system: SessionFormat) -> Iterator[str]:
    """Yield what is lost of a conversation that is written for the system and read again."""
    history = HISTORY if not {"call", "result"} & system.lacks else _without_calls(HISTORY)
    transcript = transcript_of(history, system.name, _SESSION)
    try:
        data = write_transcript(transcript, system)
        read = read_transcript(data, system)
    except TranscriptError as error:
        yield f"a new conversation is not written and read: {error}"
        return
    yield from (f"a new conversation: {_shown_note(note)}" for note in read.notes)
    if read.session_id != transcript.session_id and "session id" not in system.lacks:
        yield f"a new conversation: the session {transcript.session_id} is read as {read.session_id or 'none'}"
    for number, (wanted, found) in enumerate(
        zip_longest(_said(history, system, written=True), _said(read.messages, system)), 1
    ):
        if wanted != found:
            yield f"a new conversation, item {number}: {_shown(wanted)} was written, {_shown(found)} is read"
            break
    for word, count in count_unwritten(transcript, system).items():
        if word not in system.lacks:
            yield f"a new conversation: {count} {word} not in the file; list it in `lacks` if it has no place"
    for word, count in count_missing(history, read.messages).items():
        if word not in system.lacks:
            yield f"a new conversation: {count} {word} is in the file and is not read again"
    if system.links is not None:
        entries = [load_entry(entry) for entry in system.split(data)]
        ids = [str(value[system.links[0]]) for value in entries if isinstance(value, dict) and system.links[0] in value]
        if len(set(ids)) < len(ids):
            yield "a new conversation: two entries have one id"


def _without_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the conversation for a format that has no calls."""
    return [
        attrs.evolve(message, content=[block for block in message.content if not isinstance(block, ToolUseBlock)])
        for message in messages
        if message.role is not Role.TOOL
    ]


def _said(messages: Sequence[Message], system: SessionFormat, *, written: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield role and text, call or result, and an answer's tokens; a result with the issued id of its call.

    Args:
        messages: the conversation.
        system: what it lacks is not expected.
        written: the messages are those that were written.
    """
    calls: dict[str, str] = {}
    for message in messages:
        own = "user" if message.role is Role.SYSTEM and "system prompt" in system.lacks else message.role.value
        for kind, blocks in groupby(message.content, type):
            if kind is TextBlock:
                yield (own, "text", _joined(blocks))
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                calls[block.id] = block.provider_id or ""
                yield (message.role.value, "call", block.provider_id or "", block.name, str(dict(block.input)))
            elif isinstance(block, ToolResultBlock):
                failed = block.is_error and not (written and "mark of a failed result" in system.lacks)
                yield (own, "result", calls.get(block.tool_use_id, ""), str(failed), _joined(block.content))
            elif isinstance(block, ImageBlock) and not {"image", "media type"} & system.lacks:
                yield (own, "image", block.media_type)
        usage = message.metadata.usage
        if usage is not None and "token count" not in system.lacks:
            yield (own, "tokens", str(usage.input_tokens), str(usage.output_tokens))
        if message.metadata.stop_reason is not None and "stop reason" not in system.lacks:
            yield (own, "stop reason", message.metadata.stop_reason.value)
        if "time" not in system.lacks and message.role is not Role.TOOL:  # results share the time of their message
            yield (own, "time", f"{message.created_at:%Y-%m-%dT%H:%M:%S}")


def _joined(blocks: Iterable[Any]) -> str:
    """Return the text of blocks; some formats join those of a message, with line breaks or without."""
    return "".join([block.text for block in blocks if isinstance(block, TextBlock)]).replace("\n", "")


def _shown(item: tuple[str, ...] | None) -> str:
    return "nothing" if item is None else " ".join(item)[:_WIDTH]


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
        if not _is_whole(longer, system.join(system.split(longer))):
            yield f"with {what} at its end its entries put together are another file"
        if again.messages != read.messages:
            yield f"with {what} at its end the file produces another conversation"
        if _values(system, write_transcript(again, system)) != _values(system, longer):
            yield f"with {what} at its end it is written back with other entries"


def _values(system: SessionFormat, data: bytes) -> Sequence[Any]:
    pairs = [(load_entry(entry), entry) for entry in system.split(data)]
    return [entry if value is None else value for value, entry in pairs]

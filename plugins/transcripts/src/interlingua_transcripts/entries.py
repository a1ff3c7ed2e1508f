"""A file's entries kept with its messages, so that a session may go through a store and be written back."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice

import attrs

from interlingua.types import DEFAULT_SESSION, Message
from interlingua_transcripts.files import APP, attach_entries, entries_by_group, with_app
from interlingua_transcripts.imported import call_ids, rename_calls
from interlingua_transcripts.lazy import LazyMessages, temporary_entries
from interlingua_transcripts.opened import open_entries
from interlingua_transcripts.system import session_format
from interlingua_transcripts.transcript import Transcript


def with_entries(transcript: Transcript) -> tuple[Message, ...]:
    """Return the messages, each with the entries it came from and those beside them, in `MessageMetadata.app`.

    So a session can pass through a store or a JSON Lines file, continue there, and be written back.
    """
    return tuple(iter(KeptMessages(transcript)))


class KeptMessages(LazyMessages):
    """A session's messages as `with_entries` returns them, created at each access."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def __iter__(self) -> Iterator[Message]:
        transcript = self._transcript
        rest = iter(transcript.messages)
        of_groups = entries_by_group(transcript.groups, len(transcript.entries))
        about = {"system": transcript.system, "session": transcript.session_id}
        made = (islice(rest, count) for count in transcript.counts)
        yield from attach_entries(zip(chain(made, [rest]), of_groups, strict=True), transcript.entries, about)


def from_messages(messages: Sequence[Message]) -> Transcript | None:
    """Return the transcript that `with_entries` took apart, with whatever was changed or added since; None without.

    Messages and calls get back the ids they had in the file: a store may have given them others.
    """
    with open_messages(messages) as found:
        if found is None:
            return None
        return attrs.evolve(
            found,
            messages=tuple(iter(found.messages)),
            entries=tuple(found.entries),
            context=tuple(iter(found.context)),
        )


@contextmanager
def open_messages(messages: Sequence[Message]) -> Iterator[Transcript | None]:
    """Open the transcript that `from_messages` returns; its entries and messages are read when they are asked for."""
    with temporary_entries() as entries:
        places: dict[int, int] = {}
        calls: dict[str, tuple[str, str | None]] = {}
        system = ""
        for message in messages:
            kept = message.metadata.app.get(APP)
            if kept is None:
                continue
            system = kept["system"]
            for index, *text in kept["entries"]:
                places[index] = len(entries)
                entries.append(_as_bytes(*text))
            calls.update((call.id, (kept["id"], call.provider_id)) for call in message.tool_calls)
        if not system:
            yield None
            return
        read = open_entries(session_format(system), entries.ordered(places[at] for at in sorted(places))).transcript()
        yield attrs.evolve(read, messages=_RestoredMessages(messages, _renamed_calls(calls, read.messages)))


def _renamed_calls(calls: Mapping[str, tuple[str, str | None]], before: Sequence[Message]) -> Mapping[str, str]:
    """Return ids of calls and those they had before, found by the ids the calls were issued under.

    Args:
        calls: id of a call -> its message, and the id it was issued under.
        before: the original messages.
    """
    now: dict[tuple[str, str | None], list[str]] = {}  # several if a message's calls share one id, in their order
    for call, where in calls.items():
        now.setdefault(where, []).append(call)
    found = {}
    for message in before:
        for own in message.tool_calls:
            if waiting := now.get((message.id, own.provider_id)):
                found[waiting.pop(0)] = own.id
    return {call: own for call, own in found.items() if call != own}


class _RestoredMessages(LazyMessages):
    """Messages as they were before they carried entries, and before a store gave them and their calls other ids."""

    def __init__(self, messages: Sequence[Message], names: Mapping[str, str]) -> None:
        self._messages = messages
        self._names = names

    def __iter__(self) -> Iterator[Message]:
        return map(self._restored, self._messages)

    def one(self, index: int) -> Message:
        return self._restored(self._messages[index])

    def _restored(self, message: Message) -> Message:
        kept = message.metadata.app.get(APP)
        if kept is not None:
            app = {name: value for name, value in message.metadata.app.items() if name != APP}
            message = attrs.evolve(message, id=kept["id"], session_id=kept["session"] or DEFAULT_SESSION)
            message = with_app(message, app)
        names = [self._names.get(call, call) for call in call_ids(message)] if self._names else []
        return rename_calls([message], names)[0] if names else message


def _as_bytes(text: str, coding: str = "") -> bytes:
    return b64decode(text) if coding else text.encode()

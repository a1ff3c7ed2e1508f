"""The entries that a system writes of a conversation, found by the messages they concern."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from interlingua.plugins import dumps
from interlingua_transcripts.lazy import FileEntries, temporary_entries
from interlingua_transcripts.system import SessionFormat
from interlingua_transcripts.transcript import Conversation
from interlingua_transcripts.values import Haystack


@attrs.define
class WrittenEntries:
    """The entries, in a temporary file; the values of those whose messages were not all asked for are in memory.

    Attributes:
        header: values of the entries that concern no message.
        entries: the entries.
    """

    header: Haystack
    entries: FileEntries
    _load: Callable[[bytes], Any]
    _places: dict[str, list[int]]
    _waiting: dict[int, int]
    _held: dict[int, Haystack] = attrs.field(factory=dict)

    @classmethod
    @contextmanager
    def of(cls, system: SessionFormat, conversation: Conversation) -> Iterator[WrittenEntries]:
        """Write a conversation for a system.

        Raises:
            TranscriptError: the system's files are only read, or cannot hold this conversation.
        """
        with temporary_entries() as entries:
            header = Haystack()
            places: dict[str, list[int]] = {}
            waiting: dict[int, int] = {}
            for one in system.write(conversation):
                if not one.messages:
                    header.add(one.value)
                for own in one.messages:
                    places.setdefault(own, []).append(len(entries))
                waiting[len(entries)] = len(one.messages)
                entries.append(dumps(one.value))
            yield cls(header, entries, system.load, places, waiting)

    def stacks(self, messages: Sequence[str]) -> list[Haystack]:
        """Return the values of the entries that concern these messages; each message is asked for once."""
        found: dict[int, Haystack] = {}
        for own in messages:
            for place in self._places.get(own, ()):
                if place not in found:
                    found[place] = self._held.get(place) or Haystack(self._load(self.entries[place]))
                    self._held[place] = found[place]
                self._waiting[place] -= 1
                if self._waiting[place] <= 0:
                    self._held.pop(place, None)
        return list(found.values())

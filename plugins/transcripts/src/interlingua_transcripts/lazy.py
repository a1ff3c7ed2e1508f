"""Entries and messages of a long session that are read again each time they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast, overload

import attrs

from interlingua.types import Message, Role, ToolUseBlock


class FileEntries(Sequence[bytes]):
    """Texts in an open file, of which memory holds the places."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._starts = array("Q")
        self._lengths = array("Q")

    def read_lines(self) -> Iterator[bytes]:
        """Yield each line while its place is noted; blank ones are left out."""
        at = 0
        for line in self._file:
            if not line.isspace():
                self._starts.append(at)
                self._lengths.append(len(line))
                yield line
            at += len(line)

    def append(self, entry: bytes) -> None:
        """Append a string to the file."""
        self._starts.append(self._file.seek(0, 2))
        self._lengths.append(len(entry))
        self._file.write(entry)

    def ordered(self, order: Iterable[int]) -> FileEntries:
        """Return the strings in another order: the index of each here."""
        made = FileEntries(self._file)
        for at in order:
            made._starts.append(self._starts[at])
            made._lengths.append(self._lengths[at])
        return made

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        self._file.seek(self._starts[index])
        return self._file.read(self._lengths[index]).removesuffix(b"\n")


@contextmanager
def temporary_entries() -> Iterator[FileEntries]:
    """Yield an empty list of entries, in memory up to 1 MiB, in a temporary file beyond."""
    with SpooledTemporaryFile(1 << 20) as file:
        yield FileEntries(cast("IO[bytes]", file))


class EntryValues(Sequence[Any]):
    """The JSON values of entries, each loaded on access; `held` has some, until they are accessed once."""

    def __init__(self, entries: Sequence[bytes], load: Callable[[bytes], Any]) -> None:
        self._entries, self._load = entries, load
        self.held: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        value = self.held.pop(index, None)
        return self._load(self._entries[index]) if value is None else value


@attrs.frozen
class MessageIndex:
    """Facts collected in one pass over messages.

    Attributes:
        ids: the id of each.
        roles: the role of each.
        calls: id of a call -> index of the message that has it.
    """

    ids: list[str] = attrs.field(factory=list)
    roles: list[Role] = attrs.field(factory=list)
    calls: dict[str, int] = attrs.field(factory=dict)

    def add(self, message: Message) -> None:
        """Note the next message."""
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                self.calls[block.id] = len(self.ids)
        self.ids.append(message.id)
        self.roles.append(message.role)


class LazyMessages(Sequence[Message]):
    """Messages that are created anew on each access; override `__iter__`, and `one` if it can be fast.

    Their number, which `list` and `tuple` ask for, costs going through them once.
    """

    def __iter__(self) -> Iterator[Message]:
        raise NotImplementedError

    def one(self, index: int) -> Message:
        """Return the message of this index."""
        return next(islice(iter(self), index, None))

    @cached_property
    def overview(self) -> MessageIndex:
        """Facts collected in one pass over the messages."""
        return _indexed(self)

    def __len__(self) -> int:
        return len(self.overview.ids)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self.one(at) for at in range(*index.indices(len(self)))]
        return self.one(range(len(self))[index])


class MessagesInOrder:
    """Reads messages at any position; one pass is enough if the positions rise."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._rest = iter(messages)
        self._reached = 0

    def take(self, start: int, end: int) -> Sequence[Message]:
        """Return the messages from one index up to another."""
        if start < self._reached:
            return self._messages[start:end]
        found = list(islice(self._rest, start - self._reached, end - self._reached))
        self._reached = end
        return found


def index_messages(messages: Sequence[Message]) -> MessageIndex:
    """Return what going through messages once finds; lazy ones remember it."""
    return messages.overview if isinstance(messages, LazyMessages) else _indexed(messages)


def _indexed(messages: Iterable[Message]) -> MessageIndex:
    index = MessageIndex()
    for message in messages:
        index.add(message)
    return index


class LazyCalls(Mapping[str, ToolUseBlock]):
    """The calls of messages by their ids, each looked up in its message."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return index_messages(self._messages).calls

    def __getitem__(self, call: str) -> ToolUseBlock:
        blocks = self._messages[self._places[call]].content
        return next(block for block in reversed(blocks) if isinstance(block, ToolUseBlock) and block.id == call)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

"""Helpers of all formats to create canonical messages: reproducible ids, times, counts, costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID

import attrs

from interlingua.types import (
    DEFAULT_SESSION,
    ContentBlock,
    CostParts,
    Message,
    MessageMetadata,
    Provenance,
    Role,
    ToolResultBlock,
    ToolUseBlock,
)

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_PART = (1 << 40) - 1
_AMOUNTS = frozenset({int, float, str, Decimal})
_IMPORTED = Provenance.IMPORTED
_NO_FACTS = MessageMetadata(provenance=_IMPORTED)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ImportedIds:
    """Makes a file's messages, and canonical ids: the same for the same file, rising in the order asked for.

    A message's id has the time of its entry (never one before the message above it), the place of its first entry and
    a digest; so a file that grows keeps the ids of what it held.
    """

    def __init__(self, system: str, session_id: str) -> None:
        self._session_id = session_id or DEFAULT_SESSION
        seed = f"{system}\0{session_id}\0".encode()
        self._of_groups = blake2b(seed, digest_size=6)
        self._of_calls = blake2b(seed + b"\0call\0", digest_size=15)
        self._at = EPOCH
        self._stamp = 0
        self._time = "0" * 10
        self._place = 0
        self._entry = 0
        self._is_crowded = False
        self._end = ""
        self._calls: dict[str, str] = {}

    def begin(self, key: str, place: int) -> None:
        """Begin a group: its key, and the index of its first entry."""
        digest = _digest(self._of_groups, key)
        begin = (place & 0xFFFFFF) << 16
        if self._place >> 16 != self._entry:  # an entry made more messages than fit before the next one's
            self._is_crowded = True
        if self._is_crowded and begin < self._place:
            begin = (self._place | 0xFF) + 1
        self._entry = begin >> 16
        self._place = begin | digest >> 40
        self._end = _letters(digest & _PART)

    def message(self, at: datetime) -> str:
        """Return the id of the group's next message."""
        if at is not self._at:
            self._at = at
            stamp = int(at.timestamp() * 1000)
            if stamp > self._stamp:
                self._stamp = min(stamp, (1 << 48) - 1)
                self._time = _PAIRS[self._stamp >> 40] + _letters(self._stamp & _PART)
        made = f"{self._time}{_letters(self._place & _PART)}{self._end}"
        self._place += 0x100  # the number of the next one
        return made

    def make_message(
        self, role: Role, content: Iterable[ContentBlock], at: datetime, facts: Mapping[str, Any] | None = None
    ) -> Message:
        """Return the group's next message.

        Args:
            role: whose it is.
            content: its blocks.
            at: when it was said.
            facts: fields of its metadata that the file says.
        """
        return Message(
            id=self.message(at),
            session_id=self._session_id,
            role=role,
            content=tuple(content),
            created_at=at,
            metadata=MessageMetadata(provenance=_IMPORTED, **facts) if facts else _NO_FACTS,
        )

    def call(self, issued: str) -> str:
        """Return the canonical id of the call that the system names so; a result asks with the same name."""
        found = self._calls.pop(issued, None)
        if found is None:
            found = _call_id(_digest(self._of_calls, issued))
            self._calls[issued] = found  # a result mostly asks next
        return found

    def calls(self, issued: Iterable[str]) -> list[str]:
        """Return the canonical ids of the calls of one entry, which holds their results too; no two are the same."""
        numbers: dict[str, int] = {}
        found = []
        for name in issued:
            numbers[name] = number = numbers.get(name, -1) + 1
            found.append(_numbered(self.call(name), number, "of the entry"))
        return found


class CallNames:
    """Assigns different ids to calls of a file that share one: some services restart their count in each turn.

    The first call keeps its id. A result answers the latest message's first open call with its id.

    Args:
        renamed: gets, for the number of each group whose ids are changed, the ids of its calls and results, in order.
    """

    def __init__(self, renamed: dict[int, Sequence[str]] | None = None) -> None:
        self._renamed = {} if renamed is None else renamed
        self._number = 0
        self._made: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}

    def rename(self, messages: list[Message]) -> list[Message]:
        """Return the messages of the next group."""
        given: list[str] = []
        found: list[str] = []
        for message in messages:
            called: dict[str, list[str]] = {}
            for block in message.content:
                if type(block) is ToolUseBlock:
                    number = self._made.get(block.id, 0)
                    self._made[block.id] = number + 1
                    given.append(block.id)
                    found.append(_numbered(block.id, number))
                    called.setdefault(block.id, []).append(found[-1])
                elif type(block) is ToolResultBlock:
                    given.append(block.tool_use_id)
                    found.append(self._answered(block.tool_use_id))
            for call, names in called.items():
                self._open[call] = [*names, *self._open.get(call, ())]
        number, self._number = self._number, self._number + 1
        if given == found:
            return messages
        self._renamed[number] = tuple(found)
        return rename_calls(messages, found)

    def _answered(self, call: str) -> str:
        waiting = self._open.get(call)
        if not waiting:  # another result of the last call, or of none
            return _numbered(call, max(self._made.get(call, 1) - 1, 0))
        name = waiting.pop(0)
        if not waiting:
            del self._open[call]
        return name


def call_ids(message: Message) -> Iterator[str]:
    """Yield the ids of a message's calls, and of those that its results answer, in order."""
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            yield block.id
        elif isinstance(block, ToolResultBlock):
            yield block.tool_use_id


def rename_calls(messages: Sequence[Message], names: Iterable[str]) -> list[Message]:
    """Return messages whose calls and results, in their order, have other ids of calls."""
    rest = iter(names)
    return [_with_calls(message, rest) for message in messages]


def _with_calls(message: Message, names: Iterator[str]) -> Message:
    content: list[ContentBlock] = []
    answered = message.metadata.parent_tool_use_id
    parent = answered
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            content.append(attrs.evolve(block, id=next(names)))
        elif isinstance(block, ToolResultBlock):
            name = next(names)
            parent = name if answered == block.tool_use_id else parent
            content.append(attrs.evolve(block, tool_use_id=name))
        else:
            content.append(block)
    metadata = attrs.evolve(message.metadata, parent_tool_use_id=parent)
    return attrs.evolve(message, content=tuple(content), metadata=metadata)


def _numbered(call: str, number: int, among: str = "") -> str:
    """Return the id of the call that has the same one as `number` calls before it."""
    if not number:
        return call
    return _call_id(_digest(blake2b(digest_size=15), f"{call}\0{number}\0{among}"))


def _call_id(digest: int) -> str:
    return f"tu_00{_letters(digest >> 80)}{_letters((digest >> 40) & _PART)}{_letters(digest & _PART)}"


def _digest(begun: blake2b, text: str) -> int:
    made = begun.copy()  # a third cheaper than to begin anew
    made.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(made.digest(), "big")


def _letters(value: int) -> str:
    """Return 40 bits as 8 letters of base 32, two at a time."""
    pairs = _PAIRS
    return f"{pairs[value >> 30]}{pairs[(value >> 20) & 1023]}{pairs[(value >> 10) & 1023]}{pairs[value & 1023]}"


def short_id(seed: str, taken: Any = (), *, letters: int = 8) -> str:
    """Return an id of hexadecimal letters derived from a seed; another one if it is taken."""
    for salt in range(1_000):
        made = blake2b(f"{seed}\0{salt}".encode("utf-8", "surrogatepass")).hexdigest()[:letters]
        if made not in taken:
            return made
    raise ValueError("no id is free")


def content_id(entries: Iterable[bytes]) -> str:
    """Return an id derived from the entries of a file that has none: files of a program often share one name."""
    made = blake2b(digest_size=6)
    for entry in entries:
        made.update(entry + b"\n")
    return made.hexdigest()


def uuid_of(seed: str) -> str:
    """Return a UUID made from a seed (the form of version 8, which leaves its bits to the maker)."""
    raw = bytearray(blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    raw[6], raw[8] = (raw[6] & 0x0F) | 0x80, (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    """Return whether a string is a UUID as agents write it: small hexadecimal letters, in groups."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def time_of(value: Any, otherwise: datetime = EPOCH) -> datetime:
    """Read a time: ISO 8601 text, seconds or milliseconds since 1970; any other value yields `otherwise`."""
    try:
        if type(value) is str:
            found = datetime.fromisoformat(value)
            if found.tzinfo is UTC:
                return found
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if type(value) is int or type(value) is float:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return otherwise


def to_iso(at: datetime) -> str:
    """Write a time in UTC with milliseconds and a Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def to_milliseconds(at: datetime) -> int:
    """Write a time as whole milliseconds since 1970."""
    return round(at.timestamp() * 1000)


def count_of(value: Any) -> int | None:
    """Read a number of tokens; None for any other value."""
    if type(value) is int:
        return value if value >= 0 else None
    return int(value) if type(value) is float and value.is_integer() and value >= 0 else None


def usd_of(value: Any) -> Decimal | None:
    """Read an amount of dollars, exact to its digits; None for any other value."""
    return _amount(value) if type(value) in _AMOUNTS else None


@lru_cache(maxsize=4096, typed=True)  # most amounts of a file are zero, or there twice
def _amount(value: float | str | Decimal) -> Decimal | None:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def cost_parts(cost: Mapping[str, Any], *, read: str, write: str) -> CostParts | None:
    """Read the parts of a cost; None if one is missing.

    Args:
        cost: cost, with `input` and `output`.
        read: the name of the part for cached reads.
        write: the name of the part for cache writes.
    """
    try:
        return _parts(cost.get("input"), cost.get("output"), cost.get(read), cost.get(write))
    except TypeError:  # a list or an object, which no cache can look up
        return None


@lru_cache(maxsize=4096, typed=True)  # in many files every cost is zero
def _parts(*amounts: Any) -> CostParts | None:
    given, made, cached, written = map(usd_of, amounts)
    if given is None or made is None or cached is None or written is None:
        return None
    return CostParts(input=given, output=made, cached_read=cached, cache_write=written)

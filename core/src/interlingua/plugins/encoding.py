"""Wire fragments: bytes made once per message and joined per request (DESIGN 8).

Never parses JSON and never decides what a fragment says; a key names everything it depends on besides the message.
Adapters come in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, TypeVar

from interlingua.json import dumps
from interlingua.types.messages import SILENTLY_ANSWERED, Message, Role

T = TypeVar("T")


class ProjectedMessages(list[Message]):
    """Messages as one target can carry them; `written` remembers what an adapter wrote of each, by key."""

    __slots__ = ("written",)

    def __init__(
        self, messages: Iterable[Message] = (), written: dict[Hashable, list[tuple[Message, Any]]] | None = None
    ):
        super().__init__(messages)
        self.written = {} if written is None else written


def encode_each(messages: Sequence[Message], key: Hashable, encode: Callable[[Message], T]) -> list[T]:
    """Return `encode(message)` for every message; each is encoded once per key while its conversation lives.

    Args:
        messages: what `to_wire` was given; of a plain list, every message is encoded.
        key: names the adapter and everything the result depends on besides the message.
        encode: a pure function of one message.
    """
    store = getattr(messages, "written", None)
    if store is None:
        return [encode(message) for message in messages]
    known = store.setdefault(key, [])
    same = 0
    for (before, _), now in zip(known, messages, strict=False):
        if before is not now:
            break
        same += 1
    rest = {id(message): made for message, made in known[same:]}  # holds its messages, so ids cannot lie
    known[same:] = [
        (message, rest[id(message)] if id(message) in rest else encode(message)) for message in messages[same:]
    ]
    return [made for _, made in known]


def remembered(message: Message, key: Hashable, make: Callable[[Message], T]) -> T:
    """Return what `make(message)` gave the first time for this key; it dies with the message.

    The messages an adapter sees are core's projected ones: their call ids are part of them, so a key need not name
    ids. It must name the adapter and whatever of the options or the model the fragment depends on.
    """
    found: T | None = message.memo.get(key)
    if found is None:
        found = message.memo[key] = make(message)
    return found


def was_answered(messages: Sequence[Message], at: int) -> bool:
    """Tell whether a model was asked right behind message `at`: an answer follows, or nothing, or one that vanished.

    A wire that writes the end of a conversation differently needs this: what was the end once must stay as it was sent.
    """
    if at + 1 == len(messages) or messages[at + 1].role is Role.ASSISTANT:
        return True
    return SILENTLY_ANSWERED in messages[at].metadata.extra


_REACH = 64  # how many new messages a conversation may have got


def take_grown(messages: Sequence[Message], key: Hashable) -> tuple[int, Any]:
    """Return how many of these messages something was made of before, and what; or 0 and None.

    Only when every one of those messages is the very same object. Whoever takes it has it alone, so two threads, or
    two branches of a conversation, never share one.
    """
    for at in range(len(messages) - 1, max(len(messages) - 1 - _REACH, -1), -1):
        kept = messages[at].memo.pop(key, None)
        if kept is not None:
            older, made = kept
            return (at + 1, made) if len(older) == at and all(map(is_, older, messages)) else (0, None)
    return 0, None


def keep_grown(messages: Sequence[Message], key: Hashable, made: object) -> None:
    """Keep what was made of these messages; it stays with the newest and refers to older ones, so it dies with them."""
    if messages:
        messages[-1].memo[key] = (messages[:-1], made)


Piece = bytes | memoryview


_LOOSE = 64  # so many pieces may lie about before they are put together


def gather(pieces: list[Piece]) -> None:
    """Put the pieces kept so far together in place once they are many: the next turn then copies one run of memory."""
    if len(pieces) > _LOOSE:
        pieces[:] = [b"".join(pieces)]


def inside(array: bytes, *, closing: int = 1) -> memoryview:
    """Return what stands inside a ready JSON array, less the last `closing` characters; nothing is copied."""
    return memoryview(array)[1:-closing]


class GrowingArray:
    """A JSON array in pieces; elements that are not written yet are written all at once."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._said: list[Any] = []

    def say(self, element: Any) -> None:
        """Take an element as a JSON value."""
        self._said.append(element)

    def put(self, elements: Iterable[bytes]) -> None:
        """Take elements as bytes."""
        self._write()
        for element in elements:
            self._pieces += (b",", element) if self._pieces else (element,)

    def closed(self) -> list[Piece]:
        """Return the array as it is now; it can grow further."""
        self._write()
        gather(self._pieces)
        return [b"[", *self._pieces, b"]"]

    def _write(self) -> None:
        if self._said:
            written = inside(dumps(self._said))
            self._pieces += (b",", written) if self._pieces else (written,)
            self._said = []


@lru_cache(maxsize=256)
def _named(name: str) -> bytes:
    return dumps(name) + b":"


Json = bytes | Sequence[Piece]


"""A ready JSON value, whole or in pieces: a history is joined once, with the request around it."""


def json_object(fields: Mapping[str, Json] | Iterable[tuple[str, Json]]) -> bytes:
    """Join ready JSON values into an object, in the order given."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    pieces: list[Piece] = []
    for name, value in pairs:
        pieces += (b"," if pieces else b"{", _named(name))
        if isinstance(value, bytes):
            pieces.append(value)
        else:
            pieces += value
    pieces.append(b"}" if pieces else b"{}")
    return b"".join(pieces)


def json_array(values: Iterable[bytes]) -> bytes:
    """Join ready JSON values into an array."""
    return b"".join((b"[", b",".join(values), b"]"))


def concat_arrays(array: bytes, more: bytes) -> bytes:
    """Join two ready JSON arrays, the second behind the first."""
    if array == b"[]" or more == b"[]":
        return more if array == b"[]" else array
    return array[:-1] + b"," + more[1:]


def append_member(element: bytes, name: str, value: bytes) -> bytes:
    """Add one member at the end of a ready JSON object, for markers that must not be part of the fragment."""
    if element == b"{}":
        return json_object({name: value})
    return element[:-1] + b"," + dumps(name) + b":" + value + b"}"

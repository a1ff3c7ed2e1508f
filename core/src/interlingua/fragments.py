"""Wire fragments: bytes made once per message and joined per request (DESIGN 8).

Never parses JSON and never decides what a fragment says; a key names everything it depends on besides the message.
Adapters come in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from interlingua.jsontext import dumps
from interlingua.messages import Message

T = TypeVar("T")


def remembered(message: Message, key: Hashable, make: Callable[[Message], T]) -> T:
    """Return what `make(message)` gave the first time for this key; it dies with the message.

    The messages an adapter sees are core's projected ones: their call ids are part of them, so a key need not name
    ids. It must name the adapter and whatever of the options or the model the fragment depends on.
    """
    found: T | None = message.memo.get(key)
    if found is None:
        found = message.memo[key] = make(message)
    return found


def json_object(fields: Mapping[str, bytes] | Iterable[tuple[str, bytes]]) -> bytes:
    """Join ready JSON values into an object, in the order given."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return b"{" + b",".join([dumps(name) + b":" + value for name, value in pairs]) + b"}"


def json_array(values: Iterable[bytes]) -> bytes:
    """Join ready JSON values into an array."""
    return b"[" + b",".join(values) + b"]"


def spliced(element: bytes, name: str, value: bytes) -> bytes:
    """Add one member at the end of a ready JSON object, for markers that must not be part of the fragment."""
    if element == b"{}":
        return json_object({name: value})
    return element[:-1] + b"," + dumps(name) + b":" + value + b"}"

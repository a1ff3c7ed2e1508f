"""Identity: ULIDs minted in order, tool-use ids, and model ids.

Never reads a provider's ids into meaning; adapters and stores never mint (seed 003 §6.1, §6.2).
Every room may come in.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import NamedTuple

from interlingua.errors import CallerError

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32, the ULID specification
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
TOOL_PREFIX = "tu_"


def _encode(value: int) -> str:
    pairs = _PAIRS
    low = value & 0xFFFFFFFFFFFFFFF  # 60 bits: twelve characters
    mid = (value >> 60) & 0xFFFFFFFFFFFFFFF
    top = value >> 120
    return (
        pairs[top]
        + pairs[mid >> 50] + pairs[(mid >> 40) & 1023] + pairs[(mid >> 30) & 1023]
        + pairs[(mid >> 20) & 1023] + pairs[(mid >> 10) & 1023] + pairs[mid & 1023]
        + pairs[low >> 50] + pairs[(low >> 40) & 1023] + pairs[(low >> 30) & 1023]
        + pairs[(low >> 20) & 1023] + pairs[(low >> 10) & 1023] + pairs[low & 1023]
    )  # fmt: skip


class UlidMinter:
    """Mints ULIDs that only ever increase, across threads and when the clock steps back."""

    def __init__(self, clock: object = None) -> None:
        self._clock = clock if callable(clock) else time.time_ns
        self._lock = Lock()
        self._last = 0
        self._high, self._head = -1, ""  # the last id's upper 88 bits and their letters: most ids in a row share them

    def mint(self, after: str | None = None) -> str:
        """Return a new ULID, greater than every earlier one of this minter and than `after` (a stored ULID)."""
        stamp = self._clock() // 1_000_000
        floor = ulid_value(after) if after else 0
        with self._lock:
            value = max(self._last, floor) + 1
            if stamp > value >> _RANDOM_BITS:  # a new millisecond; 72 random bits leave room to increment
                value = (stamp << _RANDOM_BITS) | int.from_bytes(os.urandom(9), "big")
            self._last = value
            if value >> 40 != self._high:
                self._high, self._head = value >> 40, _encode(value)[:-8]
            head = self._head
        pairs = _PAIRS
        return (
            head
            + pairs[value >> 30 & 1023] + pairs[value >> 20 & 1023] + pairs[value >> 10 & 1023] + pairs[value & 1023]
        )  # fmt: skip


_minter = UlidMinter()
new_ulid = _minter.mint


def new_tool_use_id() -> str:
    """Return a new canonical tool-use id, `tu_<ulid>` (seed 003 §6.1)."""
    return TOOL_PREFIX + new_ulid()


def ulid_value(text: str) -> int:
    """Return a ULID's 128-bit value.

    Raises:
        CallerError: the text is not a ULID.
    """
    from ulid import ULID  # noqa: PLC0415  the library costs import time that minting does not need

    try:
        return int(ULID.from_str(text))
    except ValueError as error:
        raise CallerError(f"{text!r} is not a ULID: {error}") from error


class ModelId(NamedTuple):
    """A canonical model id, `<provider>:<model_name>` (seed 003 §6.2); names may contain colons and slashes."""

    provider: str
    name: str

    def __str__(self) -> str:
        """Return the canonical spelling."""
        return f"{self.provider}:{self.name}"


def split_model_id(text: str) -> ModelId:
    """Split `<provider>:<model_name>` at its first colon.

    Raises:
        CallerError: there is no provider key; the message says what to write.
    """
    provider, colon, name = text.partition(":")
    if not (provider and colon and name):
        raise CallerError(f"model id {text!r} has no provider; write <provider>:<model>, or configure an alias")
    return ModelId(provider, name)

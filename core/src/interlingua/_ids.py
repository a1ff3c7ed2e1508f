"""ULIDs in increasing order, tool-use ids, and model ids (format.md, Identity)."""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import NamedTuple

from interlingua.errors import CallerError

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32, the ULID specification
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
_LAST = (1 << 128) - 1
TOOL_PREFIX = "tu_"


def _encode(value: int) -> str:
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


class UlidMinter:
    """Mints ULIDs that only ever increase, across threads and when the clock steps back."""

    def __init__(self, clock: object = None) -> None:
        self._clock = clock if callable(clock) else time.time_ns
        self._lock = Lock()
        self._next = 0

    def mint(self, after: str | None = None) -> str:
        """Return a new ULID, greater than every earlier one of this minter that was minted without `after`.

        It exceeds `after`, a stored ULID. If the clock of that one was ahead of this machine's, later ULIDs without
        `after` are smaller again: one session must not push all others into the future.
        """
        stamp = self._clock() // 1_000_000
        with self._lock:
            value = self._next
            if stamp > value >> _RANDOM_BITS:  # a new millisecond; 72 random bits leave space to increment
                value = (stamp << _RANDOM_BITS) | int.from_bytes(os.urandom(9), "big")
            if after is not None and (ahead := ulid_value(after)) >= value:
                return _encode(min(ahead + 1 + int.from_bytes(os.urandom(8), "big"), _LAST))
            self._next = value + 1
        return _encode(value)


_minter = UlidMinter()
new_ulid = _minter.mint


def new_tool_use_id() -> str:
    """Return a new canonical tool-use id, `tu_<ulid>`."""
    return TOOL_PREFIX + new_ulid()


def ulid_value(text: str) -> int:
    """Return a ULID's 128-bit value; raise a CallerError if the text is not a ULID."""
    from ulid import ULID  # noqa: PLC0415  the library costs import time that minting does not need

    try:
        return int(ULID.from_str(text))
    except ValueError as error:
        raise CallerError(f"{text!r} is not a ULID: {error}") from error


def ulid_before(text: str, steps: int = 1) -> str:
    """Return the ULID `steps` before another; raises as `ulid_value`."""
    return _encode(max(ulid_value(text) - steps, 0))


class ModelId(NamedTuple):
    """A canonical model id, `<provider>:<model_name>`; names may contain colons and slashes.

    Attributes:
        provider: provider key.
        name: the provider's name of the model; it may hold colons and slashes.
    """

    provider: str
    name: str

    def __str__(self) -> str:
        """Return the canonical spelling."""
        return f"{self.provider}:{self.name}"


def parse_model_id(text: str) -> ModelId:
    """Split `<provider>:<model_name>` at its first colon; raise a CallerError if a part is missing or unprintable."""
    provider, colon, name = text.partition(":")
    if not (provider and colon):
        raise CallerError(f"model id {text!r} has no provider; write <provider>:<model>, or configure an alias")
    if not name:
        raise CallerError(f"model id {text!r} names no model; write {provider}:<model>")
    if not text.isprintable():
        raise CallerError(f"model id {text!a} has a control character or an invisible one")
    return ModelId(provider, name)


def quote_model(name: str, safe: str = "") -> str:
    """Return a model's name for the path of a URL; all but letters, digits, `_.-~` and `safe` is percent-encoded.

    Raises:
        CallerError: a segment of the name is `.` or `..`, which leads to another path.
    """
    if {".", ".."}.intersection(name.split("/")):
        raise CallerError(f"model name {name!a} has a segment '.' or '..'")
    from urllib.parse import quote  # noqa: PLC0415  `import interlingua` stays cheap

    return quote(name, safe=safe)

"""Ids and times of a replay, derived from the entry: two runs give the same bytes.

Never reads a clock or a random source. The exchange comes in; nothing else needs to.
A replay's ids have the shape of the real ones, so a message of a replay is a message like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from itertools import count

from interlingua.ids import TOOL_PREFIX

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


def message_id(name: str) -> str:
    """Return the ULID that belongs to an entry's id."""
    value = int.from_bytes(sha256(name.encode("utf-8", "replace")).digest()[:16], "big")
    return "".join([_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5)])


def tool_use_ids(name: str) -> Callable[[], str]:
    """Return what mints the tool-use ids of an entry: the first, the second, and so on."""
    numbers = count()
    return lambda: TOOL_PREFIX + message_id(f"{name}#{next(numbers)}")


def time_of(headers: Mapping[str, str]) -> datetime:
    """Return when the answer was given, by its `date` header, else a fixed day."""
    try:
        date = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return _UNDATED
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)

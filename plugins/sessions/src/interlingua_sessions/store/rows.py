"""Messages as rows and back, times as integers, and the ids that order a session's rows.

A column's text is what both databases can hold: no NUL, no lone surrogate; inside JSON those are escaped or replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any

import orjson

from interlingua.codec import decode_message, dumps_message, encode_message
from interlingua.errors import DecodeError
from interlingua.types import Message, new_ulid, user
from interlingua_sessions.store.schema import Row, StoreError

COLUMNS = "id, session_id, role, content_json, metadata_json, created_at, schema_version"
_FIELDS = frozenset({"id", "session_id", "role", "content", "metadata", "created_at", "schema_version"})
UNKNOWN = "_unknown_fields"
"""Where the codec keeps fields that a newer version wrote."""
EXACT = " "
"""Begins a JSON column that a fast parser would round: it holds integers of more than 64 bits."""
_EXACTLY = (EXACT, EXACT.encode())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOTHING = encode_message(user(""))["metadata"]
_NOTHING_JSON = orjson.dumps(_NOTHING)  # the metadata of most messages that no model generated


def read_columns(as_json: str, table: str = "") -> str:
    """Return the columns of a message as they are selected for `read_message` and `read_line`.

    Args:
        as_json: the database's way to select JSON (`Database.as_json`).
        table: alias of the table, with its dot.
    """
    content, metadata = as_json.format(f"{table}content_json"), as_json.format(f"{table}metadata_json")
    return f"{table}id, {table}session_id, {table}role, {content}, {metadata}, {table}created_at, {table}schema_version"


def stamp_of(time: datetime) -> int:
    """Return microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def time_of(stamp: int) -> datetime:
    """Return the time of so many microseconds since 1970, UTC."""
    return _EPOCH + timedelta(0, 0, stamp)  # by place: half the cost of by name


def now_stamp() -> int:
    """Return the present in microseconds since 1970."""
    return time_ns() // 1000


def column_text(text: str) -> str:
    """Return text that both databases can hold in a column; broken text as the codec writes it."""
    if text.isascii() and "\0" not in text:
        return text
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def message_row(message: Message) -> list[Any]:
    """Return the columns of a message, in the order of COLUMNS.

    Raises:
        CallerError: it holds what cannot be stored.
    """
    data = encode_message(message)
    try:
        content, metadata = orjson.dumps(data["content"]).decode(), orjson.dumps(_metadata(data)).decode()
    except TypeError:  # huge integers or broken text, which the codec's own writer handles
        data = json.loads(dumps_message(message))
        content, metadata = EXACT + exact_json(data["content"]), EXACT + exact_json(_metadata(data))
    made = stamp_of(message.created_at)
    return [message.id, message.session_id, data["role"], content, metadata, made, message.schema_version]


def row_data(row: Row) -> dict[str, Any]:
    """Return the stored form of the message in a row (`read_columns`) for the codec; its time is a datetime.

    Raises:
        ValueError: a column is not JSON.
    """
    message_id, session_id, role, content, metadata, made, version = row
    return {
        "id": message_id,
        "session_id": session_id,
        "role": role,
        "content": _parsed(content),
        "metadata": _NOTHING if metadata == _NOTHING_JSON else _parsed(metadata),
        "created_at": time_of(made),
        "schema_version": version,
    }


def read_line(row: Row) -> str:
    """Return the canonical JSON of the message in a row (`read_columns`)."""
    message_id, session_id, role, content, metadata, made, version = row
    head = orjson.dumps({"id": message_id, "session_id": session_id, "role": role}).decode()[:-1]
    time = time_of(made).isoformat(timespec="microseconds")[:-6]
    tail = f'"created_at":"{time}Z","schema_version":{version}}}'
    return f'{head},"content":{_text(content)},"metadata":{_text(metadata)},{tail}'


def _metadata(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata, and in it what a newer version wrote beside the fields of a message: no column is for it."""
    metadata: Mapping[str, Any] = data["metadata"]
    if data.keys() == _FIELDS:
        return metadata
    newer = {name: value for name, value in data.items() if name not in _FIELDS}
    return {**metadata, UNKNOWN: {**metadata.get(UNKNOWN, {}), "": newer}}


def _parsed(column: str | bytes) -> Any:
    return orjson.loads(column) if column[:1] not in _EXACTLY else json.loads(column)


def _text(column: str | bytes) -> str:
    return (column if isinstance(column, str) else column.decode()).lstrip()


def exact_json(value: Any) -> str:
    """Write JSON compactly, integers of any size as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_message(row: Row) -> Message:
    """Return the message of a row (`read_columns`).

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return decode_message(row_data(row))
    except (DecodeError, ValueError) as error:
        raise StoreError(f"message {row[0]} of the store cannot be read: {error}") from error


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford base 32, the ULID specification
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def id_after(last: str, own: str | None = None) -> str:
    """Return `own` where it is greater than `last` and less than ids still to come, else a new id that is.

    One session whose clock was ahead does not push the ids of others: the process's own minter is left as it is.

    An id that is no ULID is kept only when every ULID minted from now on is greater.
    """
    if own is not None and own > last and _ULID.fullmatch(own):
        return own
    minted = new_ulid()
    if own is not None and last < own < minted and own.isascii() and own.isprintable():
        return own
    return minted if minted > last else _successor(last)


def _successor(ulid: str) -> str:
    kept = ulid.rstrip("Z")
    return kept[:-1] + _DIGITS[_DIGITS.index(kept[-1]) + 1] + "0" * (len(ulid) - len(kept))


def may_be_last(own: str) -> bool:
    """Tell whether a message may keep this id where no other of its session is greater."""
    return _ULID.fullmatch(own) is not None or (own < new_ulid() and own.isascii() and own.isprintable())

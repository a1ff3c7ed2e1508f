"""Messages as rows and back: the columns of seed 003 §9, and between them the canonical JSON of one message.

Never decides which row, and never reads a message's JSON itself: core's codec does. The store's parts come in.
A column's text is what both databases can hold: no NUL, no lone surrogate; inside JSON those are escaped or replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Any

import orjson

from interlingua.codec import dumps_message, encode_message
from interlingua.types import Message, user
from interlingua_sessions.store.database import Database, Row

COLUMNS = "id, session_id, role, content_json, metadata_json, created_at, schema_version"
_READ = "id, session_id, role, {0}, {1}, created_at, schema_version"
_FIELDS = frozenset({"id", "session_id", "role", "content", "metadata", "created_at", "schema_version"})
UNKNOWN = "_unknown_fields"
"""Where core keeps fields of a newer version (docs/explanation/decisions/110)."""
EXACT = " "
"""Begins a JSON column that a fast parser would round: it holds integers of more than 64 bits."""
_EXACTLY = (EXACT, EXACT.encode())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NOTHING = encode_message(user(""))["metadata"]
_NOTHING_JSON = orjson.dumps(_NOTHING)  # what most messages that nobody generated know of themselves


def columns_of(database: Database) -> str:
    """Return the columns of a message as they are selected for `data_of` and `line_of`."""
    return _READ.format(database.as_json.format("content_json"), database.as_json.format("metadata_json"))


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
    """Return text that both databases can hold in a column; broken text as core's codec writes it."""
    if text.isascii() and "\0" not in text:
        return text
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def row_of(message: Message) -> list[Any]:
    """Return the columns of a message, in the order of COLUMNS.

    Raises:
        CallerError: it holds what cannot be stored.
    """
    data = encode_message(message)
    try:
        content, metadata = orjson.dumps(data["content"]).decode(), orjson.dumps(_metadata(data)).decode()
    except TypeError:  # huge integers or broken text, which core's writer knows how to put
        data = json.loads(dumps_message(message))
        content, metadata = EXACT + exact(data["content"]), EXACT + exact(_metadata(data))
    made = stamp_of(message.created_at)
    return [message.id, message.session_id, data["role"], content, metadata, made, message.schema_version]


def data_of(row: Row) -> dict[str, Any]:
    """Return the stored form of the message in a row (`columns_of`) for core's codec; its time is no text.

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


def line_of(row: Row) -> str:
    """Return the canonical JSON of the message in a row (`columns_of`)."""
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


def exact(value: Any) -> str:
    """Write JSON compactly, integers of any size as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

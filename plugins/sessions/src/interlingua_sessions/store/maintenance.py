"""Maintenance of stored sessions: verify them, reprice messages, trim stored provider data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

import attrs
import orjson

from interlingua import CallerError, cost_of, validate_conversation
from interlingua.codec import decode_message, encode_message
from interlingua.plugins import ModelInfo, dumps
from interlingua.types import (
    TRACE_LIMIT,
    Message,
    MessageMetadata,
    MessageStatus,
    Role,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_sessions.store.schema import Database, Repriced, Row, StoreError, StoreFinding
from interlingua_sessions.store.statements import (
    PAGE,
    Statements,
    column_text,
    message_row,
    now_stamp,
    read_message,
    time_of,
)

T = TypeVar("T")
INSERT_PRICE = "INSERT INTO repricings (message_id, repriced_at, old_usage_json, new_usage_json) VALUES (?, ?, ?, ?)"
_REPORTED = "reported"  # the `pricing_version` of a charge
_UPDATE = "UPDATE messages SET metadata_json = ? WHERE id = ?"

_HISTORY = """
    SELECT m.session_id, m.id, r.old_usage_json, r.new_usage_json, r.repriced_at
    FROM repricings r JOIN messages m ON m.id = r.message_id
    WHERE m.session_id = ? ORDER BY r.repriced_at, m.id"""

_CALLS = """
    SELECT id, message_id, result_message_id, name, provider_id, status FROM tool_calls
    WHERE session_id = ? ORDER BY id"""

_PARTIALS = """
    SELECT p.message_id FROM partial_messages p JOIN messages m ON m.id = p.message_id
    WHERE m.session_id = ? ORDER BY p.message_id"""

_STRAY_ENTRIES = """
    SELECT e.id, e.after_message_id FROM session_entries e JOIN messages m ON m.id = e.after_message_id
    WHERE e.session_id = ? AND m.session_id <> e.session_id"""


@contextmanager
def maintenance_transaction(sql: Statements, session_id: str) -> Iterator[None]:
    """Lock a session for maintenance, without changing when it was last used."""
    with sql.database.transaction():
        if not sql.database.read_only:
            sql.database.run("UPDATE sessions SET updated_at = updated_at WHERE id = ?", (session_id,))  # locks it
        yield


# Changing what is known of messages


def revise(
    sql: Statements,
    change: Callable[[Message], Message],
    record: Callable[[Message, Message], T],
    session_id: str | None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[T]:
    """Yield what `record(old, new)` returned for each message that `change` changed, already committed.

    Never changes a message that is being streamed.

    Args:
        sql: the store.
        change: changes metadata alone; returns the same object if nothing changes.
        record: called inside the transaction.
        session_id: only this session; None for all.
        progress: called with the number of further messages that were read.
    """
    for each in sql.session_ids(session_id):
        after: str | None = ""
        while after is not None:
            with maintenance_transaction(sql, each):
                count, made, after = _revise_page(sql, each, after, change, record)
            if progress is not None:
                progress(count)
            yield from made


def _revise_page(
    sql: Statements,
    session_id: str,
    after: str,
    change: Callable[[Message], Message],
    record: Callable[[Message, Message], T],
) -> tuple[int, list[T], str | None]:
    rows = next(sql.pages(session_id, after=after, limit=PAGE), [])
    made = []
    for row in rows:
        old = read_message(row)
        new = old if old.metadata.status is MessageStatus.PARTIAL else change(old)
        if new is not old:
            sql.database.run(_UPDATE, (message_row(new)[4], row[0]))
            made.append(record(old, new))
    return len(rows), made, rows[-1][0] if len(rows) == PAGE else None


def trim_raw(sql: Statements, limit: int | None, before: datetime | None, session_id: str | None) -> int:
    """See `Store.trim_raw`."""
    change = partial(trim_trace, limit=TRACE_LIMIT if limit is None else limit, before=before)
    return sum(1 for _ in revise(sql, change, lambda _old, _new: None, session_id))


def trim_trace(message: Message, limit: int = TRACE_LIMIT, before: datetime | None = None) -> Message:
    """Return the message with the trace in `provider_raw` trimmed by size or age; `replay` is never touched.

    Args:
        message: any message; one without `provider_raw`, or within the limits, comes back as the same object.
        limit: bytes of JSON that a trace may take; 0 keeps none.
        before: messages made before this moment keep no trace.
    """
    raw = message.metadata.provider_raw
    trace = raw.get("trace") if raw else None
    if not raw or not trace or "trimmed_bytes" in trace:
        return message
    size, old = len(dumps(trace)), before is not None and message.created_at < before
    if size <= limit and not old:
        return message
    metadata = attrs.evolve(message.metadata, provider_raw={**raw, "trace": {"trimmed_bytes": size}})
    return attrs.evolve(message, metadata=metadata)


def reprice(
    sql: Statements,
    lookup: Callable[[str], ModelInfo | None],
    session_id: str | None,
    at: datetime | None,
    progress: Callable[[int], None] | None,
) -> Iterator[Repriced]:
    """See `Store.reprice`."""
    keep = partial(_keep_prices, sql.database)
    return revise(sql, lambda message: reprice_message(message, lookup, at), keep, session_id, progress)


def reprice_message(message: Message, lookup: Callable[[str], ModelInfo | None], at: datetime | None = None) -> Message:
    """Return the message with its cost computed again; the same object if the cost stays, or without usage.

    The charge that a service reported is kept.

    Args:
        message: a stored message.
        lookup: finds the catalogue row of a canonical model id (`provider:model`), None when unknown.
        at: price as if requested then; None: the message's `created_at`.
    """
    usage, model_id = message.metadata.usage, message.metadata.model
    if usage is None or model_id is None or usage.pricing_version == _REPORTED:
        return message
    priced = cost_of(usage, lookup(model_id), at or message.created_at)
    # a cost that is known is not given up for less: the provider may have computed it (hook `cost_of`)
    if priced == usage or (usage.cost_usd is not None and priced.cost_note and not usage.cost_note):
        return message
    return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=priced))


def price_history(sql: Statements, session_id: str) -> list[Repriced]:
    """See `Store.price_history`."""
    return [
        Repriced(
            session_id=session,
            message_id=message,
            old=_usage_of(old),
            new=_usage_of(new),
            repriced_at=time_of(stamp),
        )
        for session, message, old, new, stamp in sql.database.rows(_HISTORY, (session_id,))
    ]


def _keep_prices(database: Database, old: Message, new: Message) -> Repriced:
    before, after = old.metadata.usage, new.metadata.usage
    if before is None or after is None:
        raise CallerError(f"message {old.id} has no usage to price")
    stamp = now_stamp()
    database.run(INSERT_PRICE, (new.id, stamp, _usage_json(before), _usage_json(after)))
    when = time_of(stamp)
    return Repriced(session_id=new.session_id, message_id=new.id, old=before, new=after, repriced_at=when)


def _usage_json(usage: Usage) -> str:
    """Write a usage; core's codec writes usages inside messages only."""
    message = Message(role=Role.ASSISTANT, content=(), metadata=MessageMetadata(usage=usage))
    return orjson.dumps(encode_message(message)["metadata"]["usage"]).decode()


def _usage_of(text: str) -> Usage:
    carrier = {"role": "assistant", "content": [], "metadata": {"usage": orjson.loads(text)}}
    return decode_message(carrier).metadata.usage or Usage()


# Verifying


class _Place(NamedTuple):
    """The places of a call and of its first result."""

    message_id: str
    block: ToolUseBlock
    answer: str | None


def verify(
    sql: Statements, session_id: str | None = None, progress: Callable[[int], None] | None = None
) -> Iterator[StoreFinding]:
    """See `Store.verify`; a message that is still being streamed is not a fault."""
    if session_id is None:
        for text in sql.database.damage():
            yield StoreFinding(session_id="", check="database", message=text)
    for each in sql.session_ids(session_id):
        with maintenance_transaction(sql, each):  # no other process writes while rows of several tables are compared
            found = list(_findings(sql, each, progress))
        yield from found


def _findings(sql: Statements, session_id: str, progress: Callable[[int], None] | None) -> Iterator[StoreFinding]:
    messages = []
    for rows in sql.pages(session_id):
        for row in rows:
            try:
                messages.append(read_message(row))
            except StoreError as error:
                yield StoreFinding(session_id=session_id, check="reading", message=error.message, message_id=row[0])
        if progress is not None:
            progress(len(rows))
    yield from _order_faults(sql.database, session_id)
    faults = chain(
        _link_faults(sql.database, session_id, messages), _partial_faults(sql.database, session_id, messages)
    )
    for check, message_id, text in faults:
        yield StoreFinding(session_id=session_id, check=check, message=text, message_id=message_id)
    for broken in validate_conversation(messages):
        yield StoreFinding(
            session_id=session_id,
            check=f"I{broken.number:02}",
            message=f"{broken.path}: {broken.message}",
            message_id=broken.message_id,
            repairable=broken.repairable,
        )


def _order_faults(database: Database, session_id: str) -> Iterator[StoreFinding]:
    if database.commit_order is None:
        return
    rows = database.rows(
        f"SELECT id, role FROM messages WHERE session_id = ? ORDER BY {database.commit_order}", (session_id,)
    )
    first = min(rows, default=None)  # a system prompt is prepended to a history without one
    for (before, _), (behind, _) in pairwise(row for row in rows if row != first or row[1] != Role.SYSTEM):
        if behind <= before:
            text = f"stored after {before}, but its id is not greater"
            yield StoreFinding(session_id=session_id, check="ids", message=text, message_id=behind)


def _link_faults(
    database: Database, session_id: str, messages: Sequence[Message]
) -> Iterator[tuple[str, str | None, str]]:
    places = _places(messages)
    rows = {row[0]: row for row in database.rows(_CALLS, (session_id,))}
    for call in places.keys() - rows.keys():
        yield "links", places[call].message_id, f"call {call} has no row among the tool calls"
    for call, row in rows.items():
        for text in _row_faults(row, places.get(call)):
            yield "links", row[1], f"call {call}: {text}"
    for entry, after in database.rows(_STRAY_ENTRIES, (session_id,)):
        yield "links", after, f"entry {entry} follows a message of another session"


def _partial_faults(
    database: Database, session_id: str, messages: Sequence[Message]
) -> Iterator[tuple[str, str | None, str]]:
    noted = {row[0] for row in database.rows(_PARTIALS, (session_id,))}
    partial_ids = {message.id for message in messages if message.metadata.status is MessageStatus.PARTIAL}
    for message_id in sorted(noted ^ partial_ids):
        text = "is partial and not noted as such" if message_id in partial_ids else "is noted as partial and is not"
        yield "links", message_id, text


def _places(messages: Sequence[Message]) -> Mapping[str, _Place]:
    places: dict[str, _Place] = {}
    for message in messages:
        if message.metadata.status is MessageStatus.PARTIAL:
            continue
        for block in message.content:
            if type(block) is ToolUseBlock:
                places.setdefault(column_text(block.id), _Place(message.id, block, None))
            elif type(block) is ToolResultBlock:
                call = column_text(block.tool_use_id)
                place = places.get(call)
                if place is not None and place.answer is None:
                    places[call] = place._replace(answer=message.id)
    return places


def _row_faults(row: Row, place: _Place | None) -> Iterator[str]:
    _, message_id, answer, name, issued, status = row
    if place is None:
        yield "no message of the session holds it"
        return
    if message_id != place.message_id:
        yield f"its row names message {message_id}, {place.message_id} holds it"
    if answer != place.answer:
        yield f"its row names answer {answer}, the messages say {place.answer}"
    if name != column_text(place.block.name):
        yield f"its row names tool {name!r}, the message says {place.block.name!r}"
    if issued != (place.block.provider_id and column_text(place.block.provider_id)):
        yield f"its row has the provider's id {issued!r}, the message has {place.block.provider_id!r}"
    if answer is not None and status == "pending":
        yield "it is answered and its status still pending"

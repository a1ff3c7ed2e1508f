"""Writing messages: each with its tool calls, the answers it gives, and an id behind all others, in one transaction.

Never changes what a message says; only its id, where it would not stand last. The store comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from interlingua import CallerError
from interlingua.types import Message, MessageStatus, ToolResultBlock, ToolUseBlock
from interlingua_sessions.store.ids import id_behind
from interlingua_sessions.store.lines import COLUMNS, column_text, row_of, stamp_of
from interlingua_sessions.store.records import ToolCallStatus
from interlingua_sessions.store.writing import Writing

_INSERT = f"INSERT INTO messages ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
_LAST = "SELECT id FROM messages WHERE session_id = ? ORDER BY id DESC LIMIT 1"
_ROLE = "SELECT 1 FROM messages WHERE session_id = ? AND role = ? LIMIT 1"
_CALLS = """
    INSERT INTO tool_calls
        (id, session_id, message_id, name, status, provider_id, provider, created_at, completed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"""
_ANSWER = """
    UPDATE tool_calls SET
        result_message_id = ?,
        status = CASE WHEN status = 'cancelled' THEN status ELSE ? END,
        completed_at = coalesce(completed_at, ?)
    WHERE id = ? AND session_id = ? AND result_message_id IS NULL"""
_REPLACE = """
    UPDATE messages SET role = ?, content_json = ?, metadata_json = ?, created_at = ?, schema_version = ?
    WHERE id = ? AND session_id = ?"""

_PENDING, _SUCCEEDED, _FAILED, _CANCELLED = (status.value for status in ToolCallStatus)


class Appending(Writing):
    """See `Store`."""

    def append(self, message: Message) -> Message:
        """See `Store.append`."""
        row = row_of(message)
        with self._db.transaction():
            self.touch(message.session_id)
            return self.insert_message(message, row)

    def extend(self, messages: Iterable[Message], *, opening: Message | None = None) -> list[Message]:
        """See `Store.extend`."""
        rows = [(message, row_of(message)) for message in ([] if opening is None else [opening]) + [*messages]]
        with self._db.transaction():
            for session_id in sorted({message.session_id for message, _ in rows}):
                self.touch(session_id)
            if opening is not None and self._one(_ROLE, (opening.session_id, opening.role.value)) is not None:
                del rows[0]
            return [self.insert_message(message, row) for message, row in rows]

    def save_partial(self, message: Message) -> Message:
        """See `Store.save_partial`."""
        if message.metadata.status is not MessageStatus.PARTIAL:
            raise CallerError(f"message {message.id} is {message.metadata.status.value}, not partial: finish it")
        row = row_of(message)
        with self.writing(message.session_id):
            if self._is_partial(message):
                self._replace(row)
                return message
            return self.insert_message(message, row)

    def finish(self, message: Message) -> Message:
        """See `Store.finish`."""
        if message.metadata.status is MessageStatus.PARTIAL:
            raise CallerError(f"message {message.id} is still partial: save it as such, or say how it ended")
        row = row_of(message)
        with self.writing(message.session_id):
            if not self._is_partial(message):
                return self.insert_message(message, row)
            self._db.run("DELETE FROM partial_messages WHERE message_id = ?", (message.id,))
            self._replace(row)
            self._link(message)
            return message

    def insert_message(self, message: Message, row: list[Any]) -> Message:
        """Store a message inside the transaction of `writing`; `row` is its `row_of`."""
        last = self._one(_LAST, (message.session_id,))
        final = id_behind(last[0] if last else "", message.id)
        while not self._db.run(_INSERT, [final, *row[1:]]):  # another session has a message of this id: a copy
            final = id_behind(last[0] if last else "")
        if final != message.id:
            message = attrs.evolve(message, id=final)
        if message.metadata.status is MessageStatus.PARTIAL:
            self._db.run("INSERT INTO partial_messages VALUES (?)", (final,))
        else:
            self._link(message)
        return message

    def _is_partial(self, message: Message) -> bool:
        sql = "SELECT 1 FROM partial_messages WHERE message_id = ?"
        return self._one(sql, (message.id,)) is not None

    def _replace(self, row: list[Any]) -> None:
        message_id, session_id, *rest = row
        if not self._db.run(_REPLACE, [*rest, message_id, session_id]):
            raise CallerError(f"message {message_id} belongs to another session than {session_id!r}")

    def _link(self, message: Message) -> None:
        made = 0
        calls = []
        for block in message.content:
            if type(block) is ToolUseBlock:
                made = made or stamp_of(message.created_at)
                calls.append(_call_row(message, block, made))
            elif type(block) is ToolResultBlock:
                self._answer(message, block)
        if calls and self._db.run_many(_CALLS, calls) != len(calls):
            ids = ", ".join(row[0] for row in calls)
            raise CallerError(f"one of these tool-call ids is in this store already: {ids}; import replaces such ids")

    def _answer(self, message: Message, block: ToolResultBlock) -> None:
        status = _FAILED if block.is_error else _SUCCEEDED
        call = column_text(block.tool_use_id)
        self._db.run(_ANSWER, (message.id, status, stamp_of(message.created_at), call, message.session_id))


def _call_row(message: Message, block: ToolUseBlock, made: int) -> tuple[Any, ...]:
    metadata = message.metadata
    if metadata.status is MessageStatus.COMPLETE:
        status, ended = _PENDING, None
    else:  # nobody is going to run it
        status, ended = _CANCELLED, made
    issued = None if block.provider_id is None else column_text(block.provider_id)
    call, name = column_text(block.id), column_text(block.name)
    return (call, message.session_id, message.id, name, status, issued, metadata.provider, made, ended)

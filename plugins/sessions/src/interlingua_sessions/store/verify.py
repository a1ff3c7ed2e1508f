"""What is wrong with stored sessions: ids out of order, rows that do not belong together, broken invariants.

Never repairs, and never finds fault with a message that is still being streamed (seed 003 §5). The store comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from interlingua import validate_conversation
from interlingua.types import Message, MessageStatus, ToolResultBlock, ToolUseBlock
from interlingua_sessions.store.database import Row
from interlingua_sessions.store.errors import StoreError
from interlingua_sessions.store.lines import column_text
from interlingua_sessions.store.reading import decoded
from interlingua_sessions.store.records import Finding
from interlingua_sessions.store.revising import Revising

_CALLS = """
    SELECT id, message_id, result_message_id, name, provider_id, status FROM tool_calls
    WHERE session_id = ? ORDER BY id"""
_PARTIALS = """
    SELECT p.message_id FROM partial_messages p JOIN messages m ON m.id = p.message_id
    WHERE m.session_id = ? ORDER BY p.message_id"""
_STRAY_ENTRIES = """
    SELECT e.id, e.after_message_id FROM session_entries e JOIN messages m ON m.id = e.after_message_id
    WHERE e.session_id = ? AND m.session_id <> e.session_id"""


class _Place(NamedTuple):
    """Where a call is asked for, and first answered behind that."""

    message_id: str
    block: ToolUseBlock
    answer: str | None


class Verify(Revising):
    """See `Store`."""

    def verify(
        self, session_id: str | None = None, *, progress: Callable[[int], None] | None = None
    ) -> Iterator[Finding]:
        """See `Store.verify`."""
        if session_id is None:
            for text in self._db.damage():
                yield Finding(session_id="", check="database", message=text)
        for each in self.session_ids() if session_id is None else [self.existing(session_id)]:
            with self.tending(each):  # nobody writes while rows of several tables are compared
                found = list(self._findings(each, progress or _untold))
            yield from found

    def _findings(self, session_id: str, progress: Callable[[int], None]) -> Iterator[Finding]:
        messages = []
        for rows in self.pages(session_id):
            for row in rows:
                try:
                    messages.append(decoded(row))
                except StoreError as error:
                    yield Finding(session_id=session_id, check="reading", message=error.message, message_id=row[0])
            progress(len(rows))
        yield from self._order(session_id)
        for check, message_id, text in chain(self._links(session_id, messages), self._streams(session_id, messages)):
            yield Finding(session_id=session_id, check=check, message=text, message_id=message_id)
        for broken in validate_conversation(messages):
            yield Finding(
                session_id=session_id,
                check=f"I{broken.number:02}",
                message=f"{broken.path}: {broken.message}",
                message_id=broken.message_id,
                repairable=broken.repairable,
            )

    def _order(self, session_id: str) -> Iterator[Finding]:
        if self._db.commit_order is None:
            return
        sql = f"SELECT id FROM messages WHERE session_id = ? ORDER BY {self._db.commit_order}"
        rows = self._db.rows(sql, (session_id,))
        for (before,), (behind,) in pairwise(rows):
            if behind <= before:
                text = f"stored behind {before}, but its id does not stand behind it"
                yield Finding(session_id=session_id, check="ids", message=text, message_id=behind)

    def _links(self, session_id: str, messages: Sequence[Message]) -> Iterator[tuple[str, str | None, str]]:
        places = _places(messages)
        rows = {row[0]: row for row in self._db.rows(_CALLS, (session_id,))}
        for call in places.keys() - rows.keys():
            yield "links", places[call].message_id, f"call {call} has no row among the tool calls"
        for call, row in rows.items():
            for text in _row_faults(row, places.get(call)):
                yield "links", row[1], f"call {call}: {text}"
        for entry, after in self._db.rows(_STRAY_ENTRIES, (session_id,)):
            yield "links", after, f"entry {entry} stands behind a message of another session"

    def _streams(self, session_id: str, messages: Sequence[Message]) -> Iterator[tuple[str, str | None, str]]:
        noted = {row[0] for row in self._db.rows(_PARTIALS, (session_id,))}
        partial = {message.id for message in messages if message.metadata.status is MessageStatus.PARTIAL}
        for message_id in sorted(noted ^ partial):
            text = "is partial and not noted as such" if message_id in partial else "is noted as partial and is not"
            yield "links", message_id, text


def _untold(_count: int) -> None:
    """Nobody wants to know."""


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
        yield f"its row names the provider's id {issued!r}, the message says {place.block.provider_id!r}"
    if answer is not None and status == "pending":
        yield "it is answered and its status still pending"

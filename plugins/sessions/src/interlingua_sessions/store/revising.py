"""Walking over stored messages and changing what is known about them, some hundreds a transaction.

Never changes what a message says, and never one that is being streamed. Repricing and trimming come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from interlingua.types import Message, MessageStatus
from interlingua_sessions.store.lines import row_of
from interlingua_sessions.store.reading import PAGE, Reading, decoded
from interlingua_sessions.store.writing import Writing

T = TypeVar("T")
_UPDATE = "UPDATE messages SET metadata_json = ? WHERE id = ?"


class Revising(Writing, Reading):
    """A part that changes metadata of stored messages."""

    def revised(
        self,
        change: Callable[[Message], Message],
        record: Callable[[Message, Message], T],
        session_id: str | None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[T]:
        """Yield what `record(old, new)` returned for each message that `change` changed, already committed.

        Args:
            change: returns the same object where nothing is to change.
            record: called inside the transaction.
            session_id: only this session; None for all.
            progress: told how many more messages were looked at.
        """
        for each in self.session_ids() if session_id is None else [session_id]:
            after: str | None = ""
            while after is not None:
                with self.tending(each):
                    count, made, after = self._page_revised(each, after, change, record)
                if progress is not None:
                    progress(count)
                yield from made

    def _page_revised(
        self, session_id: str, after: str, change: Callable[[Message], Message], record: Callable[[Message, Message], T]
    ) -> tuple[int, list[T], str | None]:
        rows = next(self.pages(session_id, after=after, limit=PAGE), [])
        made = []
        for row in rows:
            old = decoded(row)
            new = old if old.metadata.status is MessageStatus.PARTIAL else change(old)
            if new is not old:
                self._db.run(_UPDATE, (row_of(new)[4], row[0]))
                made.append(record(old, new))
        return len(rows), made, rows[-1][0] if len(rows) == PAGE else None

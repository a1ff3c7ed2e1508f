"""Reading messages: some hundreds of rows at a time, each page decoded by core as one load.

Never holds a transaction or a cursor open between two pages, and never writes. The store comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from interlingua import CallerError
from interlingua.codec import decode_message, decode_messages
from interlingua.errors import DecodeError
from interlingua.types import Message
from interlingua_sessions.store.database import Row
from interlingua_sessions.store.errors import StoreError
from interlingua_sessions.store.lines import columns_of, data_of
from interlingua_sessions.store.sessions import Sessions

PAGE = 500


class Reading(Sessions):
    """See `Store`."""

    def message(self, message_id: str) -> Message:
        """See `Store.message`."""
        row = self._one(f"SELECT {columns_of(self._db)} FROM messages WHERE id = ?", (message_id,))
        if row is None:
            raise CallerError(f"there is no message {message_id!r} in this store")
        return decoded(row)

    def messages(
        self,
        session_id: str,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Message]:
        """See `Store.messages`."""
        pages = self.pages(session_id, after=after, before=before, newest_first=newest_first, limit=limit)
        first = next(pages, None)
        if first is None:
            self.existing(session_id)
        return _loaded(chain([first] if first else [], pages))

    def pages(
        self,
        session_id: str,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[list[Row]]:
        """Yield rows of messages (`columns_of`) page by page; arguments as `Store.messages`."""
        low, high, left = after, before, limit
        while left is None or left > 0:
            rows = self._page(session_id, low, high, PAGE if left is None else min(left, PAGE), newest_first)
            if rows:
                yield rows
            if len(rows) < PAGE:
                return
            low, high = (low, rows[-1][0]) if newest_first else (rows[-1][0], high)
            left = None if left is None else left - len(rows)

    def _page(self, session_id: str, low: str | None, high: str | None, size: int, newest_first: bool) -> list[Row]:
        bounds = [(sign, bound) for sign, bound in ((">", low), ("<", high)) if bound is not None]
        where = "".join(f" AND id {sign} ?" for sign, _ in bounds)
        order = "id DESC" if newest_first else "id"
        sql = f"SELECT {columns_of(self._db)} FROM messages WHERE session_id = ?{where} ORDER BY {order} LIMIT ?"
        return self._db.rows(sql, [session_id, *(bound for _, bound in bounds), size])

    def last(self, session_id: str) -> Message | None:
        """See `Store.last`."""
        return next(self.messages(session_id, newest_first=True, limit=1), None)

    def count_messages(self, session_id: str) -> int:
        """See `Store.count_messages`."""
        rows = self._db.rows("SELECT count(*) FROM messages WHERE session_id = ?", (session_id,))
        return int(rows[0][0])


def _loaded(pages: Iterable[list[Row]]) -> Iterator[Message]:
    for rows in pages:
        try:
            messages = decode_messages(map(data_of, rows))  # one by one: what is parsed dies young
        except (DecodeError, ValueError):
            messages = [decoded(row) for row in rows]  # says which
        yield from messages


def decoded(row: Row) -> Message:
    """Return the message of a row (`columns_of`).

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return decode_message(data_of(row))
    except (DecodeError, ValueError) as error:
        raise StoreError(f"message {row[0]} of the store cannot be read: {error}") from error

"""Session-only entries (seed 001): kept beside the messages, never among them.

Never sent to a model by itself: compaction's context builder decides what a model sees of them. The store comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from interlingua import CallerError
from interlingua_sessions.store.database import Row
from interlingua_sessions.store.ids import id_behind
from interlingua_sessions.store.lines import column_text, now_stamp, time_of
from interlingua_sessions.store.records import EntryKind, SessionEntry
from interlingua_sessions.store.writing import Writing

COLUMNS = "id, session_id, kind, custom_type, text, data_json, after_message_id, created_at"
INSERT = f"INSERT INTO session_entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Entries(Writing):
    """See `Store`."""

    def append_entry(
        self,
        session_id: str,
        kind: EntryKind,
        text: str = "",
        *,
        custom_type: str | None = None,
        data: Mapping[str, Any] | None = None,
        after: str | None = None,
    ) -> SessionEntry:
        """See `Store.append_entry`."""
        try:
            data_json = orjson.dumps(data or {}).decode()
        except TypeError as error:
            raise CallerError(f"the data of a session entry is not JSON: {error}") from error
        with self.writing(session_id):
            place = self._newest(session_id) if after is None else self._named(session_id, after)
            last = self._one("SELECT max(id) FROM session_entries WHERE session_id = ?", (session_id,))
            entry_id = id_behind((last and last[0]) or "")
            row = (entry_id, session_id, kind.value, custom_type, column_text(text), data_json, place, now_stamp())
            self._db.run(INSERT, row)
        return entry_of(row)

    def entries(self, session_id: str, kind: EntryKind | None = None) -> list[SessionEntry]:
        """See `Store.entries`."""
        only, values = ("", []) if kind is None else (" AND kind = ?", [kind.value])
        sql = f"SELECT {COLUMNS} FROM session_entries WHERE session_id = ?{only} ORDER BY id"
        return [entry_of(row) for row in self._db.rows(sql, [session_id, *values])]

    def _newest(self, session_id: str) -> str | None:
        row = self._one("SELECT max(id) FROM messages WHERE session_id = ?", (session_id,))
        return row[0] if row else None

    def _named(self, session_id: str, message_id: str) -> str:
        if self._one("SELECT 1 FROM messages WHERE id = ? AND session_id = ?", (message_id, session_id)) is None:
            raise CallerError(f"session {session_id!r} has no message {message_id!r} for an entry to stand behind")
        return message_id


def entry_of(row: Row) -> SessionEntry:
    """Return the entry of a row (COLUMNS)."""
    entry, session, kind, custom, text, data, after, created = row
    return SessionEntry(
        id=entry,
        session_id=session,
        kind=EntryKind(kind),
        custom_type=custom,
        text=text,
        data=orjson.loads(data),
        after=after,
        created_at=time_of(created),
    )

"""The sessions of a store: made, found, listed, changed.

Never a message. The store comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from interlingua import CallerError
from interlingua.types import new_ulid
from interlingua_sessions.store.database import Part, Row
from interlingua_sessions.store.errors import SessionExistsError, SessionNotFoundError
from interlingua_sessions.store.lines import column_text, now_stamp, time_of
from interlingua_sessions.store.records import SessionRecord

SCHEMA_VERSION = 1  # of seed 003
_COLUMNS = "id, workspace_path, active_model, routing_policy_json, schema_version, created_at, updated_at"
_CHANGEABLE = ("workspace_path", "active_model", "routing_policy")


class Sessions(Part):
    """See `Store`."""

    def create_session(
        self,
        session_id: str | None = None,
        *,
        workspace_path: str = "",
        active_model: str | None = None,
        routing_policy: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """See `Store.create_session`."""
        name = new_ulid() if session_id is None else session_id
        if not name or name != column_text(name):
            raise CallerError(f"{name!r} cannot be the id of a session: write some letters or digits")
        now = now_stamp()
        row = (name, column_text(workspace_path), active_model, _json(routing_policy), SCHEMA_VERSION, now, now)
        self.insert_session(row)
        return record_of(row)

    def insert_session(self, row: Row) -> None:
        """Store the row of a new session."""
        sql = f"INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
        if not self._db.run(sql, row):
            raise SessionExistsError(f"there is a session {row[0]!r} already; give another id")

    def session_ids(self) -> list[str]:
        """Return the ids of all sessions, in order."""
        return [row[0] for row in self._db.rows("SELECT id FROM sessions ORDER BY id")]

    def existing(self, session_id: str) -> str:
        """Return the id.

        Raises:
            SessionNotFound: there is no such session.
        """
        if self._one("SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
            raise not_found(session_id)
        return session_id

    def session(self, session_id: str) -> SessionRecord:
        """See `Store.session`."""
        row = self._one(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (session_id,))
        if row is None:
            raise not_found(session_id)
        return record_of(row)

    def sessions(self, *, workspace_path: str | None = None, limit: int | None = None) -> Iterator[SessionRecord]:
        """See `Store.sessions`."""
        where, row = ("", []) if workspace_path is None else ("WHERE workspace_path = ?", [workspace_path])
        top = "" if limit is None else f"LIMIT {int(limit)}"
        sql = f"SELECT {_COLUMNS} FROM sessions {where} ORDER BY updated_at DESC, id DESC {top}"
        return map(record_of, self._db.rows(sql, row))

    def update_session(self, session_id: str, **changes: Any) -> SessionRecord:
        """See `Store.update_session`."""
        unknown = sorted(changes.keys() - set(_CHANGEABLE))
        if unknown:
            raise CallerError(f"a session has no {', '.join(unknown)} to change; it has {', '.join(_CHANGEABLE)}")
        values = {name: value for name, value in changes.items() if name != "routing_policy"}
        if "routing_policy" in changes:
            values["routing_policy_json"] = _json(changes["routing_policy"])
        assignments = "".join(f"{name} = ?, " for name in values)
        sql = f"UPDATE sessions SET {assignments}updated_at = ? WHERE id = ?"
        if not self._db.run(sql, [*values.values(), now_stamp(), session_id]):
            raise not_found(session_id)
        return self.session(session_id)


def not_found(session_id: str) -> SessionNotFoundError:
    """Return the error that says a session is not there."""
    return SessionNotFoundError(
        f"there is no session {session_id!r} in this store (`interlingua session list` shows them)"
    )


def record_of(row: Row) -> SessionRecord:
    """Return the record of a row of `sessions`."""
    name, workspace, model, policy, version, created, updated = row
    return SessionRecord(
        id=name,
        workspace_path=workspace,
        active_model=model,
        routing_policy=None if policy is None else orjson.loads(policy),
        schema_version=version,
        created_at=time_of(created),
        updated_at=time_of(updated),
    )


def _json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()

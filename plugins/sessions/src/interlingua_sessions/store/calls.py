"""Tool calls: asked for by status, moved through their life cycle, and their whole results.

Never makes a call's row: appending the message that holds it does. The store comes in.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from interlingua import CallerError
from interlingua.codec import dumps_message, loads_message
from interlingua.types import Message, Role, ToolResultBlock
from interlingua_sessions.store.database import Row
from interlingua_sessions.store.lines import column_text, now_stamp, stamp_of, time_of
from interlingua_sessions.store.records import ToolCallRecord, ToolCallStatus
from interlingua_sessions.store.writing import Writing

_SELECT = """
    SELECT c.id, c.session_id, c.message_id, c.result_message_id, c.name, c.status, c.provider_id, c.provider,
        c.created_at, c.completed_at, r.started_at, r.error
    FROM tool_calls c LEFT JOIN tool_runs r ON r.tool_call_id = c.id"""
RUN = """
    INSERT INTO tool_runs (tool_call_id, started_at, error) VALUES (?, ?, ?)
    ON CONFLICT (tool_call_id) DO UPDATE SET
        started_at = coalesce(excluded.started_at, tool_runs.started_at),
        error = coalesce(excluded.error, tool_runs.error)"""
KEEP = """
    INSERT INTO kept_results (tool_call_id, result_json) VALUES (?, ?)
    ON CONFLICT (tool_call_id) DO UPDATE SET result_json = excluded.result_json"""


class ToolCalls(Writing):
    """See `Store`."""

    def tool_call(self, tool_use_id: str) -> ToolCallRecord:
        """See `Store.tool_call`."""
        row = self._one(f"{_SELECT} WHERE c.id = ?", (column_text(tool_use_id),))
        if row is None:
            raise _no_call(tool_use_id)
        return _record(row)

    def tool_calls(
        self, session_id: str, *, status: ToolCallStatus | None = None, message_id: str | None = None
    ) -> list[ToolCallRecord]:
        """See `Store.tool_calls`."""
        asked = {"status": None if status is None else status.value, "message_id": message_id}
        given = {name: value for name, value in asked.items() if value is not None}
        return self._select(session_id, "".join(f" AND c.{name} = ?" for name in given), *given.values())

    def unanswered_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """See `Store.unanswered_tool_calls`."""
        return self._select(session_id, " AND c.result_message_id IS NULL AND c.status <> 'cancelled'")

    def failed_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """See `Store.failed_tool_calls`."""
        return self.tool_calls(session_id, status=ToolCallStatus.FAILED)

    def count_failed_tool_calls(self) -> dict[str, int]:
        """See `Store.count_failed_tool_calls`."""
        sql = "SELECT session_id, count(*) FROM tool_calls WHERE status = 'failed' GROUP BY session_id"
        return dict(self._db.rows(sql))

    def update_tool_call(
        self,
        tool_use_id: str,
        *,
        status: ToolCallStatus | None = None,
        started_at: datetime | None = None,
        completed_at: datetime | None = None,
        error: str | None = None,
    ) -> ToolCallRecord:
        """See `Store.update_tool_call`."""
        call = column_text(tool_use_id)
        session_id = self.tool_call(tool_use_id).session_id
        changes: dict[str, Any] = {}
        if status is not None:
            changes["status"] = status.value
        if completed_at is not None or status not in (None, ToolCallStatus.PENDING):
            changes["completed_at"] = now_stamp() if completed_at is None else stamp_of(completed_at)
        with self.writing(session_id):
            if changes:
                assignments = ", ".join(f"{name} = ?" for name in changes)
                self._db.run(f"UPDATE tool_calls SET {assignments} WHERE id = ?", [*changes.values(), call])
            if started_at is not None or error is not None:
                start = None if started_at is None else stamp_of(started_at)
                self._db.run(RUN, (call, start, None if error is None else column_text(error)))
        return self.tool_call(tool_use_id)

    def keep_result(self, result: ToolResultBlock) -> None:
        """See `Store.keep_result`."""
        session_id = self.tool_call(result.tool_use_id).session_id
        text = dumps_message(Message(role=Role.TOOL, content=(result,), session_id=session_id))
        with self.writing(session_id):
            self._db.run(KEEP, (column_text(result.tool_use_id), text))

    def kept_result(self, tool_use_id: str) -> ToolResultBlock | None:
        """See `Store.kept_result`."""
        row = self._one("SELECT result_json FROM kept_results WHERE tool_call_id = ?", (column_text(tool_use_id),))
        return None if row is None else loads_message(row[0]).tool_results()[0]

    def _select(self, session_id: str, condition: str, *values: Any) -> list[ToolCallRecord]:
        sql = f"{_SELECT} WHERE c.session_id = ?{condition} ORDER BY c.message_id, c.id"
        return [_record(row) for row in self._db.rows(sql, [session_id, *values])]


def _no_call(tool_use_id: str) -> CallerError:
    return CallerError(f"there is no tool call {tool_use_id!r} in this store")


def _record(row: Row) -> ToolCallRecord:
    call, session, message, result, name, status, issued, provider, created, completed, started, error = row
    return ToolCallRecord(
        id=call,
        session_id=session,
        message_id=message,
        result_message_id=result,
        name=name,
        status=ToolCallStatus(status),
        provider_id=issued,
        provider=provider,
        created_at=time_of(created),
        completed_at=None if completed is None else time_of(completed),
        started_at=None if started is None else time_of(started),
        error=error,
    )

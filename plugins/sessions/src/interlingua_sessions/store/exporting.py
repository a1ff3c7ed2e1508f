"""A session as lines of JSON: a header, its messages, then what is known beside them.

Never writes a file that is only half there. The store comes in; docs/sessions/store.md describes the lines.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from interlingua import CallerError
from interlingua.codec import dumps_message, loads_message
from interlingua_sessions.store.database import Row
from interlingua_sessions.store.lines import UNKNOWN, line_of, time_of
from interlingua_sessions.store.reading import PAGE, Reading

FORMAT = 1
_SESSION = """
    SELECT id, workspace_path, active_model, routing_policy_json, schema_version, created_at, updated_at
    FROM sessions WHERE id = ?"""
_CALLS = """
    SELECT c.id, c.status, c.completed_at, r.started_at, r.error
    FROM tool_calls c LEFT JOIN tool_runs r ON r.tool_call_id = c.id
    WHERE c.session_id = ? ORDER BY c.message_id, c.id"""
_RESULTS = """
    SELECT k.result_json FROM kept_results k JOIN tool_calls c ON c.id = k.tool_call_id
    WHERE c.session_id = ? ORDER BY k.tool_call_id"""
_ENTRIES = """
    SELECT id, kind, custom_type, text, data_json, after_message_id, created_at
    FROM session_entries WHERE session_id = ? ORDER BY id"""
_PRICES = """
    SELECT r.message_id, r.repriced_at, r.old_usage_json, r.new_usage_json
    FROM repricings r JOIN messages m ON m.id = r.message_id
    WHERE m.session_id = ? ORDER BY r.repriced_at, r.message_id"""


class Exporting(Reading):
    """See `Store`."""

    def export_lines(self, session_id: str) -> Iterator[str]:
        """See `Store.export_lines`."""
        self.existing(session_id)
        return chain(self._header(session_id), self._messages(session_id), self._beside(session_id))

    def export_jsonl(self, session_id: str, path: Path, *, progress: Callable[[int], None] | None = None) -> int:
        """See `Store.export_jsonl`."""
        lines = self.export_lines(session_id)
        count = 0
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".", delete=False
            ) as file:
                for line in lines:
                    file.write(f"{line}\n")
                    count += 1
                    if progress is not None and count % PAGE == 0:
                        progress(PAGE)
            os.replace(file.name, path)  # noqa: PTH105  Path.replace says the same and hides that it is atomic
        except OSError as error:
            raise CallerError(f"{path} cannot be written: {error}") from error
        return count

    def _header(self, session_id: str) -> Iterator[str]:
        for name, workspace, model, policy, version, created, updated in self._db.rows(_SESSION, (session_id,)):
            yield _line(
                "session", format=FORMAT, id=name, workspace_path=workspace, active_model=model,
                routing_policy=_json(policy), schema_version=version,
                created_at=_time(created), updated_at=_time(updated),
            )  # fmt: skip

    def _messages(self, session_id: str) -> Iterator[str]:
        return map(_canonical, chain.from_iterable(self.pages(session_id)))

    def _beside(self, session_id: str) -> Iterator[str]:
        for call, status, completed, started, error in self._db.rows(_CALLS, (session_id,)):
            times = {"started_at": _time(started), "completed_at": _time(completed)}
            yield _line("tool_call", id=call, status=status, **times, error=error)
        for (result,) in self._db.rows(_RESULTS, (session_id,)):
            yield _line("kept_result", message=_json(result))
        for name, kind, custom, text, data, after, created in self._db.rows(_ENTRIES, (session_id,)):
            yield _line(
                "session_entry", id=name, kind=kind, custom_type=custom, text=text,
                data=_json(data), after=after, created_at=_time(created),
            )  # fmt: skip
        for message, stamp, old, new in self._db.rows(_PRICES, (session_id,)):
            yield _line("repricing", message_id=message, repriced_at=_time(stamp), old=_json(old), new=_json(new))


def _canonical(row: Row) -> str:
    """Return a message's line; what a newer version wrote beside its fields goes back there."""
    line = line_of(row)
    return dumps_message(loads_message(line)) if UNKNOWN in line else line


def _line(record: str, /, **fields: Any) -> str:
    return orjson.dumps({"type": record, **fields}).decode()


def _json(text: str | None) -> Any:
    return None if text is None else orjson.Fragment(text)


def _time(stamp: int | None) -> str | None:
    return None if stamp is None else f"{time_of(stamp).isoformat(timespec='microseconds')[:-6]}Z"

"""A session from lines of JSON: its own export, or messages only, as the command line writes them.

Never takes half a file, and never an id that another session of the store has: those are replaced, in calls and
results alike. The store comes in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from interlingua import CallerError
from interlingua.codec import dumps_message, loads_message
from interlingua.errors import DecodeError
from interlingua.types import new_ulid
from interlingua_sessions.store.appending import Appending
from interlingua_sessions.store.calls import KEEP, RUN
from interlingua_sessions.store.entries import INSERT as INSERT_ENTRY
from interlingua_sessions.store.ids import id_behind
from interlingua_sessions.store.lines import column_text, exact, now_stamp, row_of, stamp_of
from interlingua_sessions.store.prices import INSERT as INSERT_PRICE
from interlingua_sessions.store.records import EntryKind, SessionRecord, ToolCallStatus
from interlingua_sessions.store.renaming import Renaming
from interlingua_sessions.store.sessions import SCHEMA_VERSION, Sessions


class Importing(Appending, Sessions):
    """See `Store`."""

    def import_jsonl(
        self, path: Path, session_id: str | None = None, *, progress: Callable[[int], None] | None = None
    ) -> SessionRecord:
        """See `Store.import_jsonl`."""
        try:
            with path.open("rb") as lines:
                return self.import_lines(lines if progress is None else _told(lines, progress), session_id)
        except OSError as error:
            raise CallerError(f"{path} cannot be read: {error}") from error
        except DecodeError as error:
            raise DecodeError(f"{path}: {error}") from error

    def import_lines(self, lines: Iterable[str | bytes], session_id: str | None = None) -> SessionRecord:
        """See `Store.import_lines`."""
        with self._db.transaction():
            taker: _Taker | None = None
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    data = _object(line)
                    if taker is None:
                        taker = _Taker(self, data if data.get("type") == "session" else {}, session_id)
                    taker.take(data, line)
                except (DecodeError, LookupError, TypeError, ValueError) as error:
                    why = f"no {error}" if isinstance(error, KeyError) else str(error)
                    raise DecodeError(f"line {number}: {why}") from error
            if taker is None:
                raise DecodeError("there is nothing to import: no line holds anything")
            taker.close()
        return self.session(taker.session_id)


class _Taker:
    """One import: what the lines so far made known."""

    def __init__(self, store: Importing, header: Mapping[str, Any], session_id: str | None) -> None:
        self._store, self._db = store, store.database
        self.session_id: str = session_id or header.get("id") or new_ulid()
        now = now_stamp()
        self._updated = _stamp(header.get("updated_at")) or now
        policy = header.get("routing_policy")
        store.insert_session((
            self.session_id, header.get("workspace_path", ""), header.get("active_model"),
            None if policy is None else exact(policy),
            header.get("schema_version", SCHEMA_VERSION), _stamp(header.get("created_at")) or now, self._updated,
        ))  # fmt: skip
        self._names = Renaming(store.database, self.session_id)
        self._last_entry = ""

    def take(self, data: dict[str, Any], line: str | bytes) -> None:
        """Store what one line holds."""
        kind = None if "role" in data else data.get("type")
        if kind is None:
            message = loads_message(line)
            renamed = self._names.renamed(message)
            self._names.message(message.id, self._store.insert_message(renamed, row_of(renamed)).id)
        elif kind in _RECORDS:
            _RECORDS[kind](self, data)
        elif kind != "session":
            raise ValueError(f"this version knows no record of type {kind!r}: update interlingua-sessions")

    def close(self) -> None:
        """Say when the session was used last: importing is no use."""
        self._db.run("UPDATE sessions SET updated_at = ? WHERE id = ?", (self._updated, self.session_id))

    def _tool_call(self, data: dict[str, Any]) -> None:
        call, status = self._names.call(data["id"]), ToolCallStatus(data["status"])
        row = (status.value, _stamp(data.get("completed_at")), call, self.session_id)
        if not self._db.run("UPDATE tool_calls SET status = ?, completed_at = ? WHERE id = ? AND session_id = ?", row):
            raise ValueError(f"no message before this line holds call {data['id']!r}")
        started, error = _stamp(data.get("started_at")), data.get("error")
        if started is not None or error is not None:
            self._db.run(RUN, (call, started, error))

    def _kept_result(self, data: dict[str, Any]) -> None:
        message = self._names.renamed(loads_message(exact(data["message"])))
        (result,) = message.tool_results()
        self._db.run(KEEP, (column_text(result.tool_use_id), dumps_message(message)))

    def _entry(self, data: dict[str, Any]) -> None:
        taken = self._db.rows("SELECT 1 FROM session_entries WHERE id = ?", (data["id"],))
        self._last_entry = id_behind(self._last_entry, None if taken else data["id"])
        after = data.get("after")
        self._db.run(INSERT_ENTRY, (
            self._last_entry, self.session_id, EntryKind(data["kind"]).value, data.get("custom_type"), data["text"],
            exact(data["data"]),
            None if after is None else self._names.stored(after), _stamp(data["created_at"]),
        ))  # fmt: skip

    def _repricing(self, data: dict[str, Any]) -> None:
        texts = [exact(data[name]) for name in ("old", "new")]
        self._db.run(INSERT_PRICE, (self._names.stored(data["message_id"]), _stamp(data["repriced_at"]), *texts))


_RECORDS = {
    "tool_call": _Taker._tool_call,
    "kept_result": _Taker._kept_result,
    "session_entry": _Taker._entry,
    "repricing": _Taker._repricing,
}


def _told(lines: Iterable[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    for line in lines:
        yield line
        progress(len(line))


def _object(line: str | bytes) -> dict[str, Any]:
    data = json.loads(line)
    if not isinstance(data, dict):
        raise TypeError(f"expected a JSON object, got {line[:40]!r}")
    return data


def _stamp(text: str | None) -> int | None:
    return None if text is None else stamp_of(datetime.fromisoformat(text))

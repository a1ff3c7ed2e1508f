"""The store's records and errors, the protocol of its database, and the migrations of its tables."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.types import ContentBlock, Message, Usage

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection, shared by threads: a transaction, or a single statement outside one, has it alone.

    Statements mark their parameters with `?`. Failures of the database become a StoreError.
    """

    kind: str
    """Names the migrations: `sqlite` or `postgresql`."""
    commit_order: str | None
    """A column that increases from one inserted row to the next, if the database has one."""
    read_only: bool
    """True if this user can write nothing: no migration is applied, and no search index made."""
    as_json: str
    """Selects a column of JSON in the way that costs least to parse, as a string or its UTF-8; `{}` is the column."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin a transaction; commit on leaving, roll back on an exception. Transactions cannot be nested."""

    def migrating(self) -> AbstractContextManager[None]:
        """A transaction that no other process migrates beside."""

    def run(self, sql: str, row: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched."""

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row and return how many rows all of them touched."""

    def rows(self, sql: str, row: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all its rows."""

    def has_table(self, name: str) -> bool:
        """Tell whether a table exists."""

    def damage(self) -> list[str]:
        """Return what the database finds wrong with its own files and references."""

    def backup(self, file: Path) -> None:
        """Copy the database to a new file, while others may write."""

    def close(self) -> None:
        """Close the connection."""


class SessionNotFoundError(CallerError):
    """The store has no session with this id."""


class SessionExistsError(CallerError):
    """The store already has a session with this id."""


class StoreError(InterlinguaError):
    """The database failed, or contains data this version cannot read. The message says what to do.

    `partial` is the received answer that could not be stored, if there is one.
    """


@attrs.frozen(kw_only=True)
class SessionRecord:
    """One session (table `sessions`).

    Attributes:
        id: id of the session.
        workspace_path: folder the session works in; empty for none.
        active_model: canonical model id, or None for the default.
        routing_policy: the session's routing policy as JSON, or None.
        schema_version: version of the canonical format it was written by.
        created_at: UTC.
        updated_at: UTC; moves with every message appended.
    """

    id: str
    workspace_path: str
    active_model: str | None
    routing_policy: Mapping[str, Any] | None
    schema_version: int
    created_at: datetime
    updated_at: datetime


@attrs.frozen(kw_only=True)
class SessionChanges:
    """The changes of a session since it was last read.

    Attributes:
        record: the current state of the session.
        messages: the messages after the last one read, in order.
        entry_count: how many session-only entries there are; they are never removed.
    """

    record: SessionRecord
    messages: list[Message]
    entry_count: int


class ToolCallStatus(StrEnum):
    """The status of a tool call; a running call is PENDING with a start time."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class ToolCallRecord:
    """One tool call (tables `tool_calls` and `tool_runs`).

    Attributes:
        id: canonical tool-use id.
        session_id: id of the session.
        message_id: the assistant message that holds the call.
        result_message_id: the tool message that answers it, or None.
        name: name of the tool.
        status: the status of the call.
        provider_id: the id the provider issued, or None.
        provider: provider key, or None.
        created_at: UTC.
        completed_at: UTC, or None while pending.
        started_at: UTC, when the tool began to run; None if it did not run, or its start was not recorded.
        error: the reason of a failure, if the tool loop recorded it.
    """

    id: str
    session_id: str
    message_id: str
    result_message_id: str | None
    name: str
    status: ToolCallStatus
    provider_id: str | None
    provider: str | None
    created_at: datetime
    completed_at: datetime | None
    started_at: datetime | None = None
    error: str | None = None

    @property
    def is_running(self) -> bool:
        """True between start and end."""
        return self.status is ToolCallStatus.PENDING and self.started_at is not None


class EntryKind(StrEnum):
    """The kinds of session-only entries, which are kept in the store and not sent to a model."""

    CUSTOM = "custom"
    BRANCH_SUMMARY = "branch_summary"
    COMPACTION_SUMMARY = "compaction_summary"


@attrs.frozen(kw_only=True)
class SessionEntry:
    """One session-only entry, stored separately from the messages.

    Attributes:
        id: ULID; entries of a session increase.
        session_id: id of the session.
        kind: which of the three.
        custom_type: type of a CUSTOM entry, for dispatch; None for the others.
        text: the summary, for people and for context builders.
        content: blocks, if the entry holds more than text; `text` is their text.
        data: free JSON: for a compaction, what it covers and how it was made.
        after: id of the message before the entry; None if the entry is first.
        created_at: UTC.
    """

    id: str
    session_id: str
    kind: EntryKind
    custom_type: str | None
    text: str
    data: Mapping[str, Any]
    after: str | None
    created_at: datetime
    content: tuple[ContentBlock, ...] = ()


@attrs.frozen(kw_only=True)
class StoreFinding:
    """One fault that `Store.verify` found.

    Attributes:
        session_id: id of the session.
        check: which check: `ids`, `links`, `reading`, or a rule of the conversation such as `I21`.
        message: a description of the fault.
        message_id: id of the message with the fault, or None.
        repairable: True if the session can still be continued: sending repairs it.
    """

    session_id: str
    check: str
    message: str
    message_id: str | None = None
    repairable: bool = False


@attrs.frozen(kw_only=True)
class Repriced:
    """One message priced again; both usages are kept, each with its `pricing_version` (format.md, Pricing).

    Attributes:
        session_id: id of the session.
        message_id: id of the message.
        old: usage before.
        new: usage after.
        repriced_at: UTC.
    """

    session_id: str
    message_id: str
    old: Usage
    new: Usage
    repriced_at: datetime


_TABLE = "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)"
_READABLE = 2  # from this version on, all that is read is there
_FILE = re.compile(r"(\d{4})_(\w+)\.(\w+)\.sql")


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


def migrations(kind: str) -> list[Migration]:
    """Return the migrations of one kind of database, in order."""
    found = [(_FILE.fullmatch(file.name), file) for file in files(__package__).joinpath("migrations").iterdir()]
    return sorted(
        Migration(int(match[1]), match[2], _statements(file.read_text(encoding="utf-8")))
        for match, file in found
        if match and match[3] == kind
    )


def migrate(database: Database) -> None:
    """Apply what is missing.

    Raises:
        StoreError: a newer version made the database, or it is too old to be read without a change.
    """
    steps = migrations(database.kind)
    found = _applied(database)
    if found == steps[-1].version or (database.read_only and _READABLE <= found < steps[-1].version):
        return
    if database.read_only and found < _READABLE:
        raise StoreError(f"the store has schema {found} and cannot be changed: open it once with permission to write")
    with database.migrating():
        applied = _applied(database)
        if applied > steps[-1].version:
            known = steps[-1].version
            raise StoreError(f"the store has schema {applied}, this version knows {known}: update interlingua-sessions")
        if not applied:
            database.run(_TABLE)
        for step in steps:
            if step.version > applied:
                for statement in step.statements:
                    database.run(statement)
                row = (step.version, step.name, time.time_ns() // 1000)
                database.run("INSERT INTO schema_migrations VALUES (?, ?, ?)", row)


def _applied(database: Database) -> int:
    if not database.has_table("schema_migrations"):
        return 0
    return int(database.rows("SELECT max(version) FROM schema_migrations")[0][0])


def _statements(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.sub(r"--.*", "", text).split(";") if part.strip())

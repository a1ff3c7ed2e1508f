"""What a store knows besides messages: sessions, tool calls, session-only entries, and what it finds in itself.

Never a database row and never anything that a model is sent. Every room of this distribution may come in, through
`interlingua_sessions.store`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import attrs

from interlingua.types import Usage


@attrs.frozen(kw_only=True)
class SessionRecord:
    """One session (seed 003 §9, table `sessions`).

    Attributes:
        id: of the session.
        workspace_path: folder the session works in; empty for none.
        active_model: canonical model id, or None for the default.
        routing_policy: the session's routing policy as JSON, or None.
        schema_version: version of seed 003 it was written by.
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


class ToolCallStatus(StrEnum):
    """The status words of seed 003 §9; a call that runs is pending with a start time."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class ToolCallRecord:
    """One tool call (seed 003 §9, table `tool_calls`; start time and error from seed 004's life cycle).

    Attributes:
        id: canonical tool-use id.
        session_id: of the session.
        message_id: the assistant message that holds the call.
        result_message_id: the tool message that answers it, or None.
        name: of the tool.
        status: how far it got.
        provider_id: the id the provider issued, or None.
        provider: provider key, or None.
        created_at: UTC.
        completed_at: UTC, or None while pending.
        started_at: UTC, when the tool began to run; None when nobody said.
        error: why it failed, where the tool loop said so.
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
        """True between start and end: seed 004's status `running`."""
        return self.status is ToolCallStatus.PENDING and self.started_at is not None


class EntryKind(StrEnum):
    """The session-only messages of seed 001: kept in the store, never sent to a model."""

    CUSTOM = "custom"
    BRANCH_SUMMARY = "branch_summary"
    COMPACTION_SUMMARY = "compaction_summary"


@attrs.frozen(kw_only=True)
class SessionEntry:
    """One session-only message (seed 001).

    Attributes:
        id: ULID; entries of a session increase.
        session_id: of the session.
        kind: which of seed 001's three.
        custom_type: what a CUSTOM entry is, for dispatch; None for the others.
        text: what a person or a context builder reads: the summary.
        data: free JSON: for a compaction, what it covers and how it was made.
        after: id of the message it stands behind; None when it stands before all.
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


@attrs.frozen(kw_only=True)
class Finding:
    """One thing `Store.verify` found wrong.

    Attributes:
        session_id: of the session.
        check: which check: `ids`, `links`, `reading`, or an invariant such as `I21`.
        message: what is wrong, for a person.
        message_id: the message it is about, or None.
        repairable: True when the session can be continued all the same: sending repairs it.
    """

    session_id: str
    check: str
    message: str
    message_id: str | None = None
    repairable: bool = False


@attrs.frozen(kw_only=True)
class Repriced:
    """One message priced anew; both usages are kept, each with its `pricing_version` (seed 003 §6.3).

    Attributes:
        session_id: of the session.
        message_id: of the message.
        old: usage before.
        new: usage after.
        repriced_at: UTC.
    """

    session_id: str
    message_id: str
    old: Usage
    new: Usage
    repriced_at: datetime

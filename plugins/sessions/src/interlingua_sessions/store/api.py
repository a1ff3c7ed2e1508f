"""The store as the other rooms see it: one Protocol, whatever database is under it.

Never a database, a row or a line of SQL. Sessions, the tool loop, compaction and the command line come in, through
`interlingua_sessions.store`; they name this type and never a class that implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

from interlingua.catalogue import ModelInfo
from interlingua.types import Message, ToolResultBlock
from interlingua_sessions.store.records import (
    EntryKind,
    Finding,
    Repriced,
    SessionEntry,
    SessionRecord,
    ToolCallRecord,
    ToolCallStatus,
)

Progress: TypeAlias = Callable[[int], None]
"""Told from time to time how many more messages are done, by what takes long in a long session."""


class Store(Protocol):
    """Sessions and their messages on disk (seed 003 §9). Threads may share one; processes each open their own.

    Every method that writes is one transaction: after it returned, a kill of the process loses nothing of it.
    All may raise `StoreError`; those given a session that is not there raise `SessionNotFound`.
    """

    def close(self) -> None:
        """Close the database; a closed store answers no more."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    # Sessions

    def create_session(
        self,
        session_id: str | None = None,
        *,
        workspace_path: str = "",
        active_model: str | None = None,
        routing_policy: Mapping[str, Any] | None = None,
    ) -> SessionRecord:
        """Make a session; without an id it gets a ULID.

        Raises:
            CallerError: there is one of this id.
        """

    def session(self, session_id: str) -> SessionRecord:
        """Return a session."""

    def sessions(self, *, workspace_path: str | None = None, limit: int | None = None) -> Iterator[SessionRecord]:
        """Yield sessions, the latest used first."""

    def update_session(self, session_id: str, **changes: Any) -> SessionRecord:
        """Change `workspace_path`, `active_model` or `routing_policy`, only those given; None clears the latter two."""

    # Messages

    def append(self, message: Message) -> Message:
        """Store a message, its tool calls, and the answer a tool message gives, and return it as stored.

        The returned message has a greater id than every other of its session: its own where that holds already, else
        one minted inside the transaction. Its wire memo is kept where the id stayed.

        Raises:
            CallerError: one of its tool-call ids is in this database already.
        """

    def extend(self, messages: Iterable[Message], *, opening: Message | None = None) -> list[Message]:
        """Append several messages, possibly of several sessions, in one transaction.

        Args:
            messages: what to append.
            opening: goes before them, unless its session has a message of its role by then: of two processes that
                begin one conversation with a system prompt, one stores it.
        """

    def save_partial(self, message: Message) -> Message:
        """Store a PARTIAL message, or what has become of it since: the id of the first answer names it from then on.

        Its tool calls get no rows until it is finished.
        """

    def finish(self, message: Message) -> Message:
        """Replace the PARTIAL message of this id by its final state, tool calls included; append it where none is."""

    def message(self, message_id: str) -> Message:
        """Return one message.

        Raises:
            CallerError: there is none of this id.
        """

    def messages(
        self,
        session_id: str,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Message]:
        """Yield messages in order, reading some hundreds at a time, with no transaction open in between.

        Args:
            session_id: of the session.
            after: only messages behind the one of this id.
            before: only messages before the one of this id.
            newest_first: the other way round.
            limit: at most so many.
        """

    def last(self, session_id: str) -> Message | None:
        """Return the newest message, or None."""

    def count_messages(self, session_id: str) -> int:
        """Return how many messages a session has."""

    # Tool calls

    def tool_call(self, tool_use_id: str) -> ToolCallRecord:
        """Return one tool call by its canonical id.

        Raises:
            CallerError: there is none of this id.
        """

    def tool_calls(
        self, session_id: str, *, status: ToolCallStatus | None = None, message_id: str | None = None
    ) -> list[ToolCallRecord]:
        """Return the tool calls of a session in order, of one status or one assistant message where given."""

    def unanswered_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """Return the calls that no tool message answers yet, cancelled ones left out."""

    def failed_tool_calls(self, session_id: str) -> list[ToolCallRecord]:
        """Return the calls that failed."""

    def count_failed_tool_calls(self) -> dict[str, int]:
        """Return how many calls failed, by session id, sessions without any left out."""

    def update_tool_call(
        self,
        tool_use_id: str,
        *,
        status: ToolCallStatus | None = None,
        started_at: datetime | None = None,
        completed_at: datetime | None = None,
        error: str | None = None,
    ) -> ToolCallRecord:
        """Change what is given. A status other than PENDING without `completed_at` is completed now.

        Appending the tool message sets result, status (failed when the result is an error; a cancelled call stays
        cancelled) and `completed_at` by itself.
        """

    def keep_result(self, result: ToolResultBlock) -> None:
        """Keep a tool's result whole, beside the message that holds it cut; a second one replaces the first."""

    def kept_result(self, tool_use_id: str) -> ToolResultBlock | None:
        """Return the whole result that was kept, or None."""

    # Session-only entries

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
        """Store a session-only entry; `after` is the newest message unless given."""

    def entries(self, session_id: str, kind: EntryKind | None = None) -> list[SessionEntry]:
        """Return the entries of a session in the order they were stored."""

    # Care

    def verify(self, session_id: str | None = None, *, progress: Progress | None = None) -> Iterator[Finding]:
        """Yield what is wrong in one session, or in all: ids, links between rows, invariants of the conversation."""

    def reprice(
        self,
        lookup: Callable[[str], ModelInfo | None],
        *,
        session_id: str | None = None,
        at: datetime | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Repriced]:
        """Price messages anew as `interlingua.pricing.reprice` does, and yield what changed; what it was before is kept.

        Each yielded change is stored already: stopping half-way leaves the rest as it was.
        """

    def price_history(self, session_id: str) -> list[Repriced]:
        """Return every repricing of a session's messages, oldest first."""

    def trim_raw(
        self, *, limit: int | None = None, before: datetime | None = None, session_id: str | None = None
    ) -> int:
        """Trim the trace part of `provider_raw` by size or age, never what a replay needs; return how many changed.

        Args:
            limit: bytes of JSON that a trace may take; None for core's own limit, 0 keeps none.
            before: messages made before this moment keep no trace.
            session_id: only this session.
        """

    def export_lines(self, session_id: str) -> Iterator[str]:
        """Yield a session as lines of JSON, header first, then messages; docs/sessions/store.md."""

    def export_jsonl(self, session_id: str, path: Path, *, progress: Progress | None = None) -> int:
        """Write those lines to a file, and return how many they are; the file is whole or not there."""

    def import_lines(self, lines: Iterable[str | bytes], session_id: str | None = None) -> SessionRecord:
        """Make a session of such lines, or of lines that are messages only; all of it or nothing.

        Ids that this store has already (a copy made beside its original) are replaced, in calls and results alike.

        Args:
            lines: blank ones are passed over.
            session_id: of the new session; None takes the header's own.

        Raises:
            CallerError: a session of this id is there already.
            DecodeError: a line is not what it should be; the message names the line.
        """

    def import_jsonl(
        self, path: Path, session_id: str | None = None, *, progress: Progress | None = None
    ) -> SessionRecord:
        """Read those lines from a file; raises as `import_lines`, the message names the file too.

        `progress` is told of bytes here.
        """

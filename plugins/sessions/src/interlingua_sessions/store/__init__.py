"""The store: sessions, messages and tool calls in one database, SQLite or PostgreSQL."""

from __future__ import annotations

from interlingua_sessions.store.schema import (
    EntryKind,
    Repriced,
    SessionChanges,
    SessionEntry,
    SessionExistsError,
    SessionNotFoundError,
    SessionRecord,
    StoreError,
    StoreFinding,
    ToolCallRecord,
    ToolCallStatus,
)
from interlingua_sessions.store.search import FoundMessage, LoggedTurn
from interlingua_sessions.store.store import Store, open_store

__all__ = [
    "EntryKind",
    "FoundMessage",
    "LoggedTurn",
    "Repriced",
    "SessionChanges",
    "SessionEntry",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionRecord",
    "Store",
    "StoreError",
    "StoreFinding",
    "ToolCallRecord",
    "ToolCallStatus",
    "open_store",
]

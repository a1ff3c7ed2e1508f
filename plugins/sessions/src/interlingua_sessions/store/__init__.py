"""The store: sessions, messages and tool calls in one database (seed 003 §9), SQLite or PostgreSQL.

Never talks to a model, never routes and never runs a tool. Every other room of this distribution comes in, by this
door only.
"""

from __future__ import annotations

from interlingua_sessions.store.api import Store
from interlingua_sessions.store.errors import SessionExistsError, SessionNotFoundError, StoreError
from interlingua_sessions.store.opening import open_store
from interlingua_sessions.store.records import (
    EntryKind,
    Finding,
    Repriced,
    SessionEntry,
    SessionRecord,
    ToolCallRecord,
    ToolCallStatus,
)

__all__ = [
    "EntryKind",
    "Finding",
    "Repriced",
    "SessionEntry",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionRecord",
    "Store",
    "StoreError",
    "ToolCallRecord",
    "ToolCallStatus",
    "open_store",
]

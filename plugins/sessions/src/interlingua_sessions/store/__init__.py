"""The store: sessions, messages and tool calls in one database, SQLite or PostgreSQL.

Names load when first used (PEP 562).
"""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "store.schema": (
        "EntryKind Repriced SessionChanges SessionEntry SessionExistsError SessionNotFoundError SessionRecord "
        "StoreError StoreFinding ToolCallRecord ToolCallStatus"
    ),
    "store.search": "FoundMessage LoggedTurn",
    "store.store": "Store open_store",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_sessions.store.schema import (
        EntryKind as EntryKind, Repriced as Repriced, SessionChanges as SessionChanges, SessionEntry as SessionEntry,
        SessionExistsError as SessionExistsError, SessionNotFoundError as SessionNotFoundError,
        SessionRecord as SessionRecord, StoreError as StoreError, StoreFinding as StoreFinding,
        ToolCallRecord as ToolCallRecord, ToolCallStatus as ToolCallStatus
    )
    from interlingua_sessions.store.search import FoundMessage as FoundMessage, LoggedTurn as LoggedTurn
    from interlingua_sessions.store.store import Store as Store, open_store as open_store
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

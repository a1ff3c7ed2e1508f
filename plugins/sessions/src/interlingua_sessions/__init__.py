"""interlingua-sessions: stored conversations, and the turns that go on with them.

Names load when first used (PEP 562). Tools and the agent loop are in `interlingua_agents`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua_sessions.aio import AsyncSession
    from interlingua_sessions.compaction import Compaction, CompactionPolicy, Summary, ToolPruning, build_context
    from interlingua_sessions.routing import (
        ChainPolicy,
        Delegation,
        NoRouteError,
        Recommendation,
        RoutingPolicy,
        Rule,
        SwapRefusedError,
        When,
        decode_policy,
        encode_policy,
    )
    from interlingua_sessions.session import Session
    from interlingua_sessions.setup import SystemPrompt
    from interlingua_sessions.store import (
        EntryKind,
        Finding,
        Repriced,
        SessionEntry,
        SessionExistsError,
        SessionNotFoundError,
        SessionRecord,
        Store,
        StoreError,
        ToolCallRecord,
        ToolCallStatus,
        open_store,
    )
    from interlingua_sessions.streams import AsyncSessionStream, SessionStream

_NAMES = {
    "aio": "AsyncSession",
    "compaction": "Compaction CompactionPolicy Summary ToolPruning build_context",
    "routing": (
        "ChainPolicy Delegation NoRouteError Recommendation RoutingPolicy Rule SwapRefusedError When decode_policy "
        "encode_policy"
    ),
    "session": "Session",
    "setup": "SystemPrompt",
    "store": (
        "EntryKind Finding Repriced SessionEntry SessionExistsError SessionNotFoundError SessionRecord Store "
        "StoreError ToolCallRecord ToolCallStatus open_store"
    ),
    "streams": "AsyncSessionStream SessionStream",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AsyncSession",
    "AsyncSessionStream",
    "ChainPolicy",
    "Compaction",
    "CompactionPolicy",
    "Delegation",
    "EntryKind",
    "Finding",
    "NoRouteError",
    "Recommendation",
    "Repriced",
    "RoutingPolicy",
    "Rule",
    "Session",
    "SessionEntry",
    "SessionExistsError",
    "SessionNotFoundError",
    "SessionRecord",
    "SessionStream",
    "Store",
    "StoreError",
    "Summary",
    "SwapRefusedError",
    "SystemPrompt",
    "ToolCallRecord",
    "ToolCallStatus",
    "ToolPruning",
    "When",
    "build_context",
    "decode_policy",
    "encode_policy",
    "open_store",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

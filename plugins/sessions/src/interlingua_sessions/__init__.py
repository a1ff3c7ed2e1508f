"""Stored conversations, and the turns that continue them.

Names load when first used (PEP 562). Tools and the agent loop are in `interlingua_agents`.
"""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "compaction": "Compaction CompactionPolicy Summary ToolPruning build_context",
    "routing.policy": (
        "ChainPolicy NoRouteError RouteCondition RoutingPolicy RoutingRule SwapRefusedError decode_policy encode_policy"
    ),
    "routing.router": "Delegation Recommendation",
    "session": "AsyncSession Session",
    "store": (
        "EntryKind FoundMessage LoggedTurn Repriced SessionEntry SessionExistsError SessionNotFoundError SessionRecord "
        "Store StoreError StoreFinding ToolCallRecord ToolCallStatus open_store"
    ),
    "streams": "AsyncSessionStream SessionStream",
    "turn": "SystemPrompt",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_sessions.compaction import (
        Compaction as Compaction, CompactionPolicy as CompactionPolicy, Summary as Summary, ToolPruning as ToolPruning,
        build_context as build_context
    )
    from interlingua_sessions.routing.policy import (
        ChainPolicy as ChainPolicy, NoRouteError as NoRouteError, RouteCondition as RouteCondition,
        RoutingPolicy as RoutingPolicy, RoutingRule as RoutingRule, SwapRefusedError as SwapRefusedError,
        decode_policy as decode_policy, encode_policy as encode_policy
    )
    from interlingua_sessions.routing.router import Delegation as Delegation, Recommendation as Recommendation
    from interlingua_sessions.session import AsyncSession as AsyncSession, Session as Session
    from interlingua_sessions.store import (
        EntryKind as EntryKind, FoundMessage as FoundMessage, LoggedTurn as LoggedTurn, Repriced as Repriced,
        SessionEntry as SessionEntry, SessionExistsError as SessionExistsError,
        SessionNotFoundError as SessionNotFoundError, SessionRecord as SessionRecord, Store as Store,
        StoreError as StoreError, StoreFinding as StoreFinding, ToolCallRecord as ToolCallRecord,
        ToolCallStatus as ToolCallStatus, open_store as open_store
    )
    from interlingua_sessions.streams import AsyncSessionStream as AsyncSessionStream, SessionStream as SessionStream
    from interlingua_sessions.turn import SystemPrompt as SystemPrompt
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

"""Stored conversations, and the turns that continue them.

Names load when first used (PEP 562). Tools and the agent loop are in `interlingua_agents`.
"""
# ruff: noqa: F403  for type checkers alone

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
        "EntryKind LoggedTurn Repriced SessionEntry SessionExistsError SessionNotFoundError SessionRecord Store "
        "StoreError StoreFinding ToolCallRecord ToolCallStatus open_store"
    ),
    "streams": "AsyncSessionStream SessionStream",
    "turn": "SystemPrompt",
}

if TYPE_CHECKING:
    from interlingua_sessions.compaction import *
    from interlingua_sessions.routing.policy import *
    from interlingua_sessions.routing.router import *
    from interlingua_sessions.session import *
    from interlingua_sessions.store import *
    from interlingua_sessions.streams import *
    from interlingua_sessions.turn import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

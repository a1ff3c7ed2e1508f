"""interlingua-sessions: stored conversations, and the turns that go on with them.

Names load when first used (PEP 562). Tools and the agent loop are in `interlingua_agents`.
"""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Module -> the names that are imported from it when first used.
_NAMES = {
    "compaction": "Compaction CompactionPolicy Summary ToolPruning build_context",
    "routing.policy": "ChainPolicy NoRouteError RoutingPolicy Rule SwapRefusedError When decode_policy encode_policy",
    "routing.router": "Delegation Recommendation",
    "session": "AsyncSession Session",
    "store": (
        "EntryKind Finding LoggedTurn Repriced SessionEntry SessionExistsError SessionNotFoundError SessionRecord "
        "Store StoreError ToolCallRecord ToolCallStatus open_store"
    ),
    "streams": "AsyncSessionStream SessionStream",
    "turn": "SystemPrompt",
}

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from interlingua_sessions.compaction import *
    from interlingua_sessions.routing.policy import *
    from interlingua_sessions.routing.router import *
    from interlingua_sessions.session import *
    from interlingua_sessions.store import *
    from interlingua_sessions.streams import *
    from interlingua_sessions.turn import *
else:
    __all__ = list(_MODULES)

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

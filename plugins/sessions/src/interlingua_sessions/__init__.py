"""interlingua-sessions: conversations that stay, and what is done with them turn by turn.

Nothing is defined here and nothing is loaded before it is touched (PEP 562); each room below names what it offers.
Applications come in here; the rooms import each other's front doors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua_sessions.routing import (
        ChainPolicy,
        Delegation,
        NoRoute,
        Recommendation,
        RoutingPolicy,
        Rule,
        SwapRefused,
        When,
        decode_policy,
        encode_policy,
    )
    from interlingua_sessions.session import (
        AsyncSession,
        AsyncSessionStream,
        Session,
        SessionStream,
        SystemPrompt,
    )
    from interlingua_sessions.store import (
        EntryKind,
        Finding,
        Repriced,
        SessionEntry,
        SessionNotFound,
        SessionRecord,
        Store,
        StoreError,
        ToolCallRecord,
        ToolCallStatus,
        open_store,
    )

_ROOMS = {
    "routing": (
        "ChainPolicy Delegation NoRoute Recommendation RoutingPolicy Rule SwapRefused When decode_policy encode_policy"
    ),
    "session": "AsyncSession AsyncSessionStream Session SessionStream SystemPrompt",
    "store": (
        "EntryKind Finding Repriced SessionEntry SessionNotFound SessionRecord Store StoreError ToolCallRecord "
        "ToolCallStatus open_store"
    ),
}
_HOME = {_name: _room for _room, _names in _ROOMS.items() for _name in _names.split()}

__all__ = [
    "AsyncSession",
    "AsyncSessionStream",
    "ChainPolicy",
    "Delegation",
    "EntryKind",
    "Finding",
    "NoRoute",
    "Recommendation",
    "Repriced",
    "RoutingPolicy",
    "Rule",
    "Session",
    "SessionEntry",
    "SessionNotFound",
    "SessionRecord",
    "SessionStream",
    "Store",
    "StoreError",
    "SwapRefused",
    "SystemPrompt",
    "ToolCallRecord",
    "ToolCallStatus",
    "When",
    "decode_policy",
    "encode_policy",
    "open_store",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415  not before it is needed

    if name not in _HOME:
        raise AttributeError(f"module 'interlingua_sessions' has no attribute {name!r}")
    value: object = getattr(import_module(f"interlingua_sessions.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

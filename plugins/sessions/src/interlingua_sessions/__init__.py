"""interlingua-sessions: conversations that stay, and what is done with them turn by turn.

Nothing is defined here and nothing is loaded before it is touched (PEP 562); each room below names what it offers.
Applications come in here; the rooms import each other's front doors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua_sessions.compaction import (
        Compaction,
        CompactionPolicy,
        Summary,
        ToolPruning,
        build_context,
    )
    from interlingua_sessions.events import (
        AgentEvent,
        AssistantMessageEvent,
        ReplyPayload,
        assistant_events,
        assistant_events_async,
        reply_payload,
        to_wire_event,
        to_wire_message,
        to_wire_reply,
    )
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
        SessionExists,
        SessionNotFound,
        SessionRecord,
        Store,
        StoreError,
        ToolCallRecord,
        ToolCallStatus,
        open_store,
    )
    from interlingua_sessions.tools import (
        AgentLoop,
        Confirmation,
        Limits,
        Permission,
        StopCause,
        Stopped,
        Tool,
        Toolbox,
        ToolContext,
        ToolFailure,
        ToolOutput,
        by_side_effects,
        tool,
        tool_of,
    )

_ROOMS = {
    "compaction": "Compaction CompactionPolicy Summary ToolPruning build_context",
    "events": (
        "AgentEvent AssistantMessageEvent ReplyPayload assistant_events assistant_events_async reply_payload "
        "to_wire_event to_wire_message to_wire_reply"
    ),
    "routing": (
        "ChainPolicy Delegation NoRoute Recommendation RoutingPolicy Rule SwapRefused When decode_policy encode_policy"
    ),
    "session": "AsyncSession AsyncSessionStream Session SessionStream SystemPrompt",
    "store": (
        "EntryKind Finding Repriced SessionEntry SessionExists SessionNotFound SessionRecord Store StoreError "
        "ToolCallRecord ToolCallStatus open_store"
    ),
    "tools": (
        "AgentLoop Confirmation Limits Permission StopCause Stopped Tool ToolContext ToolFailure ToolOutput Toolbox "
        "by_side_effects tool tool_of"
    ),
}
_HOME = {_name: _room for _room, _names in _ROOMS.items() for _name in _names.split()}

__all__ = [
    "AgentEvent",
    "AgentLoop",
    "AssistantMessageEvent",
    "AsyncSession",
    "AsyncSessionStream",
    "ChainPolicy",
    "Compaction",
    "CompactionPolicy",
    "Confirmation",
    "Delegation",
    "EntryKind",
    "Finding",
    "Limits",
    "NoRoute",
    "Permission",
    "Recommendation",
    "ReplyPayload",
    "Repriced",
    "RoutingPolicy",
    "Rule",
    "Session",
    "SessionEntry",
    "SessionExists",
    "SessionNotFound",
    "SessionRecord",
    "SessionStream",
    "StopCause",
    "Stopped",
    "Store",
    "StoreError",
    "Summary",
    "SwapRefused",
    "SystemPrompt",
    "Tool",
    "ToolCallRecord",
    "ToolCallStatus",
    "ToolContext",
    "ToolFailure",
    "ToolOutput",
    "ToolPruning",
    "Toolbox",
    "When",
    "assistant_events",
    "assistant_events_async",
    "build_context",
    "by_side_effects",
    "decode_policy",
    "encode_policy",
    "open_store",
    "reply_payload",
    "to_wire_event",
    "to_wire_message",
    "to_wire_reply",
    "tool",
    "tool_of",
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

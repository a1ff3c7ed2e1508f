"""interlingua-agents: tools from typed functions, the loop that runs them, and events for user interfaces.

Names load when first used (PEP 562). Event classes are in `interlingua_agents.events`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua_agents.calls import RESULT_LIMIT, ToolLimits
    from interlingua_agents.drivers import AgentLoop
    from interlingua_agents.event_stream import (
        AssistantView,
        ReplyPayload,
        assistant_events,
        assistant_events_async,
        assistant_stop_reason,
        reply_payload,
        to_wire_event,
        to_wire_message,
        to_wire_reply,
    )
    from interlingua_agents.events import AgentEvent, AssistantMessageEvent
    from interlingua_agents.memory import AsyncMemoryTurn, MemoryTurn
    from interlingua_agents.protocols import AsyncSteps, Compactor, Facts, Steps, ToolLoop
    from interlingua_agents.run import StopCause, Stopped
    from interlingua_agents.schemas import NormalisedSchema, SchemaChange, normalise_schema
    from interlingua_agents.tools import (
        DEFAULT_PERMISSIONS,
        Confirmation,
        Permission,
        Phase,
        Policy,
        Tool,
        Toolbox,
        ToolContext,
        ToolError,
        ToolOutput,
        by_side_effects,
        tool,
        tool_of,
    )

_NAMES = {
    "calls": "RESULT_LIMIT ToolLimits",
    "drivers": "AgentLoop",
    "event_stream": (
        "AssistantView ReplyPayload assistant_events assistant_events_async assistant_stop_reason reply_payload "
        "to_wire_event to_wire_message to_wire_reply"
    ),
    "events": "AgentEvent AssistantMessageEvent",
    "memory": "AsyncMemoryTurn MemoryTurn",
    "protocols": "AsyncSteps Compactor Facts Steps ToolLoop",
    "run": "StopCause Stopped",
    "schemas": "NormalisedSchema SchemaChange normalise_schema",
    "tools": (
        "DEFAULT_PERMISSIONS Confirmation Permission Phase Policy Tool ToolContext ToolError ToolOutput Toolbox "
        "by_side_effects tool tool_of"
    ),
}

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "DEFAULT_PERMISSIONS",
    "RESULT_LIMIT",
    "AgentEvent",
    "AgentLoop",
    "AssistantMessageEvent",
    "AssistantView",
    "AsyncMemoryTurn",
    "AsyncSteps",
    "Compactor",
    "Confirmation",
    "Facts",
    "MemoryTurn",
    "NormalisedSchema",
    "Permission",
    "Phase",
    "Policy",
    "ReplyPayload",
    "SchemaChange",
    "Steps",
    "StopCause",
    "Stopped",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolLimits",
    "ToolLoop",
    "ToolOutput",
    "Toolbox",
    "assistant_events",
    "assistant_events_async",
    "assistant_stop_reason",
    "by_side_effects",
    "normalise_schema",
    "reply_payload",
    "to_wire_event",
    "to_wire_message",
    "to_wire_reply",
    "tool",
    "tool_of",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

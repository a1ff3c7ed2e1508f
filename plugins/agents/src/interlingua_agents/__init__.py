"""interlingua-agents: tools from typed functions, the loop that runs them, and events for user interfaces.

Names load when first used (PEP 562). Event classes are in `interlingua_agents.events`.
"""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Module -> the names that are imported from it when first used.
_NAMES = {
    "agent": "Agent",
    "calls": "RESULT_LIMIT ToolLimits",
    "drivers": "AgentLoop",
    "event_json": "EventWriter ReplyPayload reply_payload to_wire_reply",
    "event_stream": "AssistantView assistant_events assistant_events_async assistant_stop_reason",
    "events": "AgentEvent AssistantMessageEvent",
    "inputs": "InputViolation validate_input",
    "mcp_server": "Elicitation McpServer mcp_tool_name",
    "memory": "AsyncMemoryTurn MemoryTurn",
    "protocols": "AsyncSteps Compactor Facts Steps ToolLoop",
    "results": (
        "DEFER AgentRun Decision OutputPartial Pending RunEnd RunEvent StopCause Stopped ToolEnd ToolStart ToolUpdate "
        "approve messages_of reject"
    ),
    "schemas": "NormalisedSchema SchemaChange canonical_names normalise_schema",
    "streams": "AsyncRunStream RunStream",
    "tools": (
        "DEFAULT_PERMISSIONS Confirmation Permission Phase Policy Tool ToolContext ToolError ToolOutput Toolbox "
        "by_side_effects tool tool_of"
    ),
}

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from interlingua_agents.agent import *
    from interlingua_agents.calls import *
    from interlingua_agents.drivers import *
    from interlingua_agents.event_json import *
    from interlingua_agents.event_stream import *
    from interlingua_agents.events import *
    from interlingua_agents.inputs import *
    from interlingua_agents.mcp_server import *
    from interlingua_agents.memory import *
    from interlingua_agents.protocols import *
    from interlingua_agents.results import *
    from interlingua_agents.schemas import *
    from interlingua_agents.streams import *
    from interlingua_agents.tools import *
else:
    __all__ = list(_MODULES)

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

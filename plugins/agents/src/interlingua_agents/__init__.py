"""Tools from typed functions, the agent loop that runs them, and events for user interfaces.

Names load when first used (PEP 562). Event classes are in `interlingua_agents.events`.
"""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "agent": "Agent",
    "calls": "ToolLimits",
    "event_json": "EventWriter ReplyPayload reply_payload to_wire_reply",
    "event_stream": "AssistantView assistant_events assistant_events_async assistant_stop_reason",
    "events": "AgentEvent AssistantMessageEvent",
    "inputs": "InputViolation validate_input",
    "loop": "AgentLoop",
    "mcp_server": "Elicitation McpServer mcp_tool_name",
    "memory": "AsyncMemoryTurn MemoryTurn",
    "outcomes": "RESULT_LIMIT ToolOutcome",
    "protocols": "AsyncSteps Compactor ConversationPort Steps",
    "results": (
        "CallDecision DEFER OutputPartial PendingCall RunEnd RunEvent RunResult RunStop StopCause ToolEnd ToolStart "
        "ToolUpdate approve messages_of reject"
    ),
    "run": "AgentRun",
    "schemas": "NormalisedSchema SchemaChange canonical_names normalise_schema",
    "streams": "AsyncRunStream RunStream",
    "toolbox": "Toolbox tool tool_of",
    "tools": (
        "CallPhase DEFAULT_PERMISSIONS Confirmation Permission Policy Tool ToolContext ToolError ToolOutput "
        "by_side_effects"
    ),
}

if TYPE_CHECKING:
    from interlingua_agents.agent import *
    from interlingua_agents.calls import *
    from interlingua_agents.event_json import *
    from interlingua_agents.event_stream import *
    from interlingua_agents.events import *
    from interlingua_agents.inputs import *
    from interlingua_agents.loop import *
    from interlingua_agents.mcp_server import *
    from interlingua_agents.memory import *
    from interlingua_agents.outcomes import *
    from interlingua_agents.protocols import *
    from interlingua_agents.results import *
    from interlingua_agents.run import *
    from interlingua_agents.schemas import *
    from interlingua_agents.streams import *
    from interlingua_agents.toolbox import *
    from interlingua_agents.tools import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

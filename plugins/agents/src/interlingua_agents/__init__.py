"""Tools from typed functions, agents that run them, and the events of a run.

Names load when first used (PEP 562).
"""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "agent": "Agent",
    "calls": "ToolLimits",
    "event_json": "EventWriter ReplyPayload assistant_stop_reason reply_payload to_wire_reply",
    "event_stream": "answer_events answer_events_async",
    "events": (
        "AgentTextDelta AgentTextEnd AgentTextStart AgentThinkingDelta AgentThinkingEnd AgentThinkingStart MessageEnd "
        "MessageStart OutputPartial RunEnd RunEvent RunStart ToolCallDelta ToolCallEnd ToolCallStart ToolEnd ToolStart "
        "ToolUpdate TurnEnd TurnStart"
    ),
    "inputs": "InputViolation validate_input",
    "local_tools": "patch_tool shell_tool",
    "mcp_server": "Elicitation McpServer mcp_tool_name",
    "outcomes": "RESULT_LIMIT ToolOutcome",
    "protocols": "AsyncSteps Compactor ConversationPort Steps",
    "results": "CallDecision DEFER PendingCall RunResult RunStop StopCause approve messages_of reject",
    "run": "AgentRun",
    "schemas": "NormalisedSchema SchemaChange canonical_names normalise_schema",
    "streams": "AsyncRunStream RunStream",
    "tools": (
        "CallPhase DEFAULT_PERMISSIONS Confirmation FunctionTool Permission Policy Tool ToolContext ToolError "
        "ToolOutput Toolbox by_side_effects tool tool_of"
    ),
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_agents.agent import Agent as Agent
    from interlingua_agents.calls import ToolLimits as ToolLimits
    from interlingua_agents.event_json import (
        EventWriter as EventWriter, ReplyPayload as ReplyPayload, assistant_stop_reason as assistant_stop_reason,
        reply_payload as reply_payload, to_wire_reply as to_wire_reply
    )
    from interlingua_agents.event_stream import (
        answer_events as answer_events, answer_events_async as answer_events_async
    )
    from interlingua_agents.events import (
        AgentTextDelta as AgentTextDelta, AgentTextEnd as AgentTextEnd, AgentTextStart as AgentTextStart,
        AgentThinkingDelta as AgentThinkingDelta, AgentThinkingEnd as AgentThinkingEnd,
        AgentThinkingStart as AgentThinkingStart, MessageEnd as MessageEnd, MessageStart as MessageStart,
        OutputPartial as OutputPartial, RunEnd as RunEnd, RunEvent as RunEvent, RunStart as RunStart,
        ToolCallDelta as ToolCallDelta, ToolCallEnd as ToolCallEnd, ToolCallStart as ToolCallStart,
        ToolEnd as ToolEnd, ToolStart as ToolStart, ToolUpdate as ToolUpdate, TurnEnd as TurnEnd,
        TurnStart as TurnStart
    )
    from interlingua_agents.inputs import InputViolation as InputViolation, validate_input as validate_input
    from interlingua_agents.local_tools import patch_tool as patch_tool, shell_tool as shell_tool
    from interlingua_agents.mcp_server import (
        Elicitation as Elicitation, McpServer as McpServer, mcp_tool_name as mcp_tool_name
    )
    from interlingua_agents.outcomes import RESULT_LIMIT as RESULT_LIMIT, ToolOutcome as ToolOutcome
    from interlingua_agents.protocols import (
        AsyncSteps as AsyncSteps, Compactor as Compactor, ConversationPort as ConversationPort, Steps as Steps
    )
    from interlingua_agents.results import (
        CallDecision as CallDecision, DEFER as DEFER, PendingCall as PendingCall, RunResult as RunResult,
        RunStop as RunStop, StopCause as StopCause, approve as approve, messages_of as messages_of, reject as reject
    )
    from interlingua_agents.run import AgentRun as AgentRun
    from interlingua_agents.schemas import (
        NormalisedSchema as NormalisedSchema, SchemaChange as SchemaChange, canonical_names as canonical_names,
        normalise_schema as normalise_schema
    )
    from interlingua_agents.streams import AsyncRunStream as AsyncRunStream, RunStream as RunStream
    from interlingua_agents.tools import (
        CallPhase as CallPhase, DEFAULT_PERMISSIONS as DEFAULT_PERMISSIONS, Confirmation as Confirmation,
        FunctionTool as FunctionTool,
        Permission as Permission, Policy as Policy, Tool as Tool, ToolContext as ToolContext, ToolError as ToolError,
        ToolOutput as ToolOutput, Toolbox as Toolbox, by_side_effects as by_side_effects, tool as tool,
        tool_of as tool_of
    )
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

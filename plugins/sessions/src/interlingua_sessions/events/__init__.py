"""Events for user interfaces: seed 000's answers, agent runs and reply payloads, as views of what core yields.

Never a transport and never a transcript format. Applications and the tool loop come in, by this door only.
Names are the seed's; `TextDelta` and its like are other classes than core's events of that name.
"""

from __future__ import annotations

from interlingua_sessions.events.agent import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from interlingua_sessions.events.assistant import (
    AssistantMessageEvent,
    Done,
    Error,
    SeedStopReason,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua_sessions.events.payload import ReplyPayload, reply_payload, to_wire_reply
from interlingua_sessions.events.streams import assistant_events, assistant_events_async
from interlingua_sessions.events.view import AssistantView, seed_stop_reason
from interlingua_sessions.events.wire import to_wire_event, to_wire_message

__all__ = [
    "AgentEnd",
    "AgentEvent",
    "AgentStart",
    "AssistantMessageEvent",
    "AssistantView",
    "Done",
    "Error",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "ReplyPayload",
    "SeedStopReason",
    "Start",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "TurnEnd",
    "TurnStart",
    "assistant_events",
    "assistant_events_async",
    "reply_payload",
    "seed_stop_reason",
    "to_wire_event",
    "to_wire_message",
    "to_wire_reply",
]

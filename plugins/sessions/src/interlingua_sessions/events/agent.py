"""`AgentEvent` of seed 000 §5.2: what happens while a turn runs, model calls and tools together.

Never emits anything itself: the tool loop does, to whoever listens.
The events room comes in; others take these through its front door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from interlingua.types.blocks import ToolResultBlock
from interlingua.types.messages import Message
from interlingua_sessions.events.assistant import AssistantMessageEvent


def _messages(value: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class AgentStart:
    """The agent begins to work on what the user said."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"


@attrs.frozen(kw_only=True)
class AgentEnd:
    """It is done; `messages` is all that was said since it started, the user's message first."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: tuple[Message, ...] = attrs.field(converter=_messages)


@attrs.frozen(kw_only=True)
class TurnStart:
    """One model call with its tools begins."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"


@attrs.frozen(kw_only=True)
class TurnEnd:
    """It is over: the answer, and the results of its calls in the calls' order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    message: Message
    tool_results: tuple[Message, ...] = attrs.field(converter=_messages)


@attrs.frozen(kw_only=True)
class MessageStart:
    """A message appears: an answer still empty, any other whole."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    message: Message


@attrs.frozen(kw_only=True)
class MessageUpdate:
    """An answer grows."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    assistant_message_event: AssistantMessageEvent

    @property
    def message(self) -> Message:
        """The answer as it stood then; made when it is read, unless the event brings it."""
        event = self.assistant_message_event
        if event.type == "done":
            return event.message
        return event.error if event.type == "error" else event.partial


@attrs.frozen(kw_only=True)
class MessageEnd:
    """A message is whole, and stored."""

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: Message


@attrs.frozen(kw_only=True)
class ToolExecutionStart:
    """A call is taken up; every one of these has its end."""

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class ToolExecutionUpdate:
    """A running tool reports what it has so far."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]
    partial_result: Any


@attrs.frozen(kw_only=True)
class ToolExecutionEnd:
    """A call is answered: `result` is the answer as the model will see it."""

    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResultBlock
    is_error: bool


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)
"""Seed 000 §5.2, with its names and fields."""

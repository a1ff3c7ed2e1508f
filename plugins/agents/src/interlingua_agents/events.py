"""Events for user interfaces: how one answer grows, and what an agent does around it.

An event of a growing answer costs a pointer and a number, however long the answer is: its message is made when read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.types import Message, SideEffects, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock


class GrowingAnswer(Protocol):
    """An answer that remembers how it grew."""

    @property
    def turn(self) -> int:
        """Which answer of its run it is, from 1."""

    def at(self, seen: int) -> Message:
        """Return what it was after its first `seen` stream events."""


@attrs.frozen(kw_only=True)
class Moment:
    """A moment of an answer: cheap to keep, and the message of that moment is made when it is read."""

    growing: GrowingAnswer = attrs.field(repr=False, eq=False)
    seen: int = attrs.field(repr=False, eq=False)

    @property
    def partial(self) -> Message:
        """The answer as it stood at this event, status PARTIAL; made anew each time it is read."""
        return self.growing.at(self.seen)

    @property
    def turn(self) -> int:
        """Which answer of its run this is, from 1."""
        return self.growing.turn


@attrs.frozen(kw_only=True)
class BlockMoment(Moment):
    """A moment of one block.

    Attributes:
        content_index: which block of `partial.content`: blocks count in the order they began, and keep their place.
    """

    content_index: int


AssistantStopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]
"""Why an answer ended, in the words of the events' JSON."""


@attrs.frozen(kw_only=True)
class Start(Moment):
    """The answer begins."""

    type: ClassVar[Literal["start"]] = "start"


@attrs.frozen(kw_only=True)
class TextStart(BlockMoment):
    """A text block begins."""

    type: ClassVar[Literal["text_start"]] = "text_start"


@attrs.frozen(kw_only=True)
class TextDelta(BlockMoment):
    """More text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    delta: str

    @property
    def text(self) -> str:
        """The same as `delta`, under the name that core's events have."""
        return self.delta


@attrs.frozen(kw_only=True)
class TextEnd(BlockMoment):
    """A text block is whole."""

    type: ClassVar[Literal["text_end"]] = "text_end"

    @property
    def content(self) -> str:
        """The whole text of the block."""
        block = self.partial.content[self.content_index]
        return block.text if isinstance(block, TextBlock) else ""


@attrs.frozen(kw_only=True)
class ThinkingStart(BlockMoment):
    """A thinking block begins."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"


@attrs.frozen(kw_only=True)
class ThinkingDelta(BlockMoment):
    """More thinking."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    delta: str

    @property
    def text(self) -> str:
        """The same as `delta`, under the name that core's events have."""
        return self.delta


@attrs.frozen(kw_only=True)
class ThinkingEnd(BlockMoment):
    """A thinking block is whole."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"

    @property
    def content(self) -> str:
        """The whole text of the block."""
        block = self.partial.content[self.content_index]
        return block.text if isinstance(block, ThinkingBlock) else ""


@attrs.frozen(kw_only=True)
class ToolCallStart(BlockMoment):
    """A call begins."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"


@attrs.frozen(kw_only=True)
class ToolCallDelta(BlockMoment):
    """More of the call's argument text."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    delta: str


@attrs.frozen(kw_only=True)
class ToolCallEnd(BlockMoment):
    """A call is whole."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"

    @property
    def tool_call(self) -> ToolUseBlock:
        """The whole call."""
        block = self.partial.content[self.content_index]
        assert isinstance(block, ToolUseBlock)  # noqa: S101  the view numbered it as one
        return block


@attrs.frozen(kw_only=True)
class Done:
    """The answer is whole: `message` is it, in the canonical order of its blocks."""

    type: ClassVar[Literal["done"]] = "done"
    reason: AssistantStopReason
    message: Message


@attrs.frozen(kw_only=True)
class Error:
    """The answer failed or was cancelled; nothing is raised besides.

    Attributes:
        reason: `aborted` when somebody cancelled it.
        error: what was received, as a message.
        cause: the exception, where there was one; not part of the event's JSON.
    """

    type: ClassVar[Literal["error"]] = "error"
    reason: Literal["aborted", "error"]
    error: Message
    cause: InterlinguaError | None = None


AssistantMessageEvent: TypeAlias = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Done
    | Error
)
"""How one answer grows. Attributes are in snake_case; `to_wire_event` writes the camelCase of the events' JSON."""


@attrs.frozen(kw_only=True)
class AgentStart:
    """The agent begins to work on the user's message."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"


@attrs.frozen(kw_only=True)
class AgentEnd:
    """It is done; `messages` are all messages since it started, the user's first."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: tuple[Message, ...]


@attrs.frozen(kw_only=True)
class TurnStart:
    """One model call with its tools begins."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    turn: int = 1


@attrs.frozen(kw_only=True)
class TurnEnd:
    """It is over: the answer, and the results of its calls in the calls' order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    message: Message
    tool_results: tuple[Message, ...] = ()
    turn: int = 1


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
    """A call is taken up; every one of these has its end.

    Attributes:
        tool_call_id: canonical id of the call.
        tool_name: its tool.
        args: its input.
        provider_id: the id that the provider gave the call, or None.
        kind: the tool's kind, for user interfaces, or None.
        side_effects: what the tool may change; None where there is no such tool.
    """

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]
    provider_id: str | None = None
    kind: str | None = None
    side_effects: SideEffects | None = None


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
"""What happens while an agent runs, model calls and tools together."""

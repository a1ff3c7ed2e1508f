"""Events for user interfaces: the growth of one answer, and the steps of an agent around it.

An event of a growing answer holds a reference and a number, however long the answer is; its message is built when read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.types import Message, SideEffects, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock


class GrowingAnswer(Protocol):
    """An answer that can return each of its earlier states."""

    @property
    def turn(self) -> int:
        """Number of the answer in its run, from 1."""

    def at(self, seen: int) -> Message:
        """Return the answer after its first `seen` stream events."""


@attrs.frozen(kw_only=True)
class AnswerMoment:
    """A state of a growing answer: cheap to keep; the message of that state is built when read."""

    growing: GrowingAnswer = attrs.field(repr=False, eq=False)
    seen: int = attrs.field(repr=False, eq=False)

    @property
    def partial(self) -> Message:
        """The answer at this event, status PARTIAL; built anew at each read."""
        return self.growing.at(self.seen)

    @property
    def turn(self) -> int:
        """Number of the answer in its run, from 1."""
        return self.growing.turn


@attrs.frozen(kw_only=True)
class BlockMoment(AnswerMoment):
    """A state of one block of a growing answer.

    Attributes:
        content_index: index of the block in `partial.content`; blocks are numbered in the order they began.
    """

    content_index: int


AssistantStopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]
"""The reason why an answer ended, in the words of the events' JSON."""


@attrs.frozen(kw_only=True)
class AnswerStart(AnswerMoment):
    """The answer begins."""

    type: ClassVar[Literal["start"]] = "start"


@attrs.frozen(kw_only=True)
class AgentTextStart(BlockMoment):
    """A text block begins."""

    type: ClassVar[Literal["text_start"]] = "text_start"


@attrs.frozen(kw_only=True)
class AgentTextDelta(BlockMoment):
    """More text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    delta: str

    @property
    def text(self) -> str:
        """Same as `delta`, under the name used by core's events."""
        return self.delta


@attrs.frozen(kw_only=True)
class AgentTextEnd(BlockMoment):
    """A text block is complete."""

    type: ClassVar[Literal["text_end"]] = "text_end"

    @property
    def content(self) -> str:
        """The whole text of the block."""
        block = self.partial.content[self.content_index]
        return block.text if isinstance(block, TextBlock) else ""


@attrs.frozen(kw_only=True)
class AgentThinkingStart(BlockMoment):
    """A thinking block begins."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"


@attrs.frozen(kw_only=True)
class AgentThinkingDelta(BlockMoment):
    """More thinking."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    delta: str

    @property
    def text(self) -> str:
        """Same as `delta`, under the name used by core's events."""
        return self.delta


@attrs.frozen(kw_only=True)
class AgentThinkingEnd(BlockMoment):
    """A thinking block is complete."""

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
    """A call is complete."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"

    @property
    def tool_call(self) -> ToolUseBlock:
        """The whole call."""
        block = self.partial.content[self.content_index]
        assert isinstance(block, ToolUseBlock)  # noqa: S101  the view numbered a call
        return block


@attrs.frozen(kw_only=True)
class AnswerDone:
    """The answer is complete: `message` has its blocks in canonical order."""

    type: ClassVar[Literal["done"]] = "done"
    reason: AssistantStopReason
    message: Message


@attrs.frozen(kw_only=True)
class AnswerError:
    """The answer failed or was cancelled. No exception is raised in addition.

    Attributes:
        reason: `aborted` if the answer was cancelled.
        error: the message received so far.
        cause: the exception, or None; not part of the event's JSON.
    """

    type: ClassVar[Literal["error"]] = "error"
    reason: Literal["aborted", "error"]
    error: Message
    cause: InterlinguaError | None = None


AssistantMessageEvent: TypeAlias = (
    AnswerStart
    | AgentTextStart
    | AgentTextDelta
    | AgentTextEnd
    | AgentThinkingStart
    | AgentThinkingDelta
    | AgentThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | AnswerDone
    | AnswerError
)
"""The growth of one answer. Attributes are in snake_case; `to_wire_event` writes the camelCase of the events' JSON."""


@attrs.frozen(kw_only=True)
class AgentStart:
    """The agent starts to work on the user's message."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"


@attrs.frozen(kw_only=True)
class AgentEnd:
    """The agent is done; `messages` are all messages since it started, the user's first."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    messages: tuple[Message, ...]


@attrs.frozen(kw_only=True)
class AgentTurnStart:
    """One model call with its tools starts."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    turn: int = 1


@attrs.frozen(kw_only=True)
class AgentTurnEnd:
    """One model call with its tools is done: the answer, and the results of its calls in the calls' order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    message: Message
    tool_results: tuple[Message, ...] = ()
    turn: int = 1


@attrs.frozen(kw_only=True)
class MessageStart:
    """A message appears: an answer is still empty, any other message is complete."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    message: Message


@attrs.frozen(kw_only=True)
class MessageUpdate:
    """An answer grows."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    assistant_message_event: AssistantMessageEvent

    @property
    def message(self) -> Message:
        """The answer at this event; built when read, unless the event holds it."""
        event = self.assistant_message_event
        if event.type == "done":
            return event.message
        return event.error if event.type == "error" else event.partial


@attrs.frozen(kw_only=True)
class MessageEnd:
    """A message is complete and stored."""

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: Message


@attrs.frozen(kw_only=True)
class ToolExecutionStart:
    """Work on a call starts. Each of these events has its end.

    Attributes:
        tool_call_id: canonical id of the call.
        tool_name: name of the tool.
        args: the input.
        provider_id: the provider's id of the call, or None.
        kind: the tool's kind, for user interfaces, or None.
        side_effects: the tool's side effects; None if the tool does not exist.
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
    """A running tool reports a partial result."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any]
    partial_result: Any


@attrs.frozen(kw_only=True)
class ToolExecutionEnd:
    """A call has its result, as the model will see it."""

    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"
    tool_call_id: str
    tool_name: str
    result: ToolResultBlock
    is_error: bool


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | AgentTurnStart
    | AgentTurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)
"""The events of a running agent, model calls and tools together."""

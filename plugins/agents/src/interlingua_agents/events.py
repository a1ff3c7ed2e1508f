"""The events of a run, one list for streams and listeners: the growth of answers, and the steps around them.

An event of a growing answer holds a reference and a number, however long the answer is; its message is built when read.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import attrs

from interlingua import CallerError
from interlingua.types import Message, SideEffects, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_agents.results import RunResult
from interlingua_agents.tools import CallPhase


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
        """The answer at this event, status PARTIAL; built at each read."""
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
class RunStart:
    """A run starts."""

    type: ClassVar[Literal["run_start"]] = "run_start"
    turn: int = 0


@attrs.frozen(kw_only=True)
class TurnStart:
    """One model call with its tools starts.

    Attributes:
        turn: number of the answer in its run, from 1; 0 for calls that an earlier run left open.
    """

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    turn: int


@attrs.frozen(kw_only=True)
class TurnEnd:
    """One model call with its tools is done: the answer, and the results of its calls in the calls' order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    turn: int
    message: Message
    tool_results: tuple[Message, ...] = ()


@attrs.frozen(kw_only=True)
class MessageStart:
    """A message appears: a streamed answer is still empty, any other message is complete."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    turn: int
    message: Message


@attrs.frozen(kw_only=True)
class MessageEnd:
    """A message is complete, or its answer ended early; in a run it is stored.

    Attributes:
        turn: see `TurnStart`.
        message: the message; an answer has its blocks in canonical order.
        error: the error that ended the answer, or None.
    """

    type: ClassVar[Literal["message_end"]] = "message_end"
    turn: int
    message: Message
    error: BaseException | None = None


@attrs.frozen(kw_only=True)
class ToolStart:
    """Work on a call starts. Each of these events has its `ToolEnd`, unless the call is left pending.

    Attributes:
        turn: see `TurnStart`.
        call: the call.
        side_effects: the tool's side effects; None if the tool does not exist.
        kind: the tool's kind, for user interfaces, or None.
    """

    type: ClassVar[Literal["tool_start"]] = "tool_start"
    turn: int
    call: ToolUseBlock
    side_effects: SideEffects | None = None
    kind: str | None = None


@attrs.frozen(kw_only=True)
class ToolUpdate:
    """A running tool reports a partial result."""

    type: ClassVar[Literal["tool_update"]] = "tool_update"
    turn: int
    call: ToolUseBlock
    partial: Any


@attrs.frozen(kw_only=True)
class ToolEnd:
    """A call has its result.

    Attributes:
        turn: see `TurnStart`.
        call: the call.
        result: the result that the model will see.
        status: how the call ended.
        elapsed_s: seconds that the tool ran; None if it did not run.
    """

    type: ClassVar[Literal["tool_end"]] = "tool_end"
    turn: int
    call: ToolUseBlock
    result: ToolResultBlock
    status: CallPhase
    elapsed_s: float | None = None


@attrs.frozen(kw_only=True)
class OutputPartial:
    """More of the typed output arrived.

    Attributes:
        turn: see `TurnStart`.
        value: the JSON value received so far, not validated.
        closed: paths of complete parts.
    """

    type: ClassVar[Literal["output_partial"]] = "output_partial"
    turn: int
    value: Any
    closed: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class RunEnd:
    """The run has ended. The stream of a run that fails raises the error instead; a listener gets this event.

    Attributes:
        turn: the last turn.
        messages: all messages since the run started, the user's first.
        error: the error that ended the run, or None.
    """

    type: ClassVar[Literal["run_end"]] = "run_end"
    turn: int
    messages: tuple[Message, ...]
    error: BaseException | None = None
    _result: RunResult[Any] | None = None

    @property
    def result(self) -> RunResult[Any]:
        """The result of the run.

        Raises:
            CallerError: the run has failed; see `error`.
        """
        if self._result is None:
            raise CallerError("the run has no result: it failed, see error and messages")
        return self._result


RunEvent: TypeAlias = (
    RunStart
    | TurnStart
    | MessageStart
    | AgentTextStart
    | AgentTextDelta
    | AgentTextEnd
    | AgentThinkingStart
    | AgentThinkingDelta
    | AgentThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | MessageEnd
    | OutputPartial
    | ToolStart
    | ToolUpdate
    | ToolEnd
    | TurnEnd
    | RunEnd
)
"""All events of a run, which streams yield and listeners get."""

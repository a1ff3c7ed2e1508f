"""What a run gives: how it ended, the calls it left open, and the events of a run that is streamed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.types import Message, SideEffects, ToolDefinition, ToolResultBlock, ToolUseBlock, Usage
from interlingua_agents.events import TextDelta, ThinkingDelta, TurnEnd, TurnStart
from interlingua_agents.tools import Phase

OutputT = TypeVar("OutputT", covariant=True)  # noqa: PLC0105  what a reader expects is Output and T


class StopCause(StrEnum):
    """Why a run ended."""

    DONE = "done"
    """The model has answered."""
    TERMINATED = "terminated"
    """A tool's result asked for it (`ToolOutput.terminate`)."""
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    """The budget is spent, or the cost of an answer is not known."""
    APPROVAL = "approval"
    """Calls wait for a person's consent (`confirm=DEFER`); they are the run's `pending`."""
    EXTERNAL = "external"
    """Calls of tools without a function wait for the application's results; they are the run's `pending`."""
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class Stopped:
    """How a run ended.

    Attributes:
        cause: why.
        message: the last answer.
        turns: how many answers there were.
        spent_usd: what they cost together, those of known cost.
    """

    cause: StopCause
    message: Message
    turns: int
    spent_usd: Decimal


class Defer(Enum):
    """The type of `DEFER`."""

    DEFER = "defer"


DEFER: Final = Defer.DEFER
"""As `confirm`: calls that need consent are left open, and the run ends once every other call is answered."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@attrs.frozen(kw_only=True)
class Decision:
    """What a person decided about a pending call; all fields are JSON values.

    Attributes:
        call_id: canonical id of the call.
        approved: whether it may run.
        why: where it may not: what the model reads besides.
    """

    call_id: str
    approved: bool
    why: str = ""


def approve(pending: Pending | ToolUseBlock) -> Decision:
    """Let a pending call run, in the run that is given the decision."""
    return Decision(call_id=pending.call_id if isinstance(pending, Pending) else pending.id, approved=True)


def reject(pending: Pending | ToolUseBlock, why: str = "") -> Decision:
    """Answer a pending call by a refusal; the model reads `why`."""
    return Decision(call_id=pending.call_id if isinstance(pending, Pending) else pending.id, approved=False, why=why)


@attrs.frozen(kw_only=True)
class Pending:
    """A call that was left open; all fields are JSON values: `Pending(**attrs.asdict(pending))` is equal to it.

    Attributes:
        call_id: canonical id of the call.
        name: its tool.
        input: its arguments.
        side_effects: what the tool may change.
        reason: `approval` where a person's consent is missing, `external` where the application runs the tool itself.
    """

    call_id: str
    name: str
    input: dict[str, Any] = attrs.field(converter=_plain)
    side_effects: str
    reason: Literal["approval", "external"]

    @classmethod
    def of(cls, call: ToolUseBlock, tool: ToolDefinition, reason: Literal["approval", "external"]) -> Pending:
        """Make one of a call."""
        return cls(
            call_id=call.id, name=call.name, input=call.input, side_effects=str(tool.side_effects), reason=reason
        )


_MISSING: Any = object()


@attrs.frozen(kw_only=True)
class AgentRun(Generic[OutputT]):
    """What a run of an agent came to.

    Attributes:
        messages: the new ones: question, answers and tool results. Add them to the history.
        usage: of all answers together; a count is None where no answer reports it, the cost where it is not known of
            one.
        stop: how the run ended.
        pending: calls that wait for consent or for the application.
        whole_results: by call id, whole results of calls whose message holds the result shortened.
    """

    messages: tuple[Message, ...]
    usage: Usage
    stop: Stopped
    pending: tuple[Pending, ...] = ()
    whole_results: Mapping[str, ToolResultBlock] = attrs.field(factory=dict)
    _output: Any = _MISSING

    @property
    def output(self) -> OutputT:
        """The last answer's text, or with `output=` the value of that type.

        Raises:
            CallerError: the run stopped before there was such a value; `stop.cause` says why.
        """
        if self._output is _MISSING:
            raise CallerError(f"the run has no output, it stopped before: {self.stop.cause}; look at stop and pending")
        value: OutputT = self._output
        return value


@attrs.frozen(kw_only=True)
class ToolStart:
    """A call is taken up; every one of these has its end, unless the call is left pending.

    Attributes:
        turn: which answer of the run has the call, from 1; 0 for one that an earlier run left open.
        call: the call.
        side_effects: what the tool may change; None where there is no such tool.
    """

    type: ClassVar[Literal["tool_start"]] = "tool_start"
    turn: int
    call: ToolUseBlock
    side_effects: SideEffects | None = None


@attrs.frozen(kw_only=True)
class ToolUpdate:
    """A running tool reports what it has so far."""

    type: ClassVar[Literal["tool_update"]] = "tool_update"
    turn: int
    call: ToolUseBlock
    partial: Any


@attrs.frozen(kw_only=True)
class ToolEnd:
    """A call is answered.

    Attributes:
        turn: as for `ToolStart`.
        call: the call.
        result: as the model will see it.
        status: how it ended.
        elapsed_s: seconds the tool ran; None where it did not.
    """

    type: ClassVar[Literal["tool_end"]] = "tool_end"
    turn: int
    call: ToolUseBlock
    result: ToolResultBlock
    status: Phase
    elapsed_s: float | None = None


@attrs.frozen(kw_only=True)
class OutputPartial:
    """More of the typed output arrived.

    Attributes:
        turn: which answer of the run it grows in.
        value: the JSON value so far, not validated.
        closed: paths of what is whole.
    """

    type: ClassVar[Literal["output_partial"]] = "output_partial"
    turn: int
    value: Any
    closed: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class RunEnd:
    """The run is over; `run` is what came of it. A run that fails raises instead."""

    type: ClassVar[Literal["run_end"]] = "run_end"
    turn: int
    run: AgentRun[Any]


RunEvent: TypeAlias = (
    TurnStart | TextDelta | ThinkingDelta | ToolStart | ToolUpdate | ToolEnd | OutputPartial | TurnEnd | RunEnd
)
"""What a streamed run yields, through all its turns."""


def messages_of(error: InterlinguaError) -> tuple[Message, ...]:
    """Return what a run had added when it failed: question, answers and tool results, for the history.

    Empty where the error did not end a run.
    """
    found: tuple[Message, ...] = getattr(error, _DONE, ())
    return found


def set_messages_of(error: InterlinguaError, messages: tuple[Message, ...]) -> None:
    """Keep what a run had added on the error that ends it."""
    setattr(error, _DONE, messages)


_DONE = "_messages_of_run"

"""The result of a run: how it ended, and the calls it left open."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.plugins import messages_markdown
from interlingua.types import Message, ToolDefinition, ToolResultBlock, ToolUseBlock, Usage

PendingReason: TypeAlias = Literal["approval", "external", "uncertain"]
OutputT = TypeVar("OutputT", covariant=True)  # noqa: PLC0105  readers expect the names Output and T


class StopCause(StrEnum):
    """The reason why a run ended."""

    DONE = "done"
    """The model has answered without calling tools."""
    TERMINATED = "terminated"
    """A tool's result requested the end (`ToolOutput.terminate`)."""
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    """The budget is spent, or the cost of an answer is not known."""
    APPROVAL = "approval"
    """Calls wait for a person (`confirm=DEFER`): for consent, or because they may have run; the run's `pending`."""
    EXTERNAL = "external"
    """Calls of tools without a function wait for the application's results; they are the run's `pending`."""
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class RunStop:
    """How a run ended.

    Attributes:
        cause: the reason.
        message: the last answer.
        turns: number of answers.
        spent_usd: the sum of the known costs.
    """

    cause: StopCause
    message: Message
    turns: int
    spent_usd: Decimal


class Defer(Enum):
    """The type of `DEFER`."""

    DEFER = "defer"


DEFER: Final = Defer.DEFER
"""Value for `confirm`: leave calls that need consent open; the run ends once every other call has its result."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@attrs.frozen(kw_only=True)
class CallDecision:
    """A person's decision about a pending call; all fields are JSON values.

    Attributes:
        call_id: canonical id of the call.
        approved: whether it may run.
        why: the reason of a rejection, which the model reads.
        again: whether it is about a call that had started before, whose effect is uncertain.
    """

    call_id: str
    approved: bool
    why: str = ""
    again: bool = False


def approve(pending: PendingCall | ToolUseBlock) -> CallDecision:
    """Return the decision to let a pending call run; pass it to the next run."""
    return _decide(pending, approved=True)


def reject(pending: PendingCall | ToolUseBlock, why: str = "") -> CallDecision:
    """Return the decision to reject a pending call; the model reads `why`."""
    return _decide(pending, approved=False, why=why)


def _decide(pending: PendingCall | ToolUseBlock, *, approved: bool, why: str = "") -> CallDecision:
    if isinstance(pending, ToolUseBlock):
        return CallDecision(call_id=pending.id, approved=approved, why=why)
    again = pending.reason == "uncertain"
    return CallDecision(call_id=pending.call_id, approved=approved, why=why, again=again)


@attrs.frozen(kw_only=True)
class PendingCall:
    """A call that was left open; all fields are JSON values: `PendingCall(**attrs.asdict(pending))` is equal to it.

    Attributes:
        call_id: canonical id of the call.
        name: its tool.
        input: its arguments.
        side_effects: the tool's side effects.
        reason: `approval` if a person's consent is missing, `external` if the application runs the tool itself,
            `uncertain` if an earlier run started the call and did not report its end.
    """

    call_id: str
    name: str
    input: dict[str, Any] = attrs.field(converter=_plain)
    side_effects: str
    reason: PendingReason

    @classmethod
    def of(cls, call: ToolUseBlock, tool: ToolDefinition, reason: PendingReason) -> PendingCall:
        """Make a pending call of a call and its tool."""
        return cls(
            call_id=call.id, name=call.name, input=call.input, side_effects=str(tool.side_effects), reason=reason
        )


_MISSING: Any = object()


@attrs.frozen(kw_only=True)
class RunResult(Generic[OutputT]):
    """The result of a run of an agent.

    Attributes:
        messages: the new messages: question, answers and tool results. Add them to the history.
        usage: the sum over all answers. A count is None if no answer reports it; the cost is None if it is unknown for
            one answer.
        stop: how the run ended.
        pending: calls that wait for consent or for the application.
        whole_results: whole results of calls whose message holds a shortened result, by call id.
    """

    messages: tuple[Message, ...]
    usage: Usage
    stop: RunStop
    pending: tuple[PendingCall, ...] = ()
    whole_results: Mapping[str, ToolResultBlock] = attrs.field(factory=dict, repr=False)
    _value: Any = _MISSING

    @property
    def value(self) -> OutputT:
        """The last answer's text, or with `output=` the value of that type.

        Raises:
            CallerError: the run stopped before it had a value; `stop.cause` is the reason.
        """
        if self._value is _MISSING:
            raise CallerError(f"the run stopped before it had a value: {self.stop.cause}; see stop and pending")
        value: OutputT = self._value
        return value

    def _repr_markdown_(self) -> str:
        return messages_markdown(self.messages)


def messages_of(error: InterlinguaError) -> tuple[Message, ...]:
    """Return the messages that a run had added when it failed, to be added to the history: question, answers, results.

    Empty if the error did not end a run.
    """
    found: tuple[Message, ...] = getattr(error, _DONE, ())
    return found


def set_messages_of(error: InterlinguaError, messages: tuple[Message, ...]) -> None:
    """Attach the messages that a run had added to the error that ends it."""
    setattr(error, _DONE, messages)


_DONE = "_messages_of_run"

"""One run of the agent loop as a generator: what comes next, what is stored, which events are emitted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

import attrs

from interlingua import InterlinguaError
from interlingua.types import Message, MessageMetadata, MessageStatus, Role, ToolUseBlock
from interlingua_agents import events as ev
from interlingua_agents.calls import Answer, Answered, CallReport, Progress, Running, Taken, answer_cancelled
from interlingua_agents.tools import Toolbox

if TYPE_CHECKING:
    from interlingua_agents.protocols import Facts


class StopCause(StrEnum):
    """Why a run ended."""

    DONE = "done"
    """The model has answered."""
    TERMINATED = "terminated"
    """A tool's result asked for it (`ToolOutput.terminate`)."""
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    """The budget is spent, or the cost of an answer is not known."""
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


@attrs.frozen
class Ask:
    """The model's next answer is wanted."""


@attrs.frozen
class Compact:
    """The context is to be compacted where needed, before the model is asked again."""


@attrs.frozen
class Calls:
    """These calls are to be run, and their reports handed to `take`."""

    calls: tuple[ToolUseBlock, ...]


RunStep: TypeAlias = Ask | Compact | Calls
_log = logging.getLogger("interlingua")
Listener: TypeAlias = Callable[[ev.AgentEvent], None]
_UNKNOWN_EFFECT = "interrupted while it ran; whether it took effect is unknown"


class Run:
    """One run over a turn: `steps` says what is to be done next, a driver does it.

    Nothing in here waits, for a model or for a tool.

    Args:
        facts: the turn.
        toolbox: the tools.
        max_turns: how many answers at most.
        budget_usd: how much they may cost together; None for no limit.
        listen: called with every agent event.
    """

    def __init__(
        self, facts: Facts, toolbox: Toolbox, *, max_turns: int, budget_usd: Decimal | None, listen: Listener | None
    ) -> None:
        self.cancelled = False
        self._facts = facts
        self._toolbox = toolbox
        self._max_turns = max_turns
        self._budget = budget_usd
        self._listen = listen
        self._added: list[Message] = []
        self._turns = 0
        self._spent = Decimal(0)
        self._unpriced = False
        self._results: list[Message] = []
        self._waiting: dict[int, Answer] = {}
        self._next = 0
        self._message_id = ""

    @property
    def workspace(self) -> str:
        """The folder the conversation works in; empty where it has none."""
        return self._facts.workspace

    def emit(self, event: ev.AgentEvent) -> None:
        """Pass an event to the listener, where there is one."""
        if self._listen is not None:
            self._listen(event)

    def steps(self) -> Generator[RunStep, Message | None, Stopped]:
        """Yield what is to be done next; an `Ask` is sent its answer, or the error is thrown in."""
        self.emit(ev.AgentStart())
        try:
            self.emit(ev.TurnStart())
            last, calls = self._unanswered_calls()
            if last is not None:
                yield from self._run_calls(last, self._without_started(calls))
                self.emit(ev.TurnEnd(message=last, tool_results=tuple(self._results)))
                self.emit(ev.TurnStart())
            question = takewhile(lambda one: one.role is Role.USER, reversed(self._facts.messages))
            for message in reversed(list(question)):
                self._show(message)
            return (yield from self._loop())
        finally:
            self.emit(ev.AgentEnd(messages=tuple(self._added)))

    def _loop(self) -> Generator[RunStep, Message | None, Stopped]:
        while True:
            self._results = []
            try:
                answer = yield Ask()
            except InterlinguaError as error:
                if isinstance(error.partial, Message):
                    self._added.append(error.partial)
                    self.emit(ev.MessageEnd(message=error.partial))
                    self.emit(ev.TurnEnd(message=error.partial, tool_results=()))
                raise
            assert answer is not None  # noqa: S101  what an Ask is sent
            self._count(answer)
            calls = answer.tool_calls() if answer.metadata.status is MessageStatus.COMPLETE else []
            if calls:
                yield from self._run_calls(answer, calls)
            self.emit(ev.TurnEnd(message=answer, tool_results=tuple(self._results)))
            cause = self._stop_cause(answer, called=bool(calls))
            if cause is not None:
                return Stopped(cause=cause, message=answer, turns=self._turns, spent_usd=self._spent)
            yield Compact()
            self.emit(ev.TurnStart())

    def take(self, report: CallReport) -> None:
        """Take a report of the calls that run."""
        if isinstance(report, Answered):
            self._answered(report.place, report.answer)
            return
        call = report.call
        about = {"tool_call_id": call.id, "tool_name": call.name}
        if isinstance(report, Taken):
            tool = self._toolbox.get(call.name)
            effects, kind = (None, call.kind) if tool is None else (tool.definition.side_effects, tool.definition.kind)
            self.emit(
                ev.ToolExecutionStart(
                    args=call.input, provider_id=call.provider_id, kind=kind, side_effects=effects, **about
                )
            )
        elif isinstance(report, Running):
            self._facts.start_call(call, report.at)
        elif isinstance(report, Progress):
            self.emit(ev.ToolExecutionUpdate(args=call.input, partial_result=report.partial, **about))
        else:
            # an input that fits the schema but not the function; the client reports the others
            self._facts.observe(
                {
                    "type": "tool_input_invalid",
                    "session_id": self._facts.id,
                    "message_id": self._message_id,
                    "tool_use_id": call.id,
                    "tool": call.name,
                    "path": "",
                    "message": report.message,
                }
            )

    def _unanswered_calls(self) -> tuple[Message | None, list[ToolUseBlock]]:
        """Return the answer the history ends with and its calls without a result, which a process that died left."""
        answered: set[str] = set()
        for message in reversed(self._facts.messages):
            if message.role is Role.TOOL:
                answered |= {result.tool_use_id for result in message.tool_results()}
                continue
            whole = message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE
            calls = [call for call in message.tool_calls() if call.id not in answered] if whole else []
            return (message, calls) if calls else (None, [])
        return None, []

    def _count(self, answer: Message) -> None:
        self._turns += 1
        usage = answer.metadata.usage
        if usage is None or usage.cost_usd is None:
            self._unpriced = True
        else:
            self._spent += usage.cost_usd
        self._added.append(answer)
        self.emit(ev.MessageEnd(message=answer))

    def _stop_cause(self, answer: Message, *, called: bool) -> StopCause | None:
        if self.cancelled or answer.metadata.status is MessageStatus.CANCELLED:
            return StopCause.CANCELLED
        if not called:
            return StopCause.DONE
        if any(result.terminate for message in self._results for result in message.tool_results()):
            return StopCause.TERMINATED
        if self._turns >= self._max_turns:
            return StopCause.TURN_LIMIT
        if self._budget is None:
            return None
        if self._unpriced:
            _log.warning(
                "the price of %s is not known: a budget cannot be kept, the tool loop stops", self._facts.model
            )
        return StopCause.BUDGET if self._unpriced or self._spent >= self._budget else None

    def _run_calls(self, message: Message, calls: Sequence[ToolUseBlock]) -> Generator[RunStep, Message | None, None]:
        self._message_id = message.id
        self._waiting, self._next = {}, 0
        if calls:
            yield Calls(tuple(calls))

    def _without_started(self, calls: Sequence[ToolUseBlock]) -> list[ToolUseBlock]:
        """Return the calls to run; one that ran when a process died may have had its effect, and is cancelled."""
        left = []
        for call in calls:
            tool = self._toolbox.get(call.name)
            if tool is not None and tool.is_exclusive and self._facts.was_started(call):
                self._add_result(answer_cancelled(call, _UNKNOWN_EFFECT, at=datetime.now(UTC)))
            else:
                left.append(call)
        return left

    def _answered(self, place: int, answer: Answer) -> None:
        """Add results in the order of the calls, each as soon as those before it are there.

        Ctrl-C may interrupt this anywhere; the report then comes once more, and its result is not added twice.
        """
        call, result = answer.call, answer.result
        if place in self._waiting and self._facts.is_answered(call):
            self._next = max(self._next, place + 1)
            return
        self.emit(
            ev.ToolExecutionEnd(tool_call_id=call.id, tool_name=call.name, result=result, is_error=result.is_error)
        )
        self._waiting[place] = answer
        while (ready := self._waiting.get(self._next)) is not None:
            self._add_result(ready)
            self._next += 1

    def _add_result(self, answer: Answer) -> None:
        message = Message(
            role=Role.TOOL,
            content=(answer.result,),
            metadata=MessageMetadata(parent_tool_use_id=answer.call.id),
            session_id=self._facts.id,
        )
        added = self._facts.add_result(message, answer)
        self._results.append(added)
        self._show(added)

    def _show(self, message: Message) -> None:
        self._added.append(message)
        self.emit(ev.MessageStart(message=message))
        self.emit(ev.MessageEnd(message=message))

"""One run of the loop: what comes next, what is stored, what listeners are told; every decision of the loop is here.

Never waits, neither for a model nor for a tool: it says what it wants (`Ask`, `Calls`, `Compact`) and hears what came.
The loop comes in, with one driver for blocking and one for asynchronous code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from interlingua import InterlinguaError
from interlingua.types.blocks import ToolUseBlock
from interlingua.types.messages import Message, MessageMetadata, MessageStatus, Role
from interlingua_sessions import events as ev
from interlingua_sessions.tools.answers import Answer, given_up
from interlingua_sessions.tools.reports import Answered, Misread, Progress, Report, Running, Taken
from interlingua_sessions.tools.toolbox import Toolbox
from interlingua_sessions.tools.wants import Ask, Calls, Compact, StopCause, Stopped, Want

if TYPE_CHECKING:
    from interlingua_sessions.session.api import Facts

_log = logging.getLogger("interlingua")
Listener: TypeAlias = Callable[[ev.AgentEvent], None]

_UNKNOWN_EFFECT = "interrupted while it ran; whether it took effect is unknown"


class Run:
    """The course of one run over a turn's facts.

    Args:
        facts: of the turn.
        toolbox: the tools.
        max_turns: how many answers at most.
        budget_usd: how much they may cost together; None for no limit.
        listen: told of every agent event.
    """

    def __init__(
        self, facts: Facts, toolbox: Toolbox, *, max_turns: int, budget_usd: Decimal | None, listen: Listener | None
    ) -> None:
        self.cancelled = False
        self._facts = facts
        self._toolbox = toolbox
        self._max_turns = max_turns
        self._budget = budget_usd
        self._tell = listen
        self._said: list[Message] = []
        self._turns = 0
        self._spent = Decimal(0)
        self._unpriced = False
        self._results: list[Message] = []
        self._early: dict[int, Answer] = {}
        self._next = 0
        self._asking = ""

    def emit(self, event: ev.AgentEvent) -> None:
        """Tell the listener, where there is one."""
        if self._tell is not None:
            self._tell(event)

    def course(self) -> Generator[Want, Message | None, Stopped]:
        """Yield what is wanted next; an answer is sent in, or the error there was instead is thrown in."""
        self.emit(ev.AgentStart())
        try:
            self.emit(ev.TurnStart())
            last, calls = self._left_over()
            if last is not None:
                yield from self._answer(last, calls)
                self.emit(ev.TurnEnd(message=last, tool_results=self._results))
                self.emit(ev.TurnStart())
            for message in self._questions():
                self._show(message)
            return (yield from self._turn_by_turn())
        finally:
            self.emit(ev.AgentEnd(messages=self._said))

    def _turn_by_turn(self) -> Generator[Want, Message | None, Stopped]:
        while True:
            self._results = []
            try:
                answer = yield Ask()
            except InterlinguaError as error:
                if isinstance(error.partial, Message):
                    self._said.append(error.partial)
                    self.emit(ev.MessageEnd(message=error.partial))
                    self.emit(ev.TurnEnd(message=error.partial, tool_results=()))
                raise
            assert answer is not None  # noqa: S101  that is what Ask wants
            self._note(answer)
            calls = answer.tool_calls() if answer.metadata.status is MessageStatus.COMPLETE else []
            if calls:
                yield from self._answer(answer, calls)
            self.emit(ev.TurnEnd(message=answer, tool_results=self._results))
            cause = self._cause(answer, asked=bool(calls))
            if cause is not None:
                return Stopped(cause=cause, message=answer, turns=self._turns, spent_usd=self._spent)
            yield Compact()
            self.emit(ev.TurnStart())

    def take(self, report: Report) -> None:
        """Take a report of the calls that run."""
        if isinstance(report, Answered):
            self._answered(report.place, report.answer)
            return
        call = report.call
        about = {"tool_call_id": call.id, "tool_name": call.name}
        if isinstance(report, Taken):
            self.emit(ev.ToolExecutionStart(args=call.input, **about))
        elif isinstance(report, Running):
            self._facts.store.update_tool_call(call.id, started_at=report.at)
        elif isinstance(report, Progress):
            self.emit(ev.ToolExecutionUpdate(args=call.input, partial_result=report.partial, **about))
        else:
            self._observe(report)

    def _left_over(self) -> tuple[Message | None, list[ToolUseBlock]]:
        """Return the message the history ends with and its calls without answer, if it ends so: a process died."""
        answered: set[str] = set()
        for message in reversed(self._facts.messages):
            if message.role is Role.TOOL:
                answered |= {result.tool_use_id for result in message.tool_results()}
                continue
            whole = message.role is Role.ASSISTANT and message.metadata.status is MessageStatus.COMPLETE
            calls = [call for call in message.tool_calls() if call.id not in answered] if whole else []
            return (message, calls) if calls else (None, [])
        return None, []

    def _questions(self) -> list[Message]:
        """Return what the user said last, for listeners."""
        said: list[Message] = []
        for message in reversed(self._facts.messages):
            if message.role is not Role.USER:
                break
            said.insert(0, message)
        return said

    def _note(self, answer: Message) -> None:
        self._turns += 1
        usage = answer.metadata.usage
        if usage is None or usage.cost_usd is None:
            self._unpriced = True
        else:
            self._spent += usage.cost_usd
        self._said.append(answer)
        self.emit(ev.MessageEnd(message=answer))

    def _cause(self, answer: Message, *, asked: bool) -> StopCause | None:
        if self.cancelled or answer.metadata.status is MessageStatus.CANCELLED:
            return StopCause.CANCELLED
        if not asked:
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

    def _answer(self, message: Message, calls: Sequence[ToolUseBlock]) -> Generator[Want, Message | None, None]:
        """Have calls answered; those that ran already when a process died, and may have changed something, are not."""
        self._asking, self._results = message.id, []
        left = []
        for call in calls:
            if self._was_broken_off(call):
                self._store(given_up(call, _UNKNOWN_EFFECT, at=datetime.now(UTC)))
            else:
                left.append(call)
        self._early, self._next = {}, 0
        if left:
            yield Calls(tuple(left))

    def _was_broken_off(self, call: ToolUseBlock) -> bool:
        tool = self._toolbox.get(call.name)
        return tool is not None and tool.is_exclusive and self._facts.store.tool_call(call.id).is_running

    def _answered(self, place: int, answer: Answer) -> None:
        """Store answers in the order of the calls, each as soon as those before it are there.

        Ctrl-C may strike anywhere in here; the answer then comes once more, and is not stored twice.
        """
        call, result = answer.call, answer.result
        if place in self._early and self._facts.store.tool_call(call.id).result_message_id is not None:
            self._next = max(self._next, place + 1)
            return
        self.emit(
            ev.ToolExecutionEnd(tool_call_id=call.id, tool_name=call.name, result=result, is_error=result.is_error)
        )
        self._early[place] = answer
        while (ready := self._early.get(self._next)) is not None:
            self._store(ready)
            self._next += 1

    def _store(self, answer: Answer) -> None:
        call, store = answer.call, self._facts.store
        if answer.whole is not None:
            store.keep_result(answer.whole)
        store.update_tool_call(call.id, status=answer.phase.stored, completed_at=answer.ended_at, error=answer.error)
        message = Message(
            role=Role.TOOL,
            content=(answer.result,),
            metadata=MessageMetadata(parent_tool_use_id=call.id),
            session_id=self._facts.id,
        )
        stored = self._facts.add(message)
        self._results.append(stored)
        self._show(stored)

    def _show(self, message: Message) -> None:
        self._said.append(message)
        self.emit(ev.MessageStart(message=message))
        self.emit(ev.MessageEnd(message=message))

    def _observe(self, report: Misread) -> None:
        """Tell observers what the client could not see: it has told them of inputs that do not fit the schema."""
        self._facts.observe(
            {
                "type": "tool_input_invalid",
                "session_id": self._facts.id,
                "message_id": self._asking,
                "tool_use_id": report.call.id,
                "tool": report.call.name,
                "path": "",
                "message": report.message,
            }
        )

"""One run of the agent loop: asks, runs the calls and asks again, until the model is done or a limit is reached."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from itertools import takewhile
from typing import Any, Protocol, TypeAlias

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.errors import RejectedAnswerError
from interlingua.output import OutputPlan
from interlingua.plugins import InstrumentedWork, run_without_waiting
from interlingua.types import (
    Message,
    MessageStatus,
    Role,
    StopReason,
    ToolDefinition,
    ToolUseBlock,
    Usage,
    changes_in,
)
from interlingua_agents.calls import CallResults, ToolLimits, unanswered_calls
from interlingua_agents.events import MessageEnd, MessageStart, RunEnd, RunEvent, RunStart, TurnEnd, TurnStart
from interlingua_agents.protocols import Compactor, ConversationPort
from interlingua_agents.results import (
    CallDecision,
    Defer,
    RunResult,
    RunStop,
    StopCause,
    set_messages_of,
)
from interlingua_agents.run_events import Listener, RunEvents
from interlingua_agents.tools import Confirmation, Policy, Toolbox
from interlingua_agents.typed_output import OutputSteps

_log = logging.getLogger("interlingua")
Confirm: TypeAlias = Callable[[Confirmation], bool | Awaitable[bool]]
_EXHAUSTED: Any = object()
_DONE_BY = (StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.TOOL_USE, StopReason.REFUSAL)


@attrs.frozen(kw_only=True)
class LoopSettings:
    """The settings of an `AgentLoop`, whose arguments describe them."""

    toolbox: Toolbox
    max_turns: int
    budget_usd: Decimal | None
    limits: ToolLimits
    policy: Policy | None
    confirm: Confirm | Defer | None
    decode_strings: bool
    listen: Listener | None
    on_stop: Callable[[RunStop], None] | None
    compactor: Compactor | None
    name: str
    description: str


@attrs.frozen(kw_only=True)
class PriorMessages:
    """The state of a conversation before the question of a run.

    Attributes:
        known: ids of messages that the conversation had; `AgentRun.messages` leaves them out.
        settled: results that were added for calls that an earlier run left open.
    """

    known: frozenset[str] = frozenset()
    settled: tuple[Message, ...] = ()


class RunEffects(Protocol):
    """The effects of a run: asking the model, running calls, compacting. Blocking effects never suspend.

    Generators yield when there may be new events, if events are collected.
    """

    answer: Message
    """The model's last answer, set when `ask` ends."""

    def ask(
        self, run: AgentRun, tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> AsyncGenerator[None, None]:
        """Get the model's next answer, streamed if a listener wants its growth and the model can stream.

        Args:
            run: shows the answer.
            tools: the tools that the model may call.
            options: options of this request, overriding the turn's.

        Raises:
            InterlinguaError: no answer.
        """

    def run_calls(self, run: AgentRun, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        """Run the calls of an answer and pass their reports to `run.calls.take`."""

    async def compact(self) -> None:
        """Compact the context if the loop has a compactor."""


class AgentRun:
    """One run over a turn: its state, and the loop itself, which runs while `events` is iterated over.

    Args:
        conversation: the turn.
        effects: ask the model and run the calls.
        settings: the loop's.
        running: the runs in progress; contains the run while its events are iterated over.
        streamed: whether `events` yields events, and answers are streamed.
        decisions: decisions about the calls at the end of the history.
        plan: how the model is asked for a typed answer; None for text.
        retries: number of further attempts after an answer that does not fit the type.
        prior: the state of the conversation before the question.

    Attributes:
        cancelled: True once `cancel` was called.
        decisions: decisions by call id.
        uncertain: ids of calls that an earlier run started without reporting their end.
        answers: the answers so far.
        calls: adds the results of calls.
        shown: emits the events.
    """

    def __init__(
        self,
        conversation: ConversationPort,
        effects: RunEffects,
        settings: LoopSettings,
        running: set[AgentRun],
        *,
        streamed: bool = False,
        decisions: Sequence[CallDecision] = (),
        plan: OutputPlan[Any] | None = None,
        retries: int = 0,
        prior: PriorMessages | None = None,
    ) -> None:
        self.cancelled = False
        self.decisions = {decision.call_id: decision for decision in decisions}
        self.uncertain: frozenset[str] = frozenset()
        self.answers: list[Message] = []
        self._conversation = conversation
        self._effects = effects
        self._settings = settings
        self._running = running
        self._plan = plan
        self._output = None if plan is None else OutputSteps(plan, retries)
        self.shown = RunEvents(settings.listen, self._output, collected=streamed)
        self.calls = CallResults(conversation, settings.toolbox, self.shown, self._add)
        self._prior = prior or PriorMessages()
        self._added: list[Message] = []
        self._failed: list[Message] = []  # typed answers that did not fit, with their corrections
        self._turn = 0
        self._spent = Decimal(0)
        self._unpriced = False
        self._stop_work: Callable[[], None] = _do_nothing
        self._cause: StopCause | None = None
        self._result: RunResult[Any] | None = None

    @property
    def turn(self) -> int:
        """Number of the answer that is made or was made last, from 1; 0 for calls that an earlier run left open."""
        return self._turn

    @property
    def messages(self) -> tuple[Message, ...]:
        """Messages that the run has added, the user's message first, without typed answers that did not fit."""
        hidden = self._prior.known | {message.id for message in self._failed}
        return (*self._prior.settled, *(message for message in self._added if message.id not in hidden))

    @property
    def result(self) -> RunResult[Any]:
        """The result of the run.

        Raises:
            CallerError: the run has not ended, or was left before its end.
        """
        if self._result is None:
            raise CallerError("the run has no result: iterate over all its events first")
        return self._result

    def cancel(self) -> None:
        """Stop the run; any thread may call it."""
        self.cancelled = self.shown.muted = True
        self._stop_work()

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Set the function that `cancel` calls; call it now if the run is already cancelled."""
        self._stop_work = stop
        if self.cancelled:
            stop()

    def events_blocking(self) -> Generator[list[RunEvent], None, None]:
        """`events` for blocking code, whose effects never suspend."""
        events = self.events()
        try:
            while (batch := run_without_waiting(anext(events, _EXHAUSTED))) is not _EXHAUSTED:
                yield batch
        finally:
            run_without_waiting(events.aclose())

    async def events(self) -> AsyncGenerator[list[RunEvent], None]:
        """Run, and yield lists of new events. Without streaming the lists are empty.

        Plugins that wrap the run (hook `instrument`) are current while it works, not while its caller does.

        Raises:
            InterlinguaError: no answer; `messages_of(error)` returns the messages added before.
        """
        work = self._begin_work()
        failure: BaseException | None = None
        self._running.add(self)
        try:
            async with aclosing(self._loop()) as batches:
                if work is None:
                    async for events in batches:
                        yield events
                    return
                while True:
                    with work:
                        worked = await anext(batches, None)
                    if worked is None:
                        return
                    yield worked
        except BaseException as error:
            failure = error
            if isinstance(error, InterlinguaError):
                set_messages_of(error, self.messages)
            if self._result is None:
                self.shown.emit(RunEnd(turn=self.turn, messages=tuple(self._added), error=error))
            raise
        finally:
            self._running.discard(self)
            self._stop_work = _do_nothing
            if work is not None:
                self._end_work(work, failure)

    async def _loop(self) -> AsyncGenerator[list[RunEvent], None]:
        self.shown.emit(RunStart())
        last, open_calls = unanswered_calls(self._conversation.messages)
        self._check_decisions(open_calls)
        last = self._begin_first_turn(last)
        if last is not None and open_calls:  # an earlier run left them open
            self.calls.begin(last, 0)
            self.uncertain = self.calls.find_uncertain(open_calls)
            async with aclosing(self._effects.run_calls(self, open_calls)) as moments:
                async for _ in moments:
                    yield self.shown.take()
            self._end_resumed_turn(last)
        if self._cause is None:
            self._show_question()
        while self._cause is None:
            yield self.shown.take()
            if self.cancelled and self.answers:  # cancelled between two answers
                self._cause = StopCause.CANCELLED
                break
            tools, options = self._next_request(resumed=last is not None)
            try:
                async with aclosing(self._effects.ask(self, tools, options)) as moments:
                    async for _ in moments:
                        yield self.shown.take()
                answer = self._effects.answer
            except InterlinguaError as error:
                answer = self._rejected_answer(error)
            self._count(answer)
            calls, own = self._split_calls(answer)
            self.calls.begin(answer, self.turn)
            if calls:
                try:
                    async with aclosing(self._effects.run_calls(self, calls)) as moments:
                        async for _ in moments:
                            yield self.shown.take()
                except BaseException:
                    self.calls.cancel(own)
                    raise
            self._end_turn(answer, calls, own)
            if self._cause is None:
                yield self.shown.take()
                await self._effects.compact()
                self._begin_turn(self.turn + 1)
        self._finish(self.answers[-1] if self.answers else last)
        self.shown.emit(RunEnd(turn=self.turn, messages=tuple(self._added), result=self._result))
        yield self.shown.take()

    def _begin_turn(self, turn: int) -> None:
        self._turn = turn
        self.shown.emit(TurnStart(turn=turn))

    def _end_resumed_turn(self, last: Message) -> None:
        self.shown.emit(TurnEnd(message=last, tool_results=tuple(self.calls.messages), turn=0))
        if self.calls.pending or self.cancelled:
            self._cause = self._stop_cause(last, called=True)
        else:
            self._begin_turn(1)

    def _begin_first_turn(self, last: Message | None) -> Message | None:
        """Return the answer whose calls are open, or the final answer of an earlier run, which ends this run too."""
        finished = self._find_finished() if last is None else None
        if finished is None:
            self._begin_turn(0 if last else 1)
            return last
        self._cause = StopCause.DONE
        return finished

    def _find_finished(self) -> Message | None:
        """Return the answer that ended an earlier run, so that nothing is asked again; otherwise None."""
        messages = self._conversation.messages
        own = None if self._plan is None else self._plan.tool
        results = takewhile(lambda one: own is not None and one.role is Role.TOOL, reversed(messages))
        place = len(messages) - len(list(results)) - 1
        answer = messages[place] if place >= 0 else None
        if answer is None or answer.role is not Role.ASSISTANT or answer.stop_reason not in _DONE_BY:
            return None
        if answer.status is not MessageStatus.COMPLETE or any(call.name != own for call in answer.tool_calls):
            return None
        if self._plan is not None:
            output = OutputSteps(self._plan, 0)
            output.begin()
            if not output.read(answer, answer.tool_calls, blocked=False).taken:
                return None
            self._output = output
        return answer

    def _check_decisions(self, calls: Sequence[ToolUseBlock]) -> None:
        if unknown := self.decisions.keys() - {call.id for call in calls}:
            raise CallerError(f"decisions name calls that are not pending: {', '.join(sorted(unknown))}")

    # the conversation

    def _show_question(self) -> None:
        """Emit the user's messages at the end of the history."""
        question = takewhile(lambda one: one.role is Role.USER, reversed(self._conversation.messages))
        for message in reversed(list(question)):
            self._add(message)

    def _next_request(self, *, resumed: bool) -> tuple[Sequence[ToolDefinition], dict[str, Any]]:
        """Return the tools of the next request, and its options that differ from the turn's.

        A `tool_choice` that the caller forces holds for the first answer only: no run would end otherwise. The last
        answer before the limit makes no calls if the model accepts that; it still returns a typed answer.
        """
        plan = self._plan
        if self._output is not None:
            self._output.begin()
        tools = self._settings.toolbox.definitions if plan is None else plan.tools
        if added := self._added_later():
            tools = tuple([tool for tool in tools if tool not in added])
        options: dict[str, Any] = {} if plan is None else dict(plan.options)
        turns = len(self.answers)
        is_last = turns and turns + 1 == self._settings.max_turns
        if turns == 0 and not resumed and self._conversation.options.get("tool_choice") is not None:
            options.pop("tool_choice", None)
        elif is_last and plan is not None and plan.tool:
            tools = tuple([tool for tool in tools if tool.name == plan.tool])
        elif tools and (turns or resumed):
            options.setdefault("tool_choice", None)
            if is_last:
                options["tool_choice"] = "none"
        return tools, options

    def _added_later(self) -> list[ToolDefinition]:
        """Return the tools that a change within the conversation adds: they are declared there, not in front."""
        changes = changes_in(self._conversation.messages)
        return [tool for change in changes for tool in change.tools_added]

    def _rejected_answer(self, error: InterlinguaError) -> Message:
        """Return the partial answer of an error if it counts as an attempt at a typed answer; otherwise keep it.

        Raises:
            InterlinguaError: the same error, in every other case.
        """
        answer = error.partial
        if not isinstance(answer, Message):
            raise error
        if self._output is not None and isinstance(error, RejectedAnswerError):
            return answer
        if answer.content:  # an empty answer is not kept
            self._added.append(answer)
        self.shown.emit(MessageEnd(turn=self.turn, message=answer, error=error))
        self.shown.emit(TurnEnd(turn=self.turn, message=answer))
        raise error

    def _count(self, answer: Message) -> None:
        self.answers.append(answer)
        usage = answer.metadata.usage
        if usage is None or usage.cost_usd is None:
            self._unpriced = True
        else:
            self._spent += usage.cost_usd
        self._added.append(answer)
        self.shown.emit(MessageEnd(turn=self.turn, message=answer))

    def _is_whole(self, answer: Message) -> bool:
        status = answer.metadata.status
        return status is MessageStatus.COMPLETE or (self._output is not None and status is MessageStatus.ERROR)

    def _split_calls(self, answer: Message) -> tuple[list[ToolUseBlock], list[ToolUseBlock]]:
        """Return the calls to run, and the calls that are the typed answer."""
        calls = answer.tool_calls if self._is_whole(answer) else []
        tool = None if self._plan is None else self._plan.tool
        return [call for call in calls if call.name != tool], [call for call in calls if call.name == tool]

    def _end_turn(self, answer: Message, calls: Sequence[ToolUseBlock], own: Sequence[ToolUseBlock]) -> None:
        """Read a typed answer, and set the reason to stop if there is one."""
        whole = self._is_whole(answer)
        taken = whole and self._take_output(answer, calls, own)
        self.shown.emit(TurnEnd(message=answer, tool_results=tuple(self.calls.messages), turn=self.turn))
        called = bool(calls or own) or (self._plan is not None and whole)
        self._cause = StopCause.DONE if taken else self._stop_cause(answer, called=called)

    def _take_output(self, answer: Message, calls: Sequence[ToolUseBlock], own: Sequence[ToolUseBlock]) -> bool:
        """Read a typed answer and send the model corrections if it does not fit; return whether it was accepted.

        An answer with other calls is accepted if no call failed and no call is pending.
        """
        if self._output is None or (calls and not own):
            return False
        failed = self.calls.pending or any(
            one.is_error for message in self.calls.messages for one in message.tool_results
        )
        reply = self._output.read(answer, own, blocked=bool(calls and failed))
        for one in reply.results:
            self.calls.add(one)
        corrections = [self._conversation.add(message) for message in reply.corrections]
        for message in corrections:
            self._add(message)
        if reply.is_attempt and not reply.taken:
            # the attempt before this one is not sent again, so that requests do not grow
            self._conversation.hidden |= {message.id for message in self._failed}
            if not calls:
                self._failed += [answer, *self.calls.messages, *corrections]
        if reply.error is not None:
            raise reply.error
        return reply.taken

    def _stop_cause(self, answer: Message, *, called: bool) -> StopCause | None:
        if self.cancelled or answer.metadata.status is MessageStatus.CANCELLED:
            return StopCause.CANCELLED
        if not called:
            return StopCause.DONE
        if self.calls.pending:
            waits = any(one.reason != "external" for one in self.calls.pending)
            return StopCause.APPROVAL if waits else StopCause.EXTERNAL
        if any(result.terminate for message in self.calls.messages for result in message.tool_results):
            return StopCause.TERMINATED
        if len(self.answers) >= self._settings.max_turns:
            return StopCause.TURN_LIMIT
        budget = self._settings.budget_usd
        if budget is None:
            return None
        if self._unpriced:
            _log.warning(
                "the run stops: the price of %s is unknown, so budget_usd cannot be kept", self._conversation.model
            )
        return StopCause.BUDGET if self._unpriced or self._spent >= budget else None

    def _finish(self, last: Message | None) -> None:
        assert self._cause is not None  # noqa: S101  the loop ends with a reason,
        assert last is not None  # noqa: S101  after an answer
        stop = RunStop(cause=self._cause, message=last, turns=len(self.answers), spent_usd=self._spent)
        if self._settings.on_stop is not None:
            self._settings.on_stop(stop)
        value: dict[str, Any] = {}
        if self._output is None:
            value = {"value": stop.message.text}
        elif self._output.is_taken:
            value = {"value": self._output.value}
        self._result = RunResult(
            **value,
            messages=self.messages,
            usage=_sum_usage(self.answers),
            stop=stop,
            pending=tuple(self.calls.pending),
            whole_results=dict(self.calls.whole),
        )

    def _add(self, message: Message) -> None:
        self._added.append(message)
        self.shown.emit(MessageStart(turn=self.turn, message=message))
        self.shown.emit(MessageEnd(turn=self.turn, message=message))

    # plugins

    def _begin_work(self) -> InstrumentedWork | None:
        conversation = self._conversation
        facts = {
            "name": self._settings.name or None,
            "description": self._settings.description or None,
            "model": conversation.model,
            "session_id": conversation.id,
            "messages": conversation.messages,
            "tools": self._settings.toolbox.definitions,
        }
        return conversation.instrument("invoke_agent", facts)

    def _end_work(self, work: InstrumentedWork, error: BaseException | None) -> None:
        usages = [answer.metadata.usage for answer in self.answers if answer.metadata.usage is not None]
        facts = {"turns": len(self.answers), "tool_calls": self.calls.called, "usages": usages}
        work.end(self.answers[-1] if self.answers else None, error, facts)


def _do_nothing() -> None:
    pass


_SUMMED = (
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens", "audio_input_tokens", "cached_audio_input_tokens", "reasoning_tokens",
    "latency_ms",
)  # fmt: skip


def _sum_usage(answers: Iterable[Message]) -> Usage:
    """Return the sum of the usage of several answers."""
    used = [answer.metadata.usage or Usage() for answer in answers]
    total: dict[str, Any] = {}
    for name in _SUMMED:
        counts = [count for one in used if (count := getattr(one, name)) is not None]
        total[name] = sum(counts) if counts else None
    units: dict[str, Any] = {}
    for one in used:
        for name, count in (one.extra_units or {}).items():
            units[name] = units.get(name, 0) + count
    costs = [one.cost_usd for one in used]
    total["cost_usd"] = sum((cost for cost in costs if cost is not None), Decimal(0)) if None not in costs else None
    return Usage(**total, extra_units=units or None)

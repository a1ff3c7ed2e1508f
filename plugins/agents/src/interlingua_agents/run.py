"""One run of the agent loop as a generator: what comes next, what is stored, which events are emitted."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.errors import RejectedAnswerError
from interlingua.output import OutputPlan
from interlingua.plugins import InstrumentedWork
from interlingua.types import (
    Message,
    MessageStatus,
    Role,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolDefinition,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_agents import events as ev
from interlingua_agents.calls import (
    UNKNOWN_EFFECT,
    Answer,
    Answered,
    CallReport,
    LeftOpen,
    Misread,
    Progress,
    Running,
    Taken,
    add_answer,
    answer_cancelled,
    unanswered_calls,
)
from interlingua_agents.results import (
    AgentRun,
    Decision,
    OutputPartial,
    Pending,
    RunEvent,
    StopCause,
    Stopped,
    ToolEnd,
    ToolStart,
    ToolUpdate,
)
from interlingua_agents.tools import Toolbox
from interlingua_agents.typed_output import OutputSteps

if TYPE_CHECKING:
    from interlingua_agents.protocols import Facts


@attrs.frozen
class Ask:
    """The model's next answer is wanted, with these tools, and these options instead of the turn's own."""

    tools: Sequence[ToolDefinition]
    options: Mapping[str, Any]


@attrs.frozen
class Compact:
    """The context is to be compacted where needed, before the model is asked again."""


@attrs.frozen
class Calls:
    """These calls are to be run, and their reports handed to `take`."""

    calls: tuple[ToolUseBlock, ...]


_T = TypeVar("_T")
RunStep: TypeAlias = Ask | Compact | Calls
_log = logging.getLogger("interlingua")
Listener: TypeAlias = Callable[[ev.AgentEvent], None]
_NOT_READ = "cancelled before it was taken"


class Run:
    """One run over a turn: `steps` says what is to be done next, a driver does it.

    Nothing in here waits, for a model or for a tool.

    Args:
        facts: the turn.
        toolbox: the tools.
        max_turns: how many answers at most.
        budget_usd: how much they may cost together; None for no limit.
        listen: called with every agent event.
        decisions: what a person decided about the calls that the history ends with.
        collect: whether `take_events` is called, and the answers are to be streamed.
        plan: how a typed answer is asked for; None for text.
        retries: how often a typed answer that does not fit is asked for again.
    """

    def __init__(
        self,
        facts: Facts,
        toolbox: Toolbox,
        *,
        max_turns: int,
        budget_usd: Decimal | None,
        listen: Listener | None,
        decisions: Sequence[Decision] = (),
        collect: bool = False,
        plan: OutputPlan[Any] | None = None,
        retries: int = 0,
    ) -> None:
        self._plan = plan
        self._output = None if plan is None else OutputSteps(plan, retries)
        self.cancelled = False
        self.decisions = {decision.call_id: decision for decision in decisions}
        self.pending: list[Pending] = []
        self.answers: list[Message] = []
        self.known: frozenset[str] = frozenset()  # ids of messages that `messages` leaves out
        self.settled: tuple[Message, ...] = ()  # what was added before the question
        self._failed: list[Message] = []  # typed answers that did not fit, with their corrections
        self._collect = collect
        self._events: list[RunEvent] = []
        self._began: dict[str, datetime] = {}
        self._facts = facts
        self._toolbox = toolbox
        self._max_turns = max_turns
        self._budget = budget_usd
        self._listen = listen
        self._added: list[Message] = []
        self._turns = 0
        self._whole: dict[str, ToolResultBlock] = {}
        self._asking = 0
        self._called = 0
        self._spent = Decimal(0)
        self._unpriced = False
        self._results: list[Message] = []
        self._waiting: dict[int, Answer | None] = {}
        self._next = 0
        self._message_id = ""

    @property
    def turn(self) -> int:
        """Which answer is being made or was made last, from 1."""
        return self._turns + self._asking

    @property
    def is_streamed(self) -> bool:
        """True when somebody wants to see how the answers grow."""
        return self._collect or self._listen is not None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the run has added so far, the user's message first; typed answers that did not fit are left out."""
        out = self.known | {message.id for message in self._failed}
        return (*self.settled, *(message for message in self._added if message.id not in out))

    @property
    def workspace(self) -> str:
        """The folder the conversation works in; empty where it has none."""
        return self._facts.workspace

    def instrument_run(self, name: str, description: str) -> InstrumentedWork | None:
        """Begin the run, for plugins that put something around it."""
        facts = self._facts
        about = {
            "name": name or None,
            "description": description or None,
            "model": facts.model,
            "session_id": facts.id,
            "messages": facts.messages,
            "tools": self._toolbox.definitions,
        }
        return facts.instrument("invoke_agent", about)

    def end_run(self, activity: InstrumentedWork, error: BaseException | None) -> None:
        """Tell such plugins what came of the run."""
        usages = [answer.metadata.usage for answer in self.answers if answer.metadata.usage is not None]
        facts = {"turns": self._turns, "tool_calls": self._called, "usages": usages}
        activity.end(self.answers[-1] if self.answers else None, error, facts)

    def instrument_call(self, call: ToolUseBlock, tool: ToolDefinition) -> InstrumentedWork | None:
        """Begin a call of a tool's function, for plugins that put something around it."""
        self._called += 1
        return self._facts.instrument("execute_tool", {"call": call, "tool": tool, "session_id": self._facts.id})

    def emit(self, event: ev.AgentEvent) -> None:
        """Pass an event to the listener, where there is one, and collect what a streamed run yields of it."""
        if self._listen is not None:
            self._listen(event)
        if not self._collect:
            return
        if isinstance(event, ev.TurnStart | ev.TurnEnd):
            self._events.append(event)

    def emit_growth(self, event: ev.AssistantMessageEvent) -> None:
        """Emit how an answer grows; its end is emitted once it is stored."""
        if self._listen is not None:
            if event.type == "start":
                self._listen(ev.MessageStart(message=event.partial))
            elif event.type not in ("done", "error"):
                self._listen(ev.MessageUpdate(assistant_message_event=event))
        if self._collect and (type(event) is ev.TextDelta or type(event) is ev.ThinkingDelta):
            self._events.append(event)

    def collect(self, event: RunEvent) -> None:
        """Add an event to those that a streamed run yields."""
        if self._collect:
            self._events.append(event)

    def take_events(self) -> list[RunEvent]:
        """Return the events since the last time, for a streamed run."""
        events, self._events = self._events, []
        return events

    def show_whole(self, answer: Message) -> None:
        """Show an answer that was not streamed."""
        self.emit(ev.MessageStart(message=answer))
        for at, block in enumerate(answer.content):
            if isinstance(block, TextBlock | ThinkingBlock) and block.text:
                make = ev.TextDelta if isinstance(block, TextBlock) else ev.ThinkingDelta
                growing = _Whole(answer, self.turn)
                self.collect(make(growing=growing, seen=0, content_index=at, delta=block.text))

    def look(self, event: StreamEvent) -> None:
        """Look at an event of a streamed answer, for what there is of a typed one."""
        if self._collect and self._output is not None and (part := self._output.feed(event)) is not None:
            self.collect(OutputPartial(turn=self.turn, value=part.value, closed=part.closed))

    def result(self, stopped: Stopped) -> AgentRun[Any]:
        """Return what the run came to."""
        if self._output is None:
            given: dict[str, Any] = {"output": stopped.message.text}
        else:
            given = {"output": self._output.value} if self._output.is_taken else {}
        return AgentRun(
            **given,
            messages=self.messages,
            usage=sum_usage(self.answers),
            stop=stopped,
            pending=tuple(self.pending),
            whole_results=dict(self._whole),
        )

    def steps(self) -> Generator[RunStep, Message | None, Stopped]:
        """Yield what is to be done next; an `Ask` is sent its answer (None: cancelled), or the error is thrown in."""
        last, calls = unanswered_calls(self._facts.messages)
        if unknown := self.decisions.keys() - {call.id for call in calls}:
            raise CallerError(f"decisions about calls that do not wait at the end of the history: {', '.join(unknown)}")
        self.emit(ev.AgentStart())
        try:
            self.emit(ev.TurnStart(turn=0 if last else 1))
            if last is not None:
                yield from self._run_calls(last, self._without_started(calls))
                self.emit(ev.TurnEnd(message=last, tool_results=tuple(self._results), turn=0))
                if self.pending or self.cancelled:
                    return self._end(self._stop_cause(last, called=True) or StopCause.DONE, last)
                self.emit(ev.TurnStart(turn=1))
            question = takewhile(lambda one: one.role is Role.USER, reversed(self._facts.messages))
            for message in reversed(list(question)):
                self._show(message)
            return (yield from self._loop(resumed=last is not None))
        finally:
            self.emit(ev.AgentEnd(messages=tuple(self._added)))

    def _loop(self, *, resumed: bool) -> Generator[RunStep, Message | None, Stopped]:
        while True:
            self._results = []
            self._asking = 1
            try:
                answer = yield self._next_ask(resumed=resumed)
            except InterlinguaError as error:
                if not self._take_partial(error):
                    raise
                answer = error.partial
            if answer is None:  # cancelled between two answers
                return self._end(StopCause.CANCELLED, self.answers[-1])
            self._count(answer)
            status = answer.metadata.status
            whole = status is MessageStatus.COMPLETE or (self._output is not None and status is MessageStatus.ERROR)
            calls = answer.tool_calls if whole else []
            others = [call for call in calls if self._plan is None or call.name != self._plan.tool]
            if others:
                try:
                    yield from self._run_calls(answer, others)
                except BaseException:  # nobody wants the rest
                    now = datetime.now(UTC)
                    for call in calls:
                        if call not in others:
                            self._add_result(answer_cancelled(call, _NOT_READ, at=now))
                    raise
            taken = whole and self._take_output(answer, calls, others)
            self.emit(ev.TurnEnd(message=answer, tool_results=tuple(self._results), turn=self.turn))
            called = bool(calls) or (self._plan is not None and whole)
            cause = StopCause.DONE if taken else self._stop_cause(answer, called=called)
            if cause is not None:
                return self._end(cause, answer)
            yield Compact()
            self.emit(ev.TurnStart(turn=self._turns + 1))

    def _take_partial(self, error: InterlinguaError) -> bool:
        """Keep what an error has of an answer; return whether it counts as one, of which a typed one is made."""
        answer = error.partial
        if not isinstance(answer, Message):
            return False
        if answer.content:  # an empty one is not kept
            self._added.append(answer)
        self.emit(ev.MessageEnd(message=answer))
        if self._output is not None and isinstance(error, RejectedAnswerError):
            return True
        self.emit(ev.TurnEnd(message=answer, tool_results=(), turn=self.turn))
        return False

    def _next_ask(self, *, resumed: bool) -> Ask:
        """Return the next step, with what it asks otherwise than the turn's options say.

        A choice of a tool that the caller forces holds for the first answer only: kept, no run would end. The last
        answer that the limit allows makes no calls where the model can be told so; it still gives a typed answer.
        """
        plan = self._plan
        if self._output is not None:
            self._output.begin()
        tools = self._toolbox.definitions if plan is None else plan.tools
        options: dict[str, Any] = {} if plan is None else dict(plan.options)
        last = self._turns and self._turns + 1 == self._max_turns
        if self._turns == 0 and not resumed and self._facts.options.get("tool_choice") is not None:
            options.pop("tool_choice", None)
        elif last and plan is not None and plan.tool:
            tools = tuple([tool for tool in tools if tool.name == plan.tool])
        elif tools and (self._turns or resumed):
            options.setdefault("tool_choice", None)
            if last:
                options["tool_choice"] = "none"
        return Ask(tools, options)

    def _take_output(self, answer: Message, calls: Sequence[ToolUseBlock], others: Sequence[ToolUseBlock]) -> bool:
        """Read a typed answer and tell the model what became of it; return whether it was taken.

        Beside other calls it is taken where none of them failed and none waits.
        """
        if self._output is None or (others and len(others) == len(calls)):
            return False
        failed = self.pending or any(one.is_error for message in self._results for one in message.tool_results)
        own = [call for call in calls if call not in others]
        reply = self._output.read(answer, own, blocked=bool(others and failed))
        for one in reply.results:
            self._add_result(one)
        corrections = [self._facts.add(message) for message in reply.corrections]
        for message in corrections:
            self._show(message)
        if reply.is_attempt and not reply.taken:
            self._leave_out(answer if not others else None, corrections)
        if reply.error is not None:
            raise reply.error
        return reply.taken

    def _leave_out(self, answer: Message | None, corrections: Sequence[Message]) -> None:
        """Note a typed answer that did not fit; the one before is not sent again, so that requests do not grow."""
        self._facts.hidden |= {message.id for message in self._failed}
        if answer is not None:
            results = [message for message in self._results if message not in corrections]
            self._failed += [answer, *results, *corrections]

    def _end(self, cause: StopCause, message: Message) -> Stopped:
        return Stopped(cause=cause, message=message, turns=self._turns, spent_usd=self._spent)

    def take(self, report: CallReport) -> None:
        """Take a report of the calls that run."""
        if isinstance(report, Answered):
            self._answered(report.place, report.answer)
            return
        if isinstance(report, LeftOpen):
            self._left_open(report.place, report.pending)
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
            self.collect(ToolStart(turn=self.turn, call=call, side_effects=effects))
        elif isinstance(report, Running):
            self._began[call.id] = report.at
            self._facts.start_call(call, report.at)
        elif isinstance(report, Progress):
            self.emit(ev.ToolExecutionUpdate(args=call.input, partial_result=report.partial, **about))
            self.collect(ToolUpdate(turn=self.turn, call=call, partial=report.partial))
        else:
            assert isinstance(report, Misread)  # noqa: S101  the last of them
            about = {"session_id": self._facts.id, "message_id": self._message_id, "tool_use_id": call.id}
            for broken in report.violations:  # without its message, which may quote the input
                place = {"tool": call.name, "path": broken.path, "rule": broken.rule}
                self._facts.observe({"type": "tool_input_invalid", **about, **place})

    def _count(self, answer: Message) -> None:
        self._turns += 1
        self._asking = 0
        self.answers.append(answer)
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
        if self.pending:
            waits = any(one.reason == "approval" for one in self.pending)
            return StopCause.APPROVAL if waits else StopCause.EXTERNAL
        if any(result.terminate for message in self._results for result in message.tool_results):
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
                self._add_result(answer_cancelled(call, UNKNOWN_EFFECT, at=datetime.now(UTC)))
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
        began = self._began.get(call.id)
        elapsed = None if began is None else (answer.ended_at - began).total_seconds()
        self.collect(ToolEnd(turn=self.turn, call=call, result=result, status=answer.phase, elapsed_s=elapsed))
        self._waiting[place] = answer
        self._add_ready()

    def _left_open(self, place: int, pending: Pending) -> None:
        if place not in self._waiting:
            self.pending.append(pending)
        self._waiting[place] = None
        self._add_ready()

    def _add_ready(self) -> None:
        while self._next in self._waiting:
            ready = self._waiting[self._next]
            if ready is not None:
                self._add_result(ready)
            self._next += 1

    def _add_result(self, answer: Answer) -> None:
        added = add_answer(self._facts, answer)
        if answer.whole is not None:
            self._whole[answer.call.id] = answer.whole
        self._results.append(added)
        self._show(added)

    def _show(self, message: Message) -> None:
        self._added.append(message)
        self.emit(ev.MessageStart(message=message))
        self.emit(ev.MessageEnd(message=message))


@attrs.frozen(kw_only=True)
class StartedRun:
    """A run that has begun.

    Attributes:
        run: its state.
        batches: does its steps when iterated over, and yields its events, those of one moment together; one that never
            suspends for blocking code.
        result: gives what it came to, after the last event.
        cancel: stops it; any thread may call it.
    """

    run: Run
    batches: AsyncGenerator[list[RunEvent], None]
    result: Callable[[], AgentRun[Any]]
    cancel: Callable[[], None]

    def still_shown(self, batch: list[RunEvent]) -> Iterator[RunEvent]:
        """Yield the events of a batch; nobody is shown more of an answer after they cancelled it."""
        for event in batch:
            if not (self.run.cancelled and isinstance(event, _GROWING)):
                yield event


_GROWING = (ev.TextDelta, ev.ThinkingDelta, OutputPartial)


def iterate_blocking(events: AsyncGenerator[_T, None]) -> Iterator[_T]:
    """Iterate over an asynchronous generator that never suspends, and close it."""
    proceed = events.__anext__
    try:
        while True:
            try:
                proceed().send(None)
            except StopIteration as end:  # as a coroutine returns
                yield end.value
            except StopAsyncIteration:
                return
            else:
                raise AssertionError("a blocking driver suspended")
    finally:
        run_without_waiting(events.aclose())


def run_without_waiting(body: Awaitable[_T]) -> _T:
    """Run something that never suspends."""
    work = body.__await__()
    try:
        next(work)
    except StopIteration as end:
        value: _T = end.value
        return value
    raise AssertionError("a blocking driver suspended")


_SUMMED = (
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens", "audio_input_tokens", "cached_audio_input_tokens", "reasoning_tokens",
    "latency_ms",
)  # fmt: skip


def sum_usage(answers: Iterable[Message]) -> Usage:
    """Add up what answers used."""
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


@attrs.frozen
class _Whole:
    """An answer that came at once, for events that show how answers grow."""

    message: Message
    turn: int

    def at(self, _seen: int) -> Message:
        return self.message

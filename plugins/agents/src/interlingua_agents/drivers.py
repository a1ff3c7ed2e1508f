"""Drives a run, blocking or asynchronously: asks the model, runs the calls, compacts between two answers."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, nullcontext, suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from types import NoneType
from typing import Any, TypeAlias, TypedDict, Unpack

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.errors import CapabilityError
from interlingua.output import OutputPlan
from interlingua.types import Message, StreamEvent, ToolDefinition, ToolUseBlock
from interlingua_agents.calls import AskPerson, CallBatch, CallReport, ToolLimits
from interlingua_agents.event_stream import AssistantView
from interlingua_agents.protocols import (
    AsyncCanonicalStream,
    AsyncSteps,
    AsyncStepStream,
    CanonicalStream,
    Compactor,
    Facts,
    Steps,
    StepStream,
)
from interlingua_agents.results import DEFER, AgentRun, Decision, Defer, RunEnd, RunEvent, Stopped, set_messages_of
from interlingua_agents.run import Ask, Calls, Listener, Run, RunStep, StartedRun, iterate_blocking
from interlingua_agents.tools import Confirmation, Policy, Tool, Toolbox

Confirm: TypeAlias = Callable[[Confirmation], bool | Awaitable[bool]]
MakeBatch: TypeAlias = Callable[[AskPerson | None, Callable[[CallReport], None]], CallBatch]
_LOOK_UP = 0.5  # seconds; a signal that comes just before a lock is waited for is seen when the wait ends
_PATIENCE = 3.0  # seconds that an interrupted batch has to report how its calls ended


class RunSettings(TypedDict, total=False):
    """What one run has besides the loop's settings.

    Attributes:
        decisions: what a person decided about the calls that the history ends with.
        plan: how a typed answer is asked for.
        retries: how often one that does not fit is asked for again.
    """

    decisions: Sequence[Decision]
    plan: OutputPlan[Any] | None
    retries: int


class AgentLoop:
    """Tools with their callables, and how far a model may go with them: what a session takes as `tools`.

    One may serve many sessions, one after the other or at once.

    Args:
        tools: a toolbox, or tools to make one of. A definition alone is offered, and a call of it ends the run.
        max_turns: how many answers one run may have; the results of the last one are added, and it stops.
        budget_usd: what the answers of one run may cost together; checked after each. An answer of unknown cost ends
            the run as well: a budget that cannot be kept is not silently ignored.
        limits: how many calls run at once, how long one may take, how large a result may be.
        policy: which tools may run; by default those that only read may, and the others need consent.
        confirm: answers such a question, on the caller's thread, one at a time; for `run_async` it may be `async`.
            Without it such tools are refused, and the model reads why. `DEFER` leaves their calls open, which ends the
            run.
        decode_strings: read an object or an array that a model wrote as JSON text, before anybody is asked; otherwise
            such an input is refused, and the model reads why.
        listen: called with every agent event. With it answers are streamed, where the model can.
        on_stop: called with how a run ended.
        compactor: called before each answer after the first; before that the session calls its own.
        name: of the agent, for traces.
        description: of the agent, for traces.

    Raises:
        CallerError: `max_turns` is less than 1, `budget_usd` no number, or the tools make no toolbox.
    """

    def __init__(
        self,
        tools: Toolbox | Iterable[Tool | ToolDefinition],
        *,
        max_turns: int = 32,
        budget_usd: Decimal | float | str | None = None,
        limits: ToolLimits | None = None,
        policy: Policy | None = None,
        confirm: Confirm | Defer | None = None,
        decode_strings: bool = False,
        listen: Listener | None = None,
        on_stop: Callable[[Stopped], None] | None = None,
        compactor: Compactor | None = None,
        name: str = "",
        description: str = "",
    ) -> None:
        if max_turns < 1:
            raise CallerError("max_turns is at least 1: the first answer is one")
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.limits = limits or ToolLimits()
        self.compactor = compactor
        self.confirm = confirm
        self.listen = listen
        self._name, self._description = name, description
        self._max_turns = max_turns
        try:
            self._budget = None if budget_usd is None else Decimal(str(budget_usd))
        except InvalidOperation as error:
            raise CallerError(f"budget_usd is a number of US dollars, not {budget_usd!r}") from error
        self._decode_strings = decode_strings
        self._policy = policy
        self._on_stop = on_stop
        self._active: dict[Run, Callable[[], None]] = {}
        self._lock = threading.Lock()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is offered."""
        return self.toolbox.definitions

    def run(self, steps: Steps) -> Message:
        """Ask, run the calls, add their results and ask again until the model is done; returns the last answer.

        Raises:
            InterlinguaError: no answer; the history holds all that was done before.
        """
        started = self.start(steps)
        for _ in iterate_blocking(started.batches):
            pass
        return started.result().stop.message

    async def run_async(self, steps: AsyncSteps) -> Message:
        """As `run`. A cancelled task adds a result for every call before it ends."""
        started = self.start_async(steps)
        async with aclosing(started.batches) as batches:
            async for _ in batches:
                pass
        return started.result().stop.message

    def start(self, steps: Steps, *, streamed: bool = False, **more: Unpack[RunSettings]) -> StartedRun:
        """Return a run over a turn that begins when its events are iterated over.

        Args:
            steps: the turn.
            streamed: whether its events are wanted, and so the answers streamed.
            **more: what one run has besides: see `RunSettings`.
        """
        return self._started(_BlockingDriver(self, steps, self._new_run(steps, streamed, more)))

    def start_async(self, steps: AsyncSteps, *, streamed: bool = False, **more: Unpack[RunSettings]) -> StartedRun:
        """As `start`."""
        return self._started(_AsyncDriver(self, steps, self._new_run(steps, streamed, more)))

    def cancel(self) -> None:
        """Stop every run that is under way; any thread may call it.

        A streaming answer ends as CANCELLED, calls without a result get one that says so, and the runs return.
        """
        with self._lock:
            runs = list(self._active)
        for run in runs:
            self._cancel_run(run)

    def _started(self, driver: _Driver) -> StartedRun:
        run = driver.run
        return StartedRun(
            run=run, batches=self._batches(driver), result=driver.ended, cancel=lambda: self._cancel_run(run)
        )

    def _new_run(self, facts: Facts, streamed: bool, more: RunSettings) -> Run:
        return Run(
            facts,
            self.toolbox,
            max_turns=self._max_turns,
            budget_usd=self._budget,
            listen=self.listen,
            collect=streamed,
            **more,
        )

    async def _batches(self, driver: _Driver) -> AsyncGenerator[list[RunEvent], None]:
        """Drive a run inside of what plugins put around it, which is current while the run goes on and not between."""
        run = driver.run
        activity = run.instrument_run(self._name, self._description)
        failure: BaseException | None = None
        try:
            async with aclosing(self._drive(driver)) as batches:
                around = activity or nullcontext()
                while True:
                    with around:
                        events = await anext(batches, None)
                    if events is None:
                        break
                    yield events
        except BaseException as error:
            failure = error
            raise
        finally:
            if activity is not None:
                run.end_run(activity, failure)

    async def _drive(self, driver: _Driver) -> AsyncGenerator[list[RunEvent], None]:
        """Do what a run's steps say and yield its events, those of a moment together.

        A blocking driver's methods never suspend.
        """
        run = driver.run
        self.set_stop(run, lambda: None)
        try:
            with closing(run.steps()) as steps:
                answer: Message | None = None
                error: InterlinguaError | None = None
                while True:
                    try:
                        step = steps.send(answer) if error is None else steps.throw(error)
                    except StopIteration as end:
                        stopped: Stopped = end.value
                        break
                    answer = error = None
                    try:
                        if not isinstance(step, Calls):  # a caller who leaves before calls begin would leave them open
                            yield run.take_events()
                        if not (isinstance(step, Ask) and run.cancelled and run.answers):
                            async with aclosing(driver.do(step)) as moments:
                                async for _ in moments:
                                    yield run.take_events()
                        answer = driver.take_answer()
                    except InterlinguaError as caught:
                        if not isinstance(step, Ask):
                            raise
                        error = caught
            if self._on_stop is not None:
                self._on_stop(stopped)
            driver.result = run.result(stopped)
            run.collect(RunEnd(turn=run.turn, run=driver.result))
            yield run.take_events()
        except InterlinguaError as failed:
            set_messages_of(failed, run.messages)
            raise
        finally:
            with self._lock:
                self._active.pop(run, None)

    # what drivers use

    def new_batch(
        self,
        run: Run,
        calls: Sequence[ToolUseBlock],
        ask: AskPerson | Defer | None,
        report: Callable[[CallReport], None],
    ) -> CallBatch:
        """Return a batch of calls with this loop's settings."""
        batch = CallBatch(
            calls,
            self.toolbox,
            workspace=run.workspace,
            limits=self.limits,
            policy=self._policy,
            ask=ask,
            decisions=run.decisions,
            around=run.instrument_call,
            decode_strings=self._decode_strings,
            report=report,
        )
        if run.cancelled:
            batch.cancel()
        return batch

    def _cancel_run(self, run: Run) -> None:
        """Stop one run, as `cancel` does all."""
        run.cancelled = True
        with self._lock:
            stop = self._active.get(run)
        if stop is not None:
            stop()

    def set_stop(self, run: Run, stop: Callable[[], None]) -> None:
        """Set what `cancel` calls for a run, and call it at once where the run was cancelled already."""
        with self._lock:
            self._active[run] = stop
        if run.cancelled:
            stop()


class _Driver(ABC):
    """Does the steps of one run.

    Its methods are generators that yield whenever there may be new events.
    """

    def __init__(self, loop: AgentLoop, run: Run) -> None:
        self.loop = loop
        self.run = run
        self.result: AgentRun[Any] | None = None
        self._answer: Message | None = None

    def ended(self) -> AgentRun[Any]:
        """Return what the run came to, once it is over."""
        assert self.result is not None  # noqa: S101  set when the events end
        return self.result

    def take_answer(self) -> Message | None:
        """Return the answer that the step made, where it was an `Ask`."""
        answer, self._answer = self._answer, None
        return answer

    def do(self, step: RunStep) -> AsyncGenerator[None, None]:
        """Do one step."""
        if isinstance(step, Calls):
            return self.run_calls(step.calls)
        return self.ask(step) if isinstance(step, Ask) else self.compact()

    @abstractmethod
    def ask(self, step: Ask) -> AsyncGenerator[None, None]:
        """Get the model's next answer: streamed where somebody wants to see it grow and the model can stream."""

    @abstractmethod
    def run_calls(self, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        """Run the calls of an answer."""

    @abstractmethod
    def compact(self) -> AsyncGenerator[None, None]:
        """Compact the context where needed."""

    def begin_view(self, stream: CanonicalStream | AsyncCanonicalStream) -> AssistantView:
        """Begin to show how an answer grows."""
        view = AssistantView(lambda: stream.partial, self.run.turn)
        self.run.emit_growth(view.start())
        return view

    def show(self, view: AssistantView, events: Sequence[StreamEvent]) -> None:
        """Show what came of an answer in one read; nothing more once somebody cancelled it."""
        run = self.run
        for event in events:
            if run.cancelled:
                return
            run.look(event)
            for shown in view.feed(event):
                run.emit_growth(shown)

    def end_view(self, view: AssistantView, answer: Message) -> None:
        """Show the ends of an answer's blocks."""
        self._answer = answer
        for shown in view.finish(answer):
            self.run.emit_growth(shown)

    def take_whole(self, answer: Message) -> None:
        """Take an answer that was not streamed."""
        self._answer = answer
        if self.run.is_streamed:
            self.run.show_whole(answer)


def _check_streaming(error: CapabilityError) -> None:
    """Raise the error unless it says that the model cannot stream: then the answer is asked for whole."""
    if error.place != "streaming":
        raise error


class _BlockingDriver(_Driver):
    """Blocks in each method and never suspends."""

    def __init__(self, loop: AgentLoop, steps: Steps, run: Run) -> None:
        super().__init__(loop, run)
        self._steps = steps

    async def ask(self, step: Ask) -> AsyncGenerator[None, None]:
        with ExitStack() as opened:
            stream: StepStream | None = None
            if self.run.is_streamed:
                try:
                    stream = opened.enter_context(self._steps.stream(step.tools, **step.options))
                except CapabilityError as error:
                    _check_streaming(error)
            if stream is None:
                self.take_whole(self._steps.ask(step.tools, **step.options))
                yield
                return
            self.loop.set_stop(self.run, stream.cancel)
            view = self.begin_view(stream)
            for events in stream.batches():
                self.show(view, events)
                yield
            self.end_view(view, stream.message)

    async def run_calls(self, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        confirm = self.loop.confirm

        def make(ask: AskPerson | None, report: Callable[[CallReport], None]) -> CallBatch:
            return self.loop.new_batch(self.run, calls, DEFER if confirm is DEFER else ask, report)

        blocking = BlockingBatch(make, self.run.take, self._confirm if callable(confirm) else None)
        self.loop.set_stop(self.run, blocking.cancel)
        with closing(blocking.run()) as moments:
            for _ in moments:
                yield

    async def compact(self) -> AsyncGenerator[None, None]:
        if self.loop.compactor is not None:
            self.loop.compactor.compact(self._steps)
        yield

    def _confirm(self, question: Confirmation) -> bool:
        assert callable(self.loop.confirm)  # noqa: S101  not called otherwise
        consent = self.loop.confirm(question)
        if inspect.isawaitable(consent):
            raise CallerError("an async confirm= needs run_async(); blocking code asks with a plain function")
        return bool(consent)


class _AsyncDriver(_Driver):
    def __init__(self, loop: AgentLoop, steps: AsyncSteps, run: Run) -> None:
        super().__init__(loop, run)
        self._steps = steps

    async def ask(self, step: Ask) -> AsyncGenerator[None, None]:
        async with AsyncExitStack() as opened:
            stream: AsyncStepStream | None = None
            if self.run.is_streamed:
                try:
                    stream = await opened.enter_async_context(self._steps.stream(step.tools, **step.options))
                except CapabilityError as error:
                    _check_streaming(error)
            if stream is None:
                self.take_whole(await self._steps.ask(step.tools, **step.options))
                yield
                return
            self.loop.set_stop(self.run, stream.cancel)
            view = self.begin_view(stream)
            async for events in stream.batches():
                self.show(view, events)
                yield
            self.end_view(view, await stream.message)

    async def run_calls(self, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        """Run them in a task, so that events are yielded meanwhile; results are added as they come, whoever waits."""
        news = asyncio.Event()

        def report(report: CallReport) -> None:
            self.run.take(report)
            news.set()

        confirm = self.loop.confirm
        ask = self._confirm if callable(confirm) else confirm
        batch = self.loop.new_batch(self.run, calls, ask, report)
        event_loop = asyncio.get_running_loop()
        self.loop.set_stop(self.run, lambda: _call_in(event_loop, batch.cancel))
        task = asyncio.ensure_future(batch.run())
        task.add_done_callback(lambda _: news.set())
        try:
            while not task.done():
                await news.wait()
                news.clear()
                yield
        except BaseException:  # cancelled, or nobody wants the rest: what the tools have done is still added
            task.cancel()
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise
        task.result()

    async def compact(self) -> AsyncGenerator[None, None]:
        if self.loop.compactor is not None:
            await self.loop.compactor.compact_async(self._steps)
        yield

    async def _confirm(self, question: Confirmation) -> bool:
        assert callable(self.loop.confirm)  # noqa: S101  not called otherwise
        consent: Any = self.loop.confirm(question)
        return bool(await consent if inspect.isawaitable(consent) else consent)


def _call_in(event_loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    event_loop.call_soon_threadsafe(act)


@attrs.frozen
class _Question:
    confirmation: Confirmation
    reply: asyncio.Future[bool]


@attrs.frozen
class _End:
    error: BaseException | None


class BlockingBatch:
    """Runs one batch of calls for blocking code: in an event loop in a thread, its reports handled by the caller.

    What the caller does with a report (storing, emitting, asking a person) happens on the caller's own thread, where
    Ctrl-C reaches it.

    Args:
        make: makes the batch, in the event loop.
        handle: takes each report; after an interruption it is given the same report once more.
        confirm: answers a question; None where nobody can.
    """

    def __init__(
        self, make: MakeBatch, handle: Callable[[CallReport], None], confirm: Callable[[Confirmation], bool] | None
    ) -> None:
        self._make = make
        self._handle = handle
        self._confirm = confirm
        self._items: list[Any] = []
        self._at = 0
        self._news = threading.Condition()
        self._ready = threading.Event()
        self._cancelled = False
        self._loop: asyncio.AbstractEventLoop
        self._batch: CallBatch

    def run(self) -> Generator[None, None, None]:
        """Run the batch and yield after each report; when it ends, early too, every call has its answer or is pending.

        What `handle` raises is raised here.
        """
        work = partial(contextvars.copy_context().run, asyncio.run, self._main())
        threading.Thread(target=work, name="interlingua-tools", daemon=True).start()
        try:
            while not isinstance(item := self._next(), _End):
                self._take(item)
                self._at += 1
                yield
        except Exception:
            self.cancel()
            raise
        except BaseException:  # Ctrl-C, or nobody wants the rest: what the tools have done is still stored
            self.cancel()
            self._drain()
            raise
        if item.error is not None:
            raise item.error

    def cancel(self) -> None:
        """Cancel what has no answer yet; any thread may call it, also before `run`."""
        self._cancelled = True
        if self._ready.is_set():
            with suppress(RuntimeError):  # the loop has ended, and with it the batch
                _call_in(self._loop, self._batch.cancel)

    async def _main(self) -> None:
        error: BaseException | None = None
        try:
            self._loop = asyncio.get_running_loop()
            self._batch = self._make(None if self._confirm is None else self._ask, self._put)
            self._ready.set()
            if self._cancelled:
                self._batch.cancel()
            await self._batch.run()
        except BaseException as caught:  # it is raised again on the caller's thread
            error = caught
        self._put(_End(error))

    async def _ask(self, confirmation: Confirmation) -> bool:
        reply: asyncio.Future[bool] = self._loop.create_future()
        self._put(_Question(confirmation, reply))
        return await reply

    def _take(self, item: Any) -> None:
        if not isinstance(item, _Question):
            self._handle(item)
            return
        assert self._confirm is not None  # noqa: S101  there are no questions otherwise
        consent = self._confirm(item.confirmation)
        with suppress(RuntimeError):  # cancelled meanwhile, and the loop has ended
            _call_in(self._loop, lambda: None if item.reply.done() else item.reply.set_result(consent))

    def _drain(self) -> None:
        while not isinstance(item := self._next(_PATIENCE), _End | NoneType):
            if not isinstance(item, _Question):
                self._handle(item)
            self._at += 1

    def _put(self, item: Any) -> None:
        with self._news:
            self._items.append(item)
            self._news.notify()

    def _next(self, timeout: float | None = None) -> Any:
        """Wait for the next item and leave it where it is: an interruption may come before it is handled."""
        with self._news:
            while not self._news.wait_for(lambda: self._at < len(self._items), timeout or _LOOK_UP):
                if timeout is not None:
                    return None
            return self._items[self._at]

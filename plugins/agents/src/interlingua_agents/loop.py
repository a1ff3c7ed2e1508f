"""The agent loop: tools with their limits, run over a turn in blocking or in asynchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, closing, suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from types import NoneType
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack

import attrs

from interlingua import CallerError
from interlingua.errors import CapabilityError
from interlingua.output import OutputPlan
from interlingua.types import Message, ToolDefinition, ToolUseBlock
from interlingua_agents.calls import AskPerson, CallBatch, CallReport, ToolLimits
from interlingua_agents.protocols import AsyncSteps, AsyncStepStream, Compactor, Steps, StepStream
from interlingua_agents.results import DEFER, CallDecision, Defer, RunStop
from interlingua_agents.run import AgentRun, Confirm, LoopSettings, PriorMessages
from interlingua_agents.run_events import Listener
from interlingua_agents.tools import Confirmation, Policy, Tool, Toolbox

StepsT = TypeVar("StepsT", Steps, AsyncSteps)
MakeBatch: TypeAlias = Callable[[AskPerson | None, Callable[[CallReport], None]], CallBatch]
_POLL = 0.5  # seconds; a signal that arrives just before a lock is taken is handled when the wait ends
_PATIENCE = 3.0  # seconds that an interrupted batch has to report how its calls ended


class RunOptions(TypedDict, total=False):
    """The options of one run, in addition to the loop's settings.

    Attributes:
        streamed: whether events are wanted, and so answers are streamed.
        decisions: decisions about the calls at the end of the history.
        plan: how the model is asked for a typed answer; None for text.
        retries: number of further attempts after an answer that does not fit the type.
        prior: the state of the conversation before the question.
    """

    streamed: bool
    decisions: Sequence[CallDecision]
    plan: OutputPlan[Any] | None
    retries: int
    prior: PriorMessages | None


class AgentLoop:
    """Tools with their callables, and the limits of a run. Sessions take a loop as `tools`.

    One loop may serve many conversations, one after the other or at once.

    Args:
        tools: a toolbox, or tools. A definition without a function is offered too; a call of it ends the run.
        max_turns: maximum number of answers in one run; the results of the last answer are added before it stops.
        budget_usd: maximum cost of the answers of one run, checked after each answer. An answer of unknown cost ends
            the run too, because the budget could not be kept.
        limits: limits of calls and results.
        policy: decides which tools may run; by default tools that only read may, and other tools need consent.
        confirm: asked for consent on the caller's thread, one question at a time; may be `async` in asynchronous code.
            Without it such calls are rejected, and the model reads the reason. `DEFER` leaves them open, which ends
            the run.
        decode_strings: True to parse objects and arrays that a model wrote as JSON strings, before consent is asked
            for. Otherwise such inputs are rejected, and the model reads the reason.
        listen: called with every event (`RunEvent`); answers are then streamed if the model can stream.
        on_stop: called with the end of each run.
        compactor: called before each answer after the first; a session calls its own before the first.
        name: the agent's name, for traces.
        description: the agent's description, for traces.

    Raises:
        CallerError: `max_turns` is less than 1, `budget_usd` is not a number above 0, or `tools` are not tools.
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
        on_stop: Callable[[RunStop], None] | None = None,
        compactor: Compactor | None = None,
        name: str = "",
        description: str = "",
    ) -> None:
        if max_turns < 1:
            raise CallerError("max_turns must be at least 1")
        try:
            budget = None if budget_usd is None else Decimal(str(budget_usd))
        except InvalidOperation as error:
            raise CallerError(f"budget_usd must be a number of US dollars, not {budget_usd!r}") from error
        if budget is not None and not (budget.is_finite() and budget > 0):
            raise CallerError(f"budget_usd must be above 0, not {budget_usd!r}")
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self._settings = LoopSettings(
            toolbox=self.toolbox,
            max_turns=max_turns,
            budget_usd=budget,
            limits=limits or ToolLimits(),
            policy=policy,
            confirm=confirm,
            decode_strings=decode_strings,
            listen=listen,
            on_stop=on_stop,
            compactor=compactor,
            name=name,
            description=description,
        )
        self._running: set[AgentRun] = set()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions that the model is offered."""
        return self.toolbox.definitions

    def run(self, steps: Steps) -> Message:
        """Ask, run the calls, add their results and ask again until the model is done; return the last answer.

        Raises:
            InterlinguaError: no answer; the history holds all messages added before.
        """
        run = self.start(steps)
        for _ in run.events_blocking():
            pass
        return run.result.stop.message

    async def run_async(self, steps: AsyncSteps) -> Message:
        """`run` for asynchronous code. A cancelled task adds a result for every call before it ends."""
        run = self.start_async(steps)
        async with aclosing(run.events()) as batches:
            async for _ in batches:
                pass
        return run.result.stop.message

    def start(self, steps: Steps, **options: Unpack[RunOptions]) -> AgentRun:
        """Return a run over a turn; it runs while its events are iterated over.

        Args:
            steps: the turn.
            **options: see `RunOptions`.
        """
        return AgentRun(steps, BlockingEffects(steps, self._settings), self._settings, self._running, **options)

    def start_async(self, steps: AsyncSteps, **options: Unpack[RunOptions]) -> AgentRun:
        """See `start`."""
        return AgentRun(steps, AsyncEffects(steps, self._settings), self._settings, self._running, **options)

    def cancel(self) -> None:
        """Stop every run in progress; any thread may call it.

        A streaming answer ends as CANCELLED, open calls get a result that reports it, and the runs return.
        """
        for run in list(self._running):
            run.cancel()


class _Effects(Generic[StepsT]):
    answer: Message

    def __init__(self, steps: StepsT, settings: LoopSettings) -> None:
        self._steps: StepsT = steps
        self._settings = settings

    def _new_batch(
        self,
        run: AgentRun,
        calls: Sequence[ToolUseBlock],
        ask: AskPerson | Defer | None,
        report: Callable[[CallReport], None],
    ) -> CallBatch:
        settings = self._settings
        batch = CallBatch(
            calls,
            settings.toolbox,
            workspace=self._steps.workspace,
            limits=settings.limits,
            policy=settings.policy,
            ask=ask,
            decisions=run.decisions,
            uncertain=run.uncertain,
            instrument=run.calls.instrument,
            decode_strings=settings.decode_strings,
            report=report,
        )
        if run.cancelled:
            batch.cancel()
        return batch

    def _take_whole(self, run: AgentRun, answer: Message) -> None:
        self.answer = answer
        run.shown.emit_whole_answer(answer, run.turn)


def _check_streaming(error: CapabilityError) -> None:
    """Raise the error unless it reports that the model cannot stream: the answer is then requested whole."""
    if error.place != "streaming":
        raise error


class BlockingEffects(_Effects[Steps]):
    """Effects for blocking code: the methods block and never suspend.

    Args:
        steps: the turn.
        settings: the loop's.
    """

    async def ask(
        self, run: AgentRun, tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> AsyncGenerator[None, None]:
        """See `RunEffects.ask`."""
        with ExitStack() as opened:
            stream: StepStream | None = None
            if run.shown.is_wanted:
                try:
                    stream = opened.enter_context(self._steps.stream(tools, **options))
                except CapabilityError as error:
                    _check_streaming(error)
            if stream is None:
                self._take_whole(run, self._steps.ask(tools, **options))
                if run.shown.is_collected:
                    yield
                return
            run.on_cancel(stream.cancel)
            run.shown.start_answer(lambda: stream.partial, run.turn)
            for events in stream.batches():
                run.shown.grow_answer(events)
                yield
            self.answer = stream.message
            run.shown.end_answer()

    async def run_calls(self, run: AgentRun, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        """See `RunEffects.run_calls`. The calls run in an event loop in another thread."""
        confirm = self._settings.confirm

        def make(ask: AskPerson | None, report: Callable[[CallReport], None]) -> CallBatch:
            return self._new_batch(run, calls, DEFER if confirm is DEFER else ask, report)

        batch = BlockingBatch(make, run.calls.take, self._confirm if callable(confirm) else None)
        run.on_cancel(batch.cancel)
        with closing(batch.run()) as moments:
            for _ in moments:
                if run.shown.is_collected:
                    yield

    async def compact(self) -> None:
        """See `RunEffects.compact`."""
        if self._settings.compactor is not None:
            self._settings.compactor.compact(self._steps)

    def _confirm(self, question: Confirmation) -> bool:
        assert callable(self._settings.confirm)  # noqa: S101  not called otherwise
        consent = self._settings.confirm(question)
        if inspect.isawaitable(consent):
            raise CallerError("an async confirm= needs asynchronous code: pass a plain function or use run_async()")
        return bool(consent)


class AsyncEffects(_Effects[AsyncSteps]):
    """Effects for asynchronous code.

    Args:
        steps: the turn.
        settings: the loop's.
    """

    async def ask(
        self, run: AgentRun, tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> AsyncGenerator[None, None]:
        """See `RunEffects.ask`.

        Raises:
            CallerError: the model may call tools, and the code does not run on asyncio.
        """
        if tools:
            _asyncio_loop()  # before a model is asked whose calls could not be run
        async with AsyncExitStack() as opened:
            stream: AsyncStepStream | None = None
            if run.shown.is_wanted:
                try:
                    stream = await opened.enter_async_context(self._steps.stream(tools, **options))
                except CapabilityError as error:
                    _check_streaming(error)
            if stream is None:
                self._take_whole(run, await self._steps.ask(tools, **options))
                if run.shown.is_collected:
                    yield
                return
            run.on_cancel(stream.cancel)
            run.shown.start_answer(lambda: stream.partial, run.turn)
            async for events in stream.batches():
                run.shown.grow_answer(events)
                yield
            self.answer = await stream.message
            run.shown.end_answer()

    async def run_calls(self, run: AgentRun, calls: Sequence[ToolUseBlock]) -> AsyncGenerator[None, None]:
        """See `RunEffects.run_calls`. A task runs the calls, so results are added even while no caller iterates."""
        event_loop = _asyncio_loop()
        news = asyncio.Event()

        def take(report: CallReport) -> None:
            run.calls.take(report)
            news.set()

        confirm = self._settings.confirm
        batch = self._new_batch(run, calls, self._confirm if callable(confirm) else confirm, take)
        run.on_cancel(lambda: _call_in(event_loop, batch.cancel))
        task = asyncio.ensure_future(batch.run())
        task.add_done_callback(lambda _: news.set())
        try:
            while not task.done():
                await news.wait()
                news.clear()
                if run.shown.is_collected:
                    yield
        except BaseException:  # cancelled or left early: results of finished work are still added
            task.cancel()
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            raise
        task.result()

    async def compact(self) -> None:
        """See `RunEffects.compact`."""
        if self._settings.compactor is not None:
            await self._settings.compactor.compact_async(self._steps)

    async def _confirm(self, question: Confirmation) -> bool:
        assert callable(self._settings.confirm)  # noqa: S101  not called otherwise
        consent: Any = self._settings.confirm(question)
        return bool(await consent if inspect.isawaitable(consent) else consent)


def _asyncio_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        how = "use run_sync or stream_sync in a thread"
        raise CallerError(f"agents call tools on asyncio only, not on trio: {how}") from error


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
    """Runs one batch of calls for blocking code: in an event loop in a thread; the caller handles the reports.

    Storing results, emitting events and asking a person happen on the caller's own thread, where Ctrl-C reaches them.

    Args:
        make: makes the batch, in the event loop.
        handle: takes each report; after an interruption the same report is passed once more.
        confirm: answers a question; None if no person can be asked.
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
        """Run the batch and yield after each report. When it ends, even early, every call has a result or is pending.

        Exceptions of `handle` are raised here.
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
        except BaseException:  # Ctrl-C or left early: results of finished work are still stored
            self.cancel()
            self._drain()
            raise
        if item.error is not None:
            raise item.error

    def cancel(self) -> None:
        """Cancel calls without a result; any thread may call it, also before `run`."""
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
        except BaseException as caught:  # raised again on the caller's thread
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
        """Wait for the next item without removing it: an interruption may arrive before the item is handled."""
        with self._news:
            while not self._news.wait_for(lambda: self._at < len(self._items), timeout or _POLL):
                if timeout is not None:
                    return None
            return self._items[self._at]

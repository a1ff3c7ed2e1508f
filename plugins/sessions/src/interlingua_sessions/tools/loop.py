"""The tool loop: ask, run the calls, store their results, ask again; blocking and asynchronous.

Never decides what comes next (`run` does) and never runs a tool by itself (`batch` does). A session is given one of
these as its tools; applications come in through the room's front door.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import closing
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from interlingua import CallerError, InterlinguaError
from interlingua.errors import CapabilityError
from interlingua.types.messages import Message
from interlingua.types.tools import ToolDefinition
from interlingua_sessions import events as ev
from interlingua_sessions.tools.batch import Batch
from interlingua_sessions.tools.driving import Blocking
from interlingua_sessions.tools.function import Tool
from interlingua_sessions.tools.policy import Policy
from interlingua_sessions.tools.reports import Ask as AskPerson
from interlingua_sessions.tools.reports import Limits, Report
from interlingua_sessions.tools.run import Listener, Run
from interlingua_sessions.tools.toolbox import Toolbox
from interlingua_sessions.tools.values import Confirmation
from interlingua_sessions.tools.wants import Ask, Calls, Stopped, Want

if TYPE_CHECKING:
    from interlingua_sessions.session.api import AsyncSteps, AsyncStepStream, Compactor, Facts, Steps, StepStream

Confirm: TypeAlias = Callable[[Confirmation], bool | Awaitable[bool]]


class AgentLoop:
    """Tools with their callables, and how far a model may go with them: what a session takes as `tools`.

    One may serve many sessions, one after the other or at once.

    Args:
        tools: a toolbox, or tools to make one of.
        max_turns: how many answers one run may have; the results of the last one are stored, and it stops.
        budget_usd: what the answers of one run may cost together; checked after each. An answer of unknown cost ends
            the run as well: a budget that cannot be kept is not silently ignored.
        limits: how many calls run at once, how long one may take, how large a result may be.
        policy: which tools may run; by default what only looks may, and all else is asked for.
        confirm: answers such a question, on the caller's thread, one at a time; for `run_async` it may be `async`.
            Without it what would be asked for is refused, and the model told so.
        listen: told of every agent event. With it answers are streamed, where the model can.
        on_stop: told how a run ended.
        compactor: looks at the context before each answer after the first; before that the session does.
    """

    def __init__(
        self,
        tools: Toolbox | Iterable[Tool],
        *,
        max_turns: int = 32,
        budget_usd: Decimal | float | str | None = None,
        limits: Limits | None = None,
        policy: Policy | None = None,
        confirm: Confirm | None = None,
        listen: Listener | None = None,
        on_stop: Callable[[Stopped], None] | None = None,
        compactor: Compactor | None = None,
    ) -> None:
        if max_turns < 1:
            raise CallerError("max_turns is at least 1: the first answer is one")
        self.toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self.limits = limits or Limits()
        self._max_turns = max_turns
        self._budget = None if budget_usd is None else Decimal(str(budget_usd))
        self._policy = policy
        self._confirm = confirm
        self._listen = listen
        self._on_stop = on_stop
        self._compactor = compactor
        self._active: dict[Run, Callable[[], None]] = {}
        self._lock = Lock()

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is offered."""
        return self.toolbox.definitions

    def cancel(self) -> None:
        """Stop every run that is under way; may be called from any thread.

        A streaming answer ends as CANCELLED, calls without an answer get one that says so, and the runs return.
        """
        with self._lock:
            runs = list(self._active.items())
        for run, stop in runs:
            run.cancelled = True
            stop()

    # -- blocking -----------------------------------------------------------------------------------------------

    def run(self, steps: Steps) -> Message:
        """Ask, run the calls, add their results and ask again until the model is done; returns the last answer.

        Raises:
            InterlinguaError: no answer; the history holds all that was done before.
        """
        run = self._begin(steps)
        try:
            with closing(run.course()) as course:
                return self._walk(run, course, steps)
        finally:
            self._forget(run)

    def _walk(self, run: Run, course: Generator[Want, Message | None, Stopped], steps: Steps) -> Message:
        got: Message | None = None
        error: InterlinguaError | None = None
        while True:
            try:
                want = course.send(got) if error is None else course.throw(error)
            except StopIteration as end:
                return self._ended(end.value)
            got = error = None
            if isinstance(want, Ask):
                try:
                    got = self._ask(run, steps)
                except InterlinguaError as caught:
                    error = caught
            elif isinstance(want, Calls):
                self._run_calls(run, want)
            elif self._compactor is not None:
                self._compactor.compact(steps)

    def _ask(self, run: Run, steps: Steps) -> Message:
        if self._listen is None:
            return steps.ask(self.definitions)
        try:
            with steps.stream(self.definitions) as stream:
                return self._follow(run, stream)
        except CapabilityError as error:
            if error.place != "streaming":
                raise
            answer = steps.ask(self.definitions)
            run.emit(ev.MessageStart(message=answer))
            return answer

    def _follow(self, run: Run, stream: StepStream) -> Message:
        self._stoppable(run, stream.cancel)
        for event in ev.assistant_events(stream):
            _tell(run, event)
        return stream.message

    def _run_calls(self, run: Run, want: Calls) -> None:
        def make(ask: AskPerson | None, report: Callable[[Report], None]) -> Batch:
            return self._batch(run, want, ask, report)

        def confirm(question: Confirmation) -> bool:
            assert self._confirm is not None  # noqa: S101  it is not given otherwise
            said = self._confirm(question)
            if inspect.isawaitable(said):
                raise CallerError("an async confirm= needs run_async(); blocking code asks with a plain function")
            return bool(said)

        blocking = Blocking(make, run.take, confirm if self._confirm is not None else None)
        self._stoppable(run, blocking.cancel)
        blocking.run()

    # -- asynchronous -------------------------------------------------------------------------------------------

    async def run_async(self, steps: AsyncSteps) -> Message:
        """As `run`. A cancelled task stores an answer to every call before it ends."""
        run = self._begin(steps)
        try:
            with closing(run.course()) as course:
                return await self._walk_async(run, course, steps)
        finally:
            self._forget(run)

    async def _walk_async(
        self, run: Run, course: Generator[Want, Message | None, Stopped], steps: AsyncSteps
    ) -> Message:
        got: Message | None = None
        error: InterlinguaError | None = None
        while True:
            try:
                want = course.send(got) if error is None else course.throw(error)
            except StopIteration as end:
                return self._ended(end.value)
            got = error = None
            if isinstance(want, Ask):
                try:
                    got = await self._ask_async(run, steps)
                except InterlinguaError as caught:
                    error = caught
            elif isinstance(want, Calls):
                await self._run_calls_async(run, want)
            elif self._compactor is not None:
                await self._compactor.compact_async(steps)

    async def _ask_async(self, run: Run, steps: AsyncSteps) -> Message:
        if self._listen is None:
            return await steps.ask(self.definitions)
        try:
            async with steps.stream(self.definitions) as stream:
                return await self._follow_async(run, stream)
        except CapabilityError as error:
            if error.place != "streaming":
                raise
            answer = await steps.ask(self.definitions)
            run.emit(ev.MessageStart(message=answer))
            return answer

    async def _follow_async(self, run: Run, stream: AsyncStepStream) -> Message:
        self._stoppable(run, stream.cancel)
        async for event in ev.assistant_events_async(stream):
            _tell(run, event)
        return await stream.message

    async def _run_calls_async(self, run: Run, want: Calls) -> None:
        import asyncio  # noqa: PLC0415  blocking code has it in another module

        async def ask(question: Confirmation) -> bool:
            assert self._confirm is not None  # noqa: S101  it is not given otherwise
            said: Any = self._confirm(question)
            return bool(await said if inspect.isawaitable(said) else said)

        batch = self._batch(run, want, ask if self._confirm is not None else None, run.take)
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(batch.cancel)

        self._stoppable(run, stop)
        await batch.run()

    # -- both ---------------------------------------------------------------------------------------------------

    def _begin(self, facts: Facts) -> Run:
        run = Run(facts, self.toolbox, max_turns=self._max_turns, budget_usd=self._budget, listen=self._listen)
        self._stoppable(run, lambda: None)
        return run

    def _batch(self, run: Run, want: Calls, ask: AskPerson | None, report: Callable[[Report], None]) -> Batch:
        batch = Batch(want.calls, self.toolbox, limits=self.limits, policy=self._policy, ask=ask, report=report)
        if run.cancelled:
            batch.cancel()
        return batch

    def _stoppable(self, run: Run, stop: Callable[[], None]) -> None:
        with self._lock:
            self._active[run] = stop
        if run.cancelled:
            stop()

    def _forget(self, run: Run) -> None:
        with self._lock:
            self._active.pop(run, None)

    def _ended(self, stopped: Stopped) -> Message:
        if self._on_stop is not None:
            self._on_stop(stopped)
        return stopped.message


def _tell(run: Run, event: ev.AssistantMessageEvent) -> None:
    """Tell of an answer that grows; its last event is told as the message's end, once that is stored."""
    if event.type == "start":
        run.emit(ev.MessageStart(message=event.partial))
    elif event.type not in ("done", "error"):
        run.emit(ev.MessageUpdate(assistant_message_event=event))

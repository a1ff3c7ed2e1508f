"""`AgentLoop`: tools with their callables, and the limits within which a model may use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from decimal import Decimal, InvalidOperation
from typing import Any, TypedDict, Unpack

from interlingua import CallerError
from interlingua.output import OutputPlan
from interlingua.types import Message, ToolDefinition
from interlingua_agents.calls import ToolLimits
from interlingua_agents.effects import AsyncEffects, BlockingEffects, iterate_blocking
from interlingua_agents.protocols import AsyncSteps, Compactor, Steps
from interlingua_agents.results import CallDecision, Defer, RunStop
from interlingua_agents.run import AgentRun, Confirm, LoopSettings, PriorMessages
from interlingua_agents.run_events import Listener
from interlingua_agents.toolbox import Toolbox
from interlingua_agents.tools import Policy, Tool


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
        listen: called with every agent event; answers are then streamed if the model can stream.
        on_stop: called with the end of each run.
        compactor: called before each answer after the first; a session calls its own before the first.
        name: the agent's name, for traces.
        description: the agent's description, for traces.

    Raises:
        CallerError: `max_turns` is less than 1, `budget_usd` is not a number, or `tools` are not tools.
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
        for _ in iterate_blocking(run.events()):
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

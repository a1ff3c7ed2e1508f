"""`Agent`: a model, its tools and its instructions in one frozen value; what was said is the caller's to keep."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack, overload

import attrs

from interlingua import AsyncClient, CallerError, Client
from interlingua.output import OutputPlan
from interlingua.types import ContentBlock, Message, ToolDefinition, system, user
from interlingua_agents.calls import settle_open_calls
from interlingua_agents.drivers import AgentLoop, Confirm, RunSettings
from interlingua_agents.memory import AsyncMemoryTurn, MemoryTurn
from interlingua_agents.results import AgentRun, Decision, Defer
from interlingua_agents.run import StartedRun, iterate_blocking
from interlingua_agents.streams import AsyncRunStream, RunStream
from interlingua_agents.tools import Policy, Tool, Toolbox
from interlingua_output import Output

if TYPE_CHECKING:
    from interlingua_agents.calls import ToolLimits
    from interlingua_agents.protocols import (
        AsyncSessionLike,
        AsyncStartableSteps,
        Compactor,
        Facts,
        SessionLike,
        StartableSteps,
    )

AnswerT = TypeVar("AnswerT")
Prompt: TypeAlias = str | Message | Iterable[ContentBlock] | None
"""What a run starts with; None goes on with the history as it stands."""


class AgentSettings(TypedDict, total=False):
    """The settings of an `Agent` by name, besides its model and output."""

    tools: Iterable[Tool | ToolDefinition]
    instructions: str | None
    name: str
    description: str
    confirm: Confirm | Defer | None
    policy: Policy | None
    limits: ToolLimits | None
    max_turns: int
    budget_usd: Decimal | float | str | None
    decode_strings: bool
    output_retries: int
    compactor: Compactor | None
    workspace: str | Path | None
    options: Mapping[str, Any] | None


@attrs.frozen(init=False, eq=False)
class Agent(Generic[AnswerT]):
    """A model with tools and instructions. It is frozen, keeps nothing between runs, and may run many times at once.

    Args:
        model: name of the model, as for a client; None: the client's, or what the session decides.
        tools: what the model may call: tools with their functions, or definitions, whose calls end the run.
        output: the type of the answer, or an `Output`; None for text.
        output_retries: how often an answer that does not fit the type is asked for again, with what is wrong.
        instructions: sent as a system message in front of the history, of which it is no part.
        name: for traces, as `description`.
        confirm: as for `AgentLoop`: a function that is asked before a tool runs that may change something, or `DEFER`.
        policy: which tools may run, which are asked for.
        limits: how many calls run at once, how long one may take, how large a result may be.
        max_turns: how many answers one run may have.
        budget_usd: what the answers of one run may cost together.
        decode_strings: read objects that a model wrote as JSON text inside of arguments.
        compactor: called between the answers of a run.
        workspace: the folder that tools work in, instead of the client's.
        options: of every request: fields of `RequestKwargs` by name. A forced `tool_choice` holds for the first answer
            only.

    Raises:
        CallerError: two tools share a name, or something is no tool.
    """

    model: str | None
    toolbox: Toolbox
    output: Any
    output_retries: int
    instructions: Message | None
    name: str
    workspace: str | Path | None
    options: Mapping[str, Any]
    _settings: Mapping[str, Any] = attrs.field(repr=False)

    @overload
    def __init__(
        self: Agent[str], model: str | None = None, *, output: None = None, **settings: Unpack[AgentSettings]
    ) -> None: ...

    @overload
    def __init__(
        self, model: str | None = None, *, output: type[AnswerT] | Output[AnswerT], **settings: Unpack[AgentSettings]
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[Any], model: str | None = None, *, output: Any, **settings: Unpack[AgentSettings]
    ) -> None: ...

    def __init__(
        self,
        model: str | None = None,
        *,
        tools: Iterable[Tool | ToolDefinition] = (),
        output: Any = None,
        instructions: str | None = None,
        name: str = "",
        description: str = "",
        confirm: Confirm | Defer | None = None,
        policy: Policy | None = None,
        limits: ToolLimits | None = None,
        max_turns: int = 32,
        budget_usd: Decimal | float | str | None = None,
        decode_strings: bool = False,
        output_retries: int = 1,
        compactor: Compactor | None = None,
        workspace: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "confirm": confirm,
            "policy": policy,
            "limits": limits,
            "max_turns": max_turns,
            "budget_usd": budget_usd,
            "decode_strings": decode_strings,
            "compactor": compactor,
            "name": name,
            "description": description,
        }
        toolbox = Toolbox(tools)
        AgentLoop(toolbox, **settings)  # what is wrong with the settings is said now
        self.__attrs_init__(
            model,
            toolbox,
            output,
            output_retries,
            system(instructions) if instructions else None,
            name,
            workspace,
            dict(options or {}),
            settings,
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order the model is offered them."""
        return tuple(self.toolbox)

    async def run(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: AsyncSessionLike | None = None,
        client: AsyncClient | None = None,
        decisions: Sequence[Decision] = (),
    ) -> AgentRun[AnswerT]:
        """Ask, run the calls, ask again until the model is done.

        Args:
            prompt: what the user says; None goes on with the history, such as after `decisions`.
            history: what was said before; it is not changed. The new messages are the run's `messages`.
            session: keeps the conversation instead, each message before the next step.
            client: sends; None makes one for this run alone.
            decisions: about the calls that the history ends with (`approve`, `reject`).

        Raises:
            CallerError: the arguments do not fit each other.
            InterlinguaError: no answer; `messages_of(error)` has what was done before.
        """
        opening = self._open_async(prompt, history, session, client, decisions, streamed=False)
        async with opening as started, aclosing(started.batches) as batches:
            async for _ in batches:
                pass
            return started.result()

    def run_sync(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: SessionLike | None = None,
        client: Client | None = None,
        decisions: Sequence[Decision] = (),
    ) -> AgentRun[AnswerT]:
        """As `run`, for blocking code."""
        with self._open(prompt, history, session, client, decisions, streamed=False) as started:
            for _ in iterate_blocking(started.batches):
                pass
            return started.result()

    def stream(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: AsyncSessionLike | None = None,
        client: AsyncClient | None = None,
        decisions: Sequence[Decision] = (),
    ) -> AsyncRunStream[AnswerT]:
        """As `run`, as a stream of events through all turns: `async with` it and iterate."""
        return AsyncRunStream(self._open_async(prompt, history, session, client, decisions, streamed=True))

    def stream_sync(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: SessionLike | None = None,
        client: Client | None = None,
        decisions: Sequence[Decision] = (),
    ) -> RunStream[AnswerT]:
        """As `stream`, for blocking code."""
        return RunStream(self._open(prompt, history, session, client, decisions, streamed=True))

    @contextmanager
    def _open(
        self,
        prompt: Prompt,
        history: Sequence[Message],
        session: SessionLike | None,
        client: Client | None,
        decisions: Sequence[Decision],
        *,
        streamed: bool,
    ) -> Iterator[StartedRun]:
        loop = self._new_loop(prompt, history, session, client, decisions, asynchronous=False)
        with ExitStack() as stack:
            turn: StartableSteps
            if session is None:
                used = stack.enter_context(Client(self.model)) if client is None else client
                turn = MemoryTurn(used, list(history), question=_question(prompt), **self._memory_arguments())
            else:
                session.refresh()
                turn = session.turn(prompt, tools=loop.definitions, **self._session_arguments())
            note = _begin(turn, prompt)
            turn.start()
            plan = self._plan(turn, streamed=streamed)
            more: RunSettings = {"decisions": decisions, "plan": plan, "retries": self.output_retries}
            yield note(loop.start(turn, streamed=streamed, **more))

    @asynccontextmanager
    async def _open_async(
        self,
        prompt: Prompt,
        history: Sequence[Message],
        session: AsyncSessionLike | None,
        client: AsyncClient | None,
        decisions: Sequence[Decision],
        *,
        streamed: bool,
    ) -> AsyncIterator[StartedRun]:
        loop = self._new_loop(prompt, history, session, client, decisions, asynchronous=True)
        async with AsyncExitStack() as stack:
            turn: AsyncStartableSteps
            if session is None:
                used = await stack.enter_async_context(AsyncClient(self.model)) if client is None else client
                turn = AsyncMemoryTurn(used, list(history), question=_question(prompt), **self._memory_arguments())
            else:
                session.refresh()
                turn = session.turn(prompt, tools=loop.definitions, **self._session_arguments())
            note = _begin(turn, prompt)
            await turn.start()
            plan = self._plan(turn, streamed=streamed)
            more: RunSettings = {"decisions": decisions, "plan": plan, "retries": self.output_retries}
            yield note(loop.start_async(turn, streamed=streamed, **more))

    def _new_loop(
        self,
        prompt: Prompt,
        history: Sequence[Message],
        session: Any,
        client: Any,
        decisions: Sequence[Decision],
        *,
        asynchronous: bool,
    ) -> AgentLoop:
        if session is not None and (client is not None or history):
            raise CallerError("a session has a history and a client of its own: give either it or them")
        given = session if client is None else client
        if given is not None and inspect.iscoroutinefunction(given.send) is not asynchronous:
            ways = "run and stream need an AsyncSession or AsyncClient"
            raise CallerError(ways if asynchronous else "run_sync and stream_sync need a Session or Client")
        wrong = next((one for one in history if not isinstance(one, Message)), None)
        if wrong is not None:
            kind = type(wrong).__name__
            raise CallerError(
                f"history holds messages, not {kind}: make them with user(), assistant() or loads_message()"
            )
        if prompt is not None and decisions:
            raise CallerError("decisions are about the calls the history ends with: give them with the prompt None")
        if prompt is None and session is None and not history:
            raise CallerError("nothing to answer: give a prompt, or a history that ends in a question or open calls")
        return AgentLoop(self.toolbox, **self._settings)

    def _plan(self, turn: Facts, *, streamed: bool) -> OutputPlan[Any] | None:
        """Give the turn its instructions; return how a typed answer is asked for."""
        turn.instructions = self.instructions
        if self.output is None:
            return None
        plan = turn.plan_output(self.output, self.toolbox.definitions, stream=streamed)
        lead = [] if self.instructions is None else [self.instructions]
        told = plan.messages([*lead, _ANY])[:-1]
        turn.instructions = told[0] if told else None
        return plan

    def _memory_arguments(self) -> dict[str, Any]:
        return {"model": self.model, "workspace": self.workspace, **self.options}

    def _session_arguments(self) -> dict[str, Any]:
        return {"model": self.model, **self.options}


_ANY = user("-")  # stands for the conversation where only what is sent in front of it is asked for


def _question(prompt: Prompt) -> Message | None:
    return prompt if prompt is None or isinstance(prompt, Message) else user(prompt)


def _begin(turn: Facts, prompt: Prompt) -> Callable[[StartedRun], StartedRun]:
    """Answer calls that the user goes on without; return what notes on the run which messages are new."""
    known = frozenset([message.id for message in turn.messages])
    settled = settle_open_calls(turn) if prompt is not None else ()

    def note(started: StartedRun) -> StartedRun:
        started.run.known, started.run.settled = known, settled
        return started

    return note

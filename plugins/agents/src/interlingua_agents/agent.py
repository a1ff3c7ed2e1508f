"""`Agent`: a model, its tools and its instructions in one frozen value; the caller keeps the conversation."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack, overload

import attrs

from interlingua import AsyncClient, CallerError, Client
from interlingua.output import OutputFormat, OutputPlan
from interlingua.plugins import explain_arguments
from interlingua.types import ContentBlock, Message, ToolDefinition, system, user
from interlingua_agents.calls import ToolLimits, settle_open_calls
from interlingua_agents.loop import AgentLoop
from interlingua_agents.memory import AsyncMemoryTurn, MemoryTurn
from interlingua_agents.protocols import (
    AsyncSessionLike,
    AsyncStartableSteps,
    Compactor,
    ConversationPort,
    SessionLike,
    StartableSteps,
)
from interlingua_agents.results import CallDecision, Defer, RunResult, RunStop
from interlingua_agents.run import AgentRun, Confirm, PriorMessages
from interlingua_agents.run_events import Listener
from interlingua_agents.streams import AsyncRunStream, RunStream
from interlingua_agents.tools import Policy, Tool, Toolbox

if TYPE_CHECKING:
    from typing_extensions import TypeForm
    from typing_extensions import TypeVar as DefaultTypeVar

    _S = DefaultTypeVar("_S", default=Any)

AnswerT = TypeVar("AnswerT")
Prompt: TypeAlias = str | Message | Iterable[ContentBlock] | None
"""The user's message of a run; None continues with the history."""


class AgentSettings(TypedDict, total=False):
    """The settings of an `Agent` by name, without its model and output."""

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
    listen: Listener | None
    on_stop: Callable[[RunStop], None] | None
    workspace: str | Path | None
    options: Mapping[str, Any] | None


def _places(**more: str) -> dict[str, str]:
    return {**dict.fromkeys(inspect.signature(Client).parameters, "pass a client to the run: Client(…, {}=…)"), **more}


def _places_of_runs() -> dict[str, str]:
    settings = dict.fromkeys(inspect.signature(Agent).parameters, "set it on the agent: Agent(…, {}=…)")
    return _places(**settings, messages="pass history=…", system="set it on the agent: Agent(…, instructions=…)")


_explained = explain_arguments("it is an option of the requests: Agent(…, options={{'{}': …}})", _places_of_runs)


@attrs.frozen(init=False, eq=False)
class Agent(Generic[AnswerT]):
    """A model with tools and instructions. It is frozen, keeps no state between runs, and may run many times at once.

    Args:
        model: name of the model, as for a client, or a list of names: if one fails, the next is asked; None: the
            client's default, or the session's choice.
        tools: the tools that the model may call. A definition without a function is offered too; a call of it ends the
            run.
        output: the type of the answer, or an `OutputFormat`; None for text.
        output_retries: number of further attempts after an answer that does not fit the type; the model is told what is
            wrong.
        instructions: a system message that is sent before the history and is not part of it.
        name: name in traces.
        description: description in traces.
        confirm: asked for consent before a tool runs that may change something, on the caller's thread, one question at
            a time; may be `async` in asynchronous code. Without it such calls are rejected, and the model reads why.
            `DEFER` leaves them open, which ends the run.
        policy: decides which tools may run, and which need consent.
        limits: limits of calls and results.
        max_turns: maximum number of answers in one run.
        budget_usd: maximum cost of the answers of one run.
        decode_strings: True to parse objects that a model wrote as JSON strings inside of arguments.
        compactor: called between the answers of a run.
        listen: called with every event, which `stream` yields too; answers are then streamed if the model can.
        on_stop: called with the end of each run.
        workspace: the folder that tools work in, overriding the client's.
        options: options of every request: fields of `RequestKwargs` by name. A forced `tool_choice` holds for the first
            answer only.

    Raises:
        CallerError: two tools share a name, an item is not a tool, or a limit is invalid.
    """

    model: str | Sequence[str] | None
    toolbox: Toolbox
    output: Any
    output_retries: int
    instructions: Message | None
    name: str
    workspace: str | Path | None
    options: Mapping[str, Any]
    _loop: AgentLoop = attrs.field(repr=False)

    @overload
    def __init__(
        self: Agent[str],
        model: str | Sequence[str] | None = None,
        *,
        output: None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[_S],
        model: str | Sequence[str] | None = None,
        *,
        output: TypeForm[_S],
        **settings: Unpack[AgentSettings],
    ) -> None: ...

    @overload
    def __init__(
        self: Agent[_S],
        model: str | Sequence[str] | None = None,
        *,
        output: OutputFormat[_S] | Mapping[str, Any],
        **settings: Unpack[AgentSettings],
    ) -> None: ...

    @explain_arguments(
        "it is an option of the requests: options={{'{}': …}}", lambda: _places(system="use instructions=…")
    )
    def __init__(
        self,
        model: str | Sequence[str] | None = None,
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
        listen: Listener | None = None,
        on_stop: Callable[[RunStop], None] | None = None,
        workspace: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        loop = AgentLoop(
            Toolbox(tools),
            confirm=confirm,
            policy=policy,
            limits=limits,
            max_turns=max_turns,
            budget_usd=budget_usd,
            decode_strings=decode_strings,
            compactor=compactor,
            listen=listen,
            on_stop=on_stop,
            name=name,
            description=description,
        )
        self.__attrs_init__(
            model,
            loop.toolbox,
            output,
            output_retries,
            system(instructions) if instructions else None,
            name,
            workspace,
            dict(options or {}),
            loop,
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order in which the model is offered them."""
        return tuple(self.toolbox)

    @_explained
    async def run(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: AsyncSessionLike | None = None,
        client: AsyncClient | None = None,
        decisions: Sequence[CallDecision] = (),
    ) -> RunResult[AnswerT]:
        """Ask, run the calls, ask again until the model is done.

        Args:
            prompt: the user's message; None continues with the history, for example with `decisions`.
            history: the messages before it; not changed. The new messages are the result's `messages`.
            session: a stored conversation, used instead of `history` and `client`.
            client: sends the requests; None: a client for this run alone.
            decisions: decisions about the calls at the end of the history (`approve`, `reject`).

        Raises:
            CallerError: the arguments do not fit each other.
            InterlinguaError: no answer; `messages_of(error)` returns the messages added before.
        """
        opening = self._open_async(prompt, history, session, client, decisions, streamed=False)
        async with opening as run:
            async with aclosing(run.events()) as batches:
                async for _ in batches:
                    pass
            return run.result

    @_explained
    def run_sync(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: SessionLike | None = None,
        client: Client | None = None,
        decisions: Sequence[CallDecision] = (),
    ) -> RunResult[AnswerT]:
        """`run` for blocking code."""
        with self._open(prompt, history, session, client, decisions, streamed=False) as run:
            for _ in run.events_blocking():
                pass
            return run.result

    @_explained
    def stream(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: AsyncSessionLike | None = None,
        client: AsyncClient | None = None,
        decisions: Sequence[CallDecision] = (),
    ) -> AsyncRunStream[AnswerT]:
        """`run` as a stream of events through all turns: use it in `async with` and iterate."""
        return AsyncRunStream(self._open_async(prompt, history, session, client, decisions, streamed=True))

    @_explained
    def stream_sync(
        self,
        prompt: Prompt = None,
        *,
        history: Sequence[Message] = (),
        session: SessionLike | None = None,
        client: Client | None = None,
        decisions: Sequence[CallDecision] = (),
    ) -> RunStream[AnswerT]:
        """`stream` for blocking code."""
        return RunStream(self._open(prompt, history, session, client, decisions, streamed=True))

    @contextmanager
    def _open(
        self,
        prompt: Prompt,
        history: Sequence[Message],
        session: SessionLike | None,
        client: Client | None,
        decisions: Sequence[CallDecision],
        *,
        streamed: bool,
    ) -> Iterator[AgentRun]:
        _check_arguments(prompt, history, session, client, decisions, asynchronous=False)
        with ExitStack() as stack:
            turn: StartableSteps
            if session is None:
                used = stack.enter_context(Client(self.model)) if client is None else client
                turn = MemoryTurn(used, list(history), question=_question(prompt), **self._memory_arguments())
            else:
                session.refresh()
                turn = session.turn(prompt, tools=self._loop.definitions, **self._session_arguments())
            prior = _prior_messages(turn, prompt)
            turn.start()
            plan = self._plan(turn, streamed=streamed)
            yield self._loop.start(
                turn, streamed=streamed, decisions=decisions, plan=plan, retries=self.output_retries, prior=prior
            )

    @asynccontextmanager
    async def _open_async(
        self,
        prompt: Prompt,
        history: Sequence[Message],
        session: AsyncSessionLike | None,
        client: AsyncClient | None,
        decisions: Sequence[CallDecision],
        *,
        streamed: bool,
    ) -> AsyncIterator[AgentRun]:
        _check_arguments(prompt, history, session, client, decisions, asynchronous=True)
        async with AsyncExitStack() as stack:
            turn: AsyncStartableSteps
            if session is None:
                used = await stack.enter_async_context(AsyncClient(self.model)) if client is None else client
                turn = AsyncMemoryTurn(used, list(history), question=_question(prompt), **self._memory_arguments())
            else:
                session.refresh()
                turn = session.turn(prompt, tools=self._loop.definitions, **self._session_arguments())
            prior = _prior_messages(turn, prompt)
            await turn.start()
            plan = self._plan(turn, streamed=streamed)
            yield self._loop.start_async(
                turn, streamed=streamed, decisions=decisions, plan=plan, retries=self.output_retries, prior=prior
            )

    def _plan(self, turn: ConversationPort, *, streamed: bool) -> OutputPlan[Any] | None:
        """Set the turn's instructions; return how a typed answer is asked for."""
        turn.instructions = self.instructions
        if self.output is None:
            return None
        plan = turn.plan_output(self.output, self.toolbox.definitions, stream=streamed)
        lead = [] if self.instructions is None else [self.instructions]
        instructed = plan.messages([*lead, _ANY])[:-1]
        turn.instructions = instructed[0] if instructed else None
        return plan

    def _memory_arguments(self) -> dict[str, Any]:
        return {"model": self.model, "workspace": self.workspace, **self.options}

    def _session_arguments(self) -> dict[str, Any]:
        return {"model": self.model, **self.options}


_ANY = user("-")  # a placeholder for the conversation, if only the messages before it are needed


def _check_arguments(
    prompt: Prompt,
    history: Sequence[Message],
    session: Any,
    client: Any,
    decisions: Sequence[CallDecision],
    *,
    asynchronous: bool,
) -> None:
    if session is not None and (client is not None or history):
        raise CallerError("pass either session=, or history= and client=: a session has both")
    sender = session if client is None else client
    if sender is not None and inspect.iscoroutinefunction(sender.send) is not asynchronous:
        ways = "run and stream need an AsyncSession or AsyncClient"
        raise CallerError(ways if asynchronous else "run_sync and stream_sync need a Session or Client")
    wrong = next((one for one in history if not isinstance(one, Message)), None)
    if wrong is not None:
        kind = type(wrong).__name__
        raise CallerError(
            f"history must contain messages, not {kind}: make them with user(), assistant() or loads_message()"
        )
    if prompt is not None and decisions:
        raise CallerError("pass decisions= without a prompt: they are about the calls at the end of the history")
    if prompt is None and session is None and not history:
        raise CallerError("nothing to answer: pass a prompt, or a history that ends in a question or open calls")


def _question(prompt: Prompt) -> Message | None:
    return prompt if prompt is None or isinstance(prompt, Message) else user(prompt)


def _prior_messages(turn: ConversationPort, prompt: Prompt) -> PriorMessages:
    """Note which messages the conversation has; add results for open calls if the user continues without them."""
    known = frozenset([message.id for message in turn.messages])
    return PriorMessages(known=known, settled=settle_open_calls(turn) if prompt is not None else ())

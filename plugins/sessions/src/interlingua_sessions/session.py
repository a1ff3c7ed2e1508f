"""`Session` and `AsyncSession`: a stored conversation and the models that answer in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast, overload

from interlingua import AsyncClient, CallerError, Client
from interlingua.plugins import WireRequest, explain_arguments, messages_markdown
from interlingua.types import Message, Role, ToolDefinition
from interlingua_agents.loop import AgentLoop
from interlingua_agents.protocols import Compactor
from interlingua_agents.run import AgentRun
from interlingua_agents.streams import AsyncRunStream, RunStream
from interlingua_agents.tools import Tool, Toolbox
from interlingua_sessions.compaction import Compaction
from interlingua_sessions.routing.policy import RoutingPolicy
from interlingua_sessions.routing.router import Delegation, PatternStore
from interlingua_sessions.store import SessionEntry, SessionRecord, Store, open_store
from interlingua_sessions.streams import AsyncSessionStream, SessionStream, in_thread
from interlingua_sessions.turn import (
    ClientT,
    Content,
    ContextBuilder,
    SessionSetup,
    SessionState,
    SystemPrompt,
    TurnBase,
    model_names,
    places_of_settings,
    with_refused,
)

TurnT = TypeVar("TurnT", bound=TurnBase[Any])


class SessionBase(ABC, Generic[ClientT, TurnT]):
    """The parts of a session that never wait for a model, shared by the blocking and the asynchronous class."""

    _turn_type: type[TurnT]

    def __init__(
        self,
        state: SessionState,
        client: ClientT,
        compactor: Compactor | None,
        *,
        own_client: ClientT | None = None,
        own_store: Store | None = None,
    ) -> None:
        self._state = state
        self._client: ClientT = client
        self._compactor = compactor
        self._own_client: ClientT | None = own_client
        self._own_store = own_store

    @staticmethod
    @abstractmethod
    def _default_client() -> ClientT: ...

    @classmethod
    @explain_arguments("it is an option of the turns: options={{'{}': …}}", places_of_settings)
    def open(
        cls,
        store: Store | str | Path,
        session_id: str | None = None,
        *,
        client: ClientT | None = None,
        model: str | Sequence[str] | None = None,
        system: str | SystemPrompt | None = None,
        policy: RoutingPolicy | None = None,
        patterns: PatternStore | None = None,
        user_id: str | None = None,
        team_id: str | None = None,
        workspace: str = "",
        context: ContextBuilder | None = None,
        compactor: Compactor | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open a session; create it if its id does not exist.

        Args:
            store: an open store, which is not closed, or the place of a store.
            session_id: None creates a session with a new id.
            client: None creates a client, which is closed with the session.
            model: the model used if neither caller nor policy sets one; None: the client's default.
            system: prepended to a conversation that has no system message; a stored one is kept.
            policy: replaces the session's routing policy; None keeps the stored one.
            patterns: a pattern store, asked for each turn.
            user_id: stable pseudonymous id written onto each message, and not sent to any provider.
            team_id: same, for a team.
            workspace: folder the session works in, for a new session.
            context: selects what a model sees of history and entries; None: `build_context`, all until compaction.
            compactor: keeps the context inside the window.
            options: request options of every turn, fields of `RequestKwargs`.

        Raises:
            StoreError: the store cannot be opened or read.
            CallerError: the stored policy cannot be read, or the client's default model is not a model.
        """
        used = client if client is not None else cls._default_client()
        setup = SessionSetup(
            registry=used.registry,
            defaults=used.models if model is None else model_names(model),
            prompt=SystemPrompt(base=system) if isinstance(system, str) else system,
            patterns=patterns,
            user_id=user_id,
            team_id=team_id,
            context=context,
            options=dict(options or {}),
        )
        opened = open_store(store) if isinstance(store, (str, Path)) else store
        own_store = None if opened is store else opened
        try:
            state = SessionState.open(opened, session_id, setup, workspace=workspace, policy=policy)
        except BaseException:
            if own_store is not None:
                own_store.close()
            raise
        return cls(state, used, compactor, own_client=used if client is None else None, own_store=own_store)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._state.id

    @property
    def store(self) -> Store:
        """Where it is kept."""
        return self._state.store

    @property
    def record(self) -> SessionRecord:
        """The session's row in the store, as of the last turn."""
        return self._state.record

    @property
    def messages(self) -> Sequence[Message]:
        """The history, oldest first, as of the last turn."""
        return tuple(self._state.messages)

    @property
    def entries(self) -> Sequence[SessionEntry]:
        """The session-only entries, oldest first."""
        return tuple(self._state.entries)

    @property
    def active_model(self) -> str | None:
        """The model that the session was switched to; None if the policy decides."""
        return self._state.record.active_model

    @property
    def policy(self) -> RoutingPolicy:
        """The session's routing policy."""
        return self._state.policy

    def _repr_markdown_(self) -> str:
        return messages_markdown(self._state.messages)

    def context(self) -> Sequence[Message]:
        """Return the messages that the next turn sends, without its question."""
        return self._state.context()

    def refresh(self) -> None:
        """Read what other processes did to the session since; each turn begins with it."""
        self._state.refresh()

    def add(self, message: Message) -> Message:
        """Append a message by hand, such as an earlier exchange; returns it as stored.

        Tool results inside a user's message are stored before it, as separate messages.
        """
        return self._state.append([message])[-1]

    @explain_arguments()
    def branch(self, at: Message | str | None = None, session_id: str | None = None) -> Self:
        """Return a new session in the same store that has the messages up to one; this session is not changed.

        It uses this session's client and store, and must not outlive them.

        Args:
            at: the last message to keep, or its id; None keeps all.
            session_id: id of the new session; None for a new one.

        Raises:
            CallerError: the session has no such message, or none at all.
            SessionExistsError: a session with this id already exists.
        """
        self.refresh()
        last = self._state.last_id if at is None else at if isinstance(at, str) else at.id
        record = self.store.branch_session(self.id, last, session_id)
        return type(self)(SessionState(self.store, record, self._state.setup), self._client, self._compactor)

    @explain_arguments()
    def undo(self, session_id: str | None = None) -> Self:
        """Return a branch that ends before the newest question; the answer stays in this session.

        Raises:
            CallerError: there is no message before the question.
        """
        self.refresh()
        messages = self._state.messages
        newest = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.USER), 0)
        if newest == 0:
            raise CallerError("there is nothing before the newest question: open a new session")
        return self.branch(messages[newest - 1], session_id)

    def _compaction(self, turn: TurnBase[Any], limit: int | None) -> Compaction:
        """Return the compaction that brings the context under a limit, or to about half of its size."""
        turn.begin()
        return Compaction(limit=limit or max(turn.estimate(turn.context()) // 2, 1))

    @explain_arguments()
    def switch(self, model: str | None, *, reason: str | None = None) -> str | None:
        """Answer with this model from now on; None lets the policy decide again.

        Args:
            model: canonical model id or alias.
            reason: kept, and repeated in the record of each message it decides.

        Returns:
            The model's canonical id.

        Raises:
            SwapRefusedError: it cannot carry the session; the active model is unchanged.
            CallerError: the name is neither a model id nor an alias, or its provider is not installed.
        """
        return self._state.switch(model, reason)

    def turn(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition] = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> TurnT:
        """Return a turn to be driven step by step, as the tool loop does; arguments as for `send`."""
        return self._turn_type(
            self._state, self._client, self._compactor, content,
            model=model, delegate=delegate, tools=tools, options=options,
        )  # fmt: skip


def as_loop(tools: Sequence[ToolDefinition | Tool] | AgentLoop | Toolbox) -> AgentLoop | None:
    """Return the loop that runs these tools, or None for definitions, which are only offered.

    Tools with their functions, or a toolbox of them, get a loop with the usual limits.
    """
    if isinstance(tools, Toolbox):
        return AgentLoop(tools)
    if not isinstance(tools, Sequence):  # a loop, as an agent has it
        return tools
    if not any(isinstance(tool, Tool) for tool in tools):
        return None
    return AgentLoop(cast("Sequence[Tool]", tools))


class SessionTurn(TurnBase[Client]):
    """One turn in progress, driven by tools and compaction; satisfies `interlingua_agents.Steps`."""

    def start(self) -> None:
        """Store the question, then compact the context if it is too large. Only the first call has an effect."""
        if not self.is_started:
            self._state.refresh()
            start = self.prepare_start()
            if (check := self.media_check(start)) is not None:
                with start.checking():
                    self._client.build_request(**check)
            self.store_start(start)
            if self._compactor is not None:
                self._compactor.compact(self)

    def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Make one step: ask the model over the current history, store the answer and return the stored answer.

        Args:
            tools: tools that the model may call.
            **options: fields of `RequestKwargs` for this step, instead of the turn's.

        Raises:
            SwapRefusedError, NoRouteError: no model can answer.
            InterlinguaError: the error of the client, if no other model answers either.
        """
        self.start()
        plan = self.plan(tools, options)
        answer = self._client.send(plan.messages, **plan.arguments)
        return self.add(with_refused(answer, self.note_model(plan, answer)))

    def build_request(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
        """Return the request of the next step, with its ledger; nothing is sent, the question is stored."""
        self.start()
        return self._client.build_request(**self.plan(tools, options).preview)

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> SessionStream:
        """Make one step as a stream, to be used in a `with` statement."""
        return SessionStream(self._state, self, self._client, tools, options, self.start)

    def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model outside the conversation, for example for a summary; nothing is stored."""
        answer: Message = self._client.send(messages, **self.complete_arguments())
        return answer


class Session(SessionBase[Client, SessionTurn]):
    """A stored conversation and the models that answer in it; one thread at a time.

    Every message is in the store before a call returns, and streamed text a moment after it arrived.
    """

    _turn_type = SessionTurn

    @staticmethod
    def _default_client() -> Client:
        return Client()

    def send(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition | Tool] | Toolbox = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> Message:
        """Ask the model and return its answer; both messages are stored.

        Args:
            content: text, blocks or a message; None answers the history without a new message, such as after a failure.
            model: model for this message alone.
            tools: tools that the model may call: definitions, or tools with functions (also as a `Toolbox`), which
                are run as an `Agent` with these tools runs them.
            delegate: the model a planner asks for.
            **options: fields of `RequestKwargs` by name.

        Raises:
            CapabilityError: the model takes no block such as one of the question; nothing was stored.
            SwapRefusedError: `model` cannot answer this; nothing was stored.
            NoRouteError: no model can; nothing was stored.
            InterlinguaError: raised by the client; the question and a partial answer are stored.
        """
        loop = as_loop(tools)
        if loop is None:
            offered = cast("Sequence[ToolDefinition]", tools)
            return self.turn(content, model=model, tools=offered, delegate=delegate, **options).ask(offered)
        turn = self.turn(content, model=model, tools=loop.definitions, delegate=delegate, **options)
        turn.start()
        return loop.run(turn)

    @overload
    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = ...,
        tools: Sequence[ToolDefinition] = ...,
        delegate: str | Delegation | None = ...,
        **options: Any,
    ) -> SessionStream: ...

    @overload
    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = ...,
        tools: Sequence[Tool] | Toolbox,
        delegate: str | Delegation | None = ...,
        **options: Any,
    ) -> RunStream[str]: ...

    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition | Tool] | Toolbox = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> SessionStream | RunStream[str]:
        """Return a stream, to be used in a `with` statement; arguments and errors as for `send`.

        With definitions, or without tools, it is one answer. With tools and their functions it is a run: its events,
        through all turns, while the calls are run.
        """
        loop = as_loop(tools)
        if loop is None:
            offered = cast("Sequence[ToolDefinition]", tools)
            return self.turn(content, model=model, tools=offered, delegate=delegate, **options).stream(offered)
        turn = self.turn(content, model=model, tools=loop.definitions, delegate=delegate, **options)
        return RunStream(_start(loop, turn))

    @explain_arguments(places=lambda: {"share": "open the session with Session.open(…, compactor=Compaction({}=…))"})
    def compact(self, limit: int | None = None) -> bool:
        """Make what the next turns send smaller, by tool results left out and a summary; the messages stay stored.

        Args:
            limit: tokens that the context may have; None for half of what it has.

        Returns:
            True if it became smaller. A summary that the model does not write is logged.
        """
        turn, before = self.turn(), len(self._state.entries)
        self._compaction(turn, limit).compact(turn)
        return len(self._state.entries) > before

    def build_request(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition] = (),
        **options: Any,
    ) -> WireRequest:
        """Return the request that `send` would make, with its ledger; nothing is sent and nothing stored.

        With content the request ends in a message that is not kept, so the next one is joined again: seen only in
        sessions of thousands of messages, and not in `turn(…).build_request()`.
        """
        self.refresh()
        plan = self.turn(content, model=model, tools=tools, **options).preview()
        return self._client.build_request(**plan.preview)

    def close(self) -> None:
        """Close what the session opened itself: the client, the store."""
        if self._own_store is not None:
            self._own_store.close()
        if self._own_client is not None:
            self._own_client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncSessionTurn(TurnBase[AsyncClient]):
    """One turn in progress, driven by tools and compaction; satisfies `interlingua_agents.AsyncSteps`."""

    async def start(self) -> None:
        """As `SessionTurn.start`."""
        if not self.is_started:
            await in_thread(self._state.refresh)
            start = self.prepare_start()
            if (check := self.media_check(start)) is not None:
                with start.checking():
                    await self._client.build_request(**check)
            await in_thread(self.store_start, start)
            if self._compactor is not None:
                await self._compactor.compact_async(self)

    async def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Make one step, as `SessionTurn.ask`."""
        await self.start()
        plan = self.plan(tools, options)
        answer = await self._client.send(plan.messages, **plan.arguments)
        return await in_thread(self.add, with_refused(answer, self.note_model(plan, answer)))

    async def build_request(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> WireRequest:
        """Return the request of the next step, with its ledger; nothing is sent, the question is stored."""
        await self.start()
        return await self._client.build_request(**self.plan(tools, options).preview)

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> AsyncSessionStream:
        """Make one step as a stream, to be used in an `async with` statement."""
        return AsyncSessionStream(self._state, self, self._client, tools, options, self.start)

    async def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model outside the conversation, for example for a summary; nothing is stored."""
        answer: Message = await self._client.send(messages, **self.complete_arguments())
        return answer


class AsyncSession(SessionBase[AsyncClient, AsyncSessionTurn]):
    """As `Session`, with `await`; one task at a time.

    A turn reads and stores in worker threads, so a database that is busy does not hold up the event loop. Plain calls
    (`open`, `add`, `switch`, `refresh`) and what the tool loop and compaction store are brief and are done at once, in
    the loop's own thread.
    """

    _turn_type = AsyncSessionTurn

    @staticmethod
    def _default_client() -> AsyncClient:
        return AsyncClient()

    async def send(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition | Tool] | Toolbox = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> Message:
        """Ask the model and return its answer; both messages are stored. Arguments and errors as for `Session.send`."""
        loop = as_loop(tools)
        if loop is None:
            offered = cast("Sequence[ToolDefinition]", tools)
            return await self.turn(content, model=model, tools=offered, delegate=delegate, **options).ask(offered)
        turn = self.turn(content, model=model, tools=loop.definitions, delegate=delegate, **options)
        await turn.start()
        return await loop.run_async(turn)

    @overload
    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = ...,
        tools: Sequence[ToolDefinition] = ...,
        delegate: str | Delegation | None = ...,
        **options: Any,
    ) -> AsyncSessionStream: ...

    @overload
    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = ...,
        tools: Sequence[Tool] | Toolbox,
        delegate: str | Delegation | None = ...,
        **options: Any,
    ) -> AsyncRunStream[str]: ...

    def stream(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition | Tool] | Toolbox = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> AsyncSessionStream | AsyncRunStream[str]:
        """Return a stream, for an `async with` statement; as `Session.stream`."""
        loop = as_loop(tools)
        if loop is None:
            offered = cast("Sequence[ToolDefinition]", tools)
            return self.turn(content, model=model, tools=offered, delegate=delegate, **options).stream(offered)
        turn = self.turn(content, model=model, tools=loop.definitions, delegate=delegate, **options)
        return AsyncRunStream(_start_async(loop, turn))

    @explain_arguments()
    async def compact(self, limit: int | None = None) -> bool:
        """As `Session.compact`."""
        turn, before = self.turn(), len(self._state.entries)
        await self._compaction(turn, limit).compact_async(turn)
        return len(self._state.entries) > before

    async def build_request(
        self,
        content: Content = None,
        *,
        model: str | Sequence[str] | None = None,
        tools: Sequence[ToolDefinition] = (),
        **options: Any,
    ) -> WireRequest:
        """Return the request that `send` would make, with its ledger; nothing is sent and nothing stored.

        With content the request ends in a message that is not kept, so the next one is joined again: seen only in
        sessions of thousands of messages, and not in `turn(…).build_request()`.
        """
        await in_thread(self.refresh)
        plan = self.turn(content, model=model, tools=tools, **options).preview()
        return await self._client.build_request(**plan.preview)

    async def close(self) -> None:
        """Close what the session opened itself: the client, the store."""
        if self._own_store is not None:
            self._own_store.close()
        if self._own_client is not None:
            await self._own_client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


@contextmanager
def _start(loop: AgentLoop, turn: SessionTurn) -> Iterator[AgentRun]:
    turn.start()
    yield loop.start(turn, streamed=True)


@asynccontextmanager
async def _start_async(loop: AgentLoop, turn: AsyncSessionTurn) -> AsyncIterator[AgentRun]:
    await turn.start()
    yield loop.start_async(turn, streamed=True)

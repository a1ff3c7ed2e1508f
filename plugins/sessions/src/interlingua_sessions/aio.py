"""`AsyncSession`: a stored conversation for asynchronous code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from interlingua import AsyncClient, InterlinguaError
from interlingua.plugins import WireRequest
from interlingua.types import Message, ToolDefinition
from interlingua_agents.protocols import ToolLoop
from interlingua_agents.tools import Toolbox
from interlingua_sessions.routing.router import Delegation
from interlingua_sessions.session import SessionBase, as_loop
from interlingua_sessions.streams import AsyncSessionStream, in_thread
from interlingua_sessions.turn import Content, TurnBase


class AsyncTurn(TurnBase[AsyncClient]):
    """One turn in progress, which tools and compaction drive; satisfies `interlingua_agents.AsyncSteps`."""

    async def start(self) -> None:
        """As `Turn.start`."""
        if not self.is_started:
            await in_thread(self._state.refresh)
            await in_thread(self.store_start, self.prepare_start())
            if self._compactor is not None:
                await self._compactor.compact_async(self)

    async def ask(self, tools: Sequence[ToolDefinition] = ()) -> Message:
        """Make one step, as `Turn.ask`."""
        await self.start()
        plan = self.plan(tools)
        while True:
            try:
                answer = await self._client.send(plan.messages, **plan.arguments)
            except InterlinguaError as error:
                plan = self.plan_after_failure(plan, error)
            else:
                return await in_thread(self.add, answer)

    async def to_wire(self, tools: Sequence[ToolDefinition] = ()) -> WireRequest:
        """Return the request of the next step, with its ledger; nothing is sent, the question is stored."""
        await self.start()
        return await self._client.to_wire(**self.plan(tools).preview)

    def stream(self, tools: Sequence[ToolDefinition] = ()) -> AsyncSessionStream:
        """Make one step as a stream, to be used in an `async with` statement."""
        return AsyncSessionStream(self._state, self, self._client, tools, self.start)

    async def complete(self, messages: Sequence[Message]) -> Message:
        """Ask the turn's model something beside the conversation, such as for a summary; nothing is stored."""
        return await self._client.send(messages, **self.complete_arguments())


class AsyncSession(SessionBase[AsyncClient, AsyncTurn]):
    """As `Session`, with `await`; one task at a time.

    What a turn reads and stores is read and stored in worker threads, so a database that is busy does not hold up the
    event loop. Plain calls (`open`, `add`, `switch`, `refresh`) and what the tool loop and compaction store are brief
    and are done at once, in the loop's own thread.
    """

    _turn_type = AsyncTurn

    @staticmethod
    def _default_client() -> AsyncClient:
        return AsyncClient()

    async def send(
        self,
        content: Content = None,
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] | ToolLoop | Toolbox = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> Message:
        """Say something and return the answer, both stored; arguments and errors as for `Session.send`."""
        if isinstance(tools, Sequence):
            return await self.turn(content, model=model, tools=tools, delegate=delegate, **options).ask(tools)
        loop = as_loop(tools)
        turn = self.turn(content, model=model, tools=loop.definitions, delegate=delegate, **options)
        await turn.start()
        return await loop.run_async(turn)

    def stream(
        self,
        content: Content = None,
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        delegate: str | Delegation | None = None,
        **options: Any,
    ) -> AsyncSessionStream:
        """Return one answer as a stream, for an `async with` statement; arguments, errors as for `Session.stream`."""
        return self.turn(content, model=model, tools=tools, delegate=delegate, **options).stream(tools)

    async def to_wire(
        self,
        content: Content = None,
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        **options: Any,
    ) -> WireRequest:
        """Return the request that `send` would make, with its ledger; nothing is sent and nothing stored.

        With content the request ends in a message that is not kept, so the next one is joined anew: seen only in
        sessions of thousands of messages, and not in `turn(…).to_wire()`.
        """
        await in_thread(self.refresh)
        plan = self.turn(content, model=model, tools=tools, **options).preview()
        return await self._client.to_wire(**plan.preview)

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

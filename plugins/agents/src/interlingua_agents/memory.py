"""A turn over a list of messages and a client: the agent loop without a store.

`AgentLoop(tools).run(MemoryTurn(client, messages))` appends the answers and the tool results to the list.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import attrs

from interlingua import AsyncClient, CallerError, Client, InterlinguaError
from interlingua.output import OutputPlan
from interlingua.plugins import InstrumentedWork
from interlingua.types import Message, MessageStatus, StreamEvent, ToolDefinition, ToolResultBlock, ToolUseBlock
from interlingua_agents.outcomes import ToolOutcome

ClientT = TypeVar("ClientT", Client, AsyncClient)


class _Turn(Generic[ClientT]):
    """Shared code of both turns: the history and its growth.

    Attributes:
        client: the client that sends.
        messages: the history.
        model: canonical id of the model, the first of several.
        workspace: the folder that tools work in; empty for none.
        options: options of every request.
        instructions: a system message that is sent before the conversation and is not part of it, or None.
        hidden: ids of messages that are no longer sent.
        kept_results: whole results, by call id, of calls whose message holds a shortened result.
    """

    def __init__(
        self,
        client: ClientT,
        messages: list[Message],
        *,
        model: str | Sequence[str] | None = None,
        workspace: str | Path | None = None,
        question: Message | None = None,
        **options: Any,
    ) -> None:
        name = client.model if model is None else model if isinstance(model, str) else next(iter(model), None)
        if not name:
            raise CallerError("no model: pass model= to this turn or set a default on the client")
        self.client: ClientT = client
        self.messages = messages
        self.model = str(client.registry.resolve(name))
        self.workspace = client.workspace if workspace is None else str(workspace)
        self._models = {} if model is None else {"model": model}
        self.kept_results: dict[str, ToolResultBlock] = {}
        self.options: Mapping[str, Any] = options
        self.instructions: Message | None = None
        self.hidden: set[str] = set()
        self._question = question

    @property
    def id(self) -> str:
        """The session id of the conversation's messages."""
        return self.messages[-1].session_id if self.messages else ""

    def observe(self, event: Mapping[str, Any]) -> None:
        """Pass an event to the plugins' `observe` hooks."""
        self.client.registry.observe(event)

    def instrument(self, kind: str, facts: Mapping[str, Any]) -> InstrumentedWork | None:
        """Begin a piece of work that plugins may wrap."""
        registry = self.client.registry
        return registry.instrument(kind, facts) if registry.plugins else None

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Do nothing: memory does not outlive the process, so the record would not be read."""

    def was_started(self, call: ToolUseBlock) -> bool:
        """Return False: the work of an earlier process is unknown."""
        return False

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is in the history."""
        return any(one.tool_use_id == call.id for message in self.messages for one in message.tool_results)

    def add_result(self, message: Message, outcome: ToolOutcome) -> Message:
        """Append a tool message; `kept_results` keeps the whole result if the message holds a shortened one."""
        if outcome.whole is not None:
            self.kept_results[outcome.call.id] = outcome.whole
        return self.add(message)

    def add(self, message: Message) -> Message:
        """Append a message to the list, with the session id of the other messages."""
        if message.session_id != self.id and self.messages:
            message = attrs.evolve(message, session_id=self.id)
        self.messages.append(message)
        return message

    @contextmanager
    def adding_partial(self) -> Iterator[None]:
        """Append the partial answer of an error; its `partial` is then the appended message."""
        try:
            yield
        except InterlinguaError as error:
            if isinstance(error.partial, Message) and error.partial.content:
                error.partial = self.add(error.partial)
            raise

    def begin(self) -> None:
        """Append the question, once."""
        if self._question is not None:
            self.add(self._question)
            self._question = None

    def arguments(self, tools: Sequence[ToolDefinition], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's arguments of the next step, without the messages."""
        return {**self._models, "tools": tools, **self.options, **options}

    def sent(self) -> list[Message]:
        """Return the messages of the next step: the instructions, then the history without hidden messages."""
        lead = [] if self.instructions is None else [self.instructions]
        return lead + [message for message in self.messages if message.id not in self.hidden]

    def plan_output(self, output: Any, tools: Sequence[ToolDefinition], *, stream: bool) -> OutputPlan[Any]:
        """Return the plan of a typed answer, without `tool_choice`, which the loop handles."""
        options = {name: value for name, value in self.options.items() if name != "tool_choice"}
        return self.client.plan_output(output, model=self.model, tools=tools, stream=stream, **options)


class MemoryTurn(_Turn[Client]):
    """A turn in progress for blocking code; satisfies `Steps`.

    Args:
        client: sends; it is not closed.
        messages: the conversation, the user's new message last; answers and tool results are appended to this list.
        model: overrides the client's default; of a list, the next one is asked if one fails.
        workspace: the folder that tools work in, overriding the client's.
        question: appended by `start`.
        **options: fields of `RequestKwargs` by name.

    Raises:
        CallerError: no model is set, or the name is not a model.
    """

    def start(self) -> None:
        """Append the question, if it has one."""
        self.begin()

    def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Send the conversation, append the answer and return it. Raises the client's errors."""
        with self.adding_partial():
            return self.add(self.client.send(self.sent(), **self.arguments(tools, options)))

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> MemoryStream:
        """Make one step as a stream; use it in a `with` statement."""
        return MemoryStream(self, self.arguments(tools, options))


class AsyncMemoryTurn(_Turn[AsyncClient]):
    """`MemoryTurn` for asynchronous code; satisfies `AsyncSteps`."""

    async def start(self) -> None:
        """See `MemoryTurn.start`."""
        self.begin()

    async def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """See `MemoryTurn.ask`."""
        with self.adding_partial():
            return self.add(await self.client.send(self.sent(), **self.arguments(tools, options)))

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> AsyncMemoryStream:
        """See `MemoryTurn.stream`; use it with `async with`."""
        return AsyncMemoryStream(self, self.arguments(tools, options))


class _Stream:
    """Shared code of both streams: the answer is appended once, in its final state."""

    def __init__(self, turn: _Turn[Any], arguments: Mapping[str, Any]) -> None:
        self._turn = turn
        self._inner = turn.client.stream(turn.sent(), **arguments)
        self._added: Message | None = None

    @property
    def partial(self) -> Message:
        """The answer received so far; built when read."""
        return self._added or self._inner.partial

    def cancel(self) -> None:
        """Stop and keep the answer received so far; any thread may call it."""
        self._inner.cancel()

    def _add(self, message: Message) -> Message:
        if self._added is None:
            if message.content or message.metadata.status is MessageStatus.COMPLETE:
                message = self._turn.add(message)
            self._added = message
        return self._added

    @contextmanager
    def _adding_failed(self) -> Iterator[None]:
        """Append the partial answer of an error; its `partial` is then the appended message."""
        try:
            yield
        except InterlinguaError as error:
            if isinstance(error.partial, Message):
                error.partial = self._add(error.partial)
            raise


class MemoryStream(_Stream):
    """A streamed answer that is appended to the list in its final state: COMPLETE, CANCELLED or ERROR."""

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._inner.__exit__(None, None, None)
        self._add(self._inner.partial)

    def __iter__(self) -> Iterator[StreamEvent]:
        with self._adding_failed():
            yield from self._inner

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over lists of events, one list for each read, instead of over the stream."""
        with self._adding_failed():
            yield from self._inner.batches()

    @property
    def message(self) -> Message:
        """The answer; reading it waits for the rest.

        Raises:
            InterlinguaError: the error that ended the stream, with `.partial`.
        """
        with self._adding_failed():
            return self._add(self._inner.message)


class AsyncMemoryStream(_Stream):
    """`MemoryStream` with `async with`, `async for` and `await stream.message`."""

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(None, None, None)
        self._add(self._inner.partial)

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        with self._adding_failed():
            async for event in self._inner:
                yield event

    async def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """See `MemoryStream.batches`."""
        with self._adding_failed():
            async for events in self._inner.batches():
                yield events

    @property
    def message(self) -> Awaitable[Message]:
        """`MemoryStream.message`, as an awaitable."""
        return self._rest()

    async def _rest(self) -> Message:
        with self._adding_failed():
            return self._add(await self._inner.message)

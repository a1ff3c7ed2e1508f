"""A turn over a plain list of messages and a client: the agent loop without a store.

`AgentLoop(tools).run(MemoryTurn(client, messages))` extends the list by the answers and the tool results.
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
from interlingua_agents.calls import Answer

ClientT = TypeVar("ClientT", Client, AsyncClient)


class _Turn(Generic[ClientT]):
    """What both faces share: the history, and how it grows.

    Attributes:
        client: sends.
        messages: the history.
        model: canonical id of the model that is asked.
        workspace: the folder that tools work in; empty for none.
        options: of every request.
        instructions: a system message that is sent in front of the conversation and is no part of it, or None.
        hidden: ids of messages that are not sent any more.
        kept_results: whole results, by call id, of calls whose message holds the result shortened.
    """

    def __init__(
        self,
        client: ClientT,
        messages: list[Message],
        *,
        model: str | None = None,
        workspace: str | Path | None = None,
        question: Message | None = None,
        **options: Any,
    ) -> None:
        name = model or client.model
        if name is None:
            raise CallerError("no model: name one for this turn, or give the client a default")
        self.client: ClientT = client
        self.messages = messages
        self.model = str(client.registry.resolve(name))
        self.workspace = client.workspace if workspace is None else str(workspace)
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
        """Begin a piece of work that plugins may put something around."""
        registry = self.client.registry
        return registry.instrument(kind, facts) if registry.plugins else None

    def start_call(self, call: ToolUseBlock, at: datetime) -> None:
        """Do nothing: memory does not outlive the process, so nobody asks later."""

    def was_started(self, call: ToolUseBlock) -> bool:
        """Return False: what an earlier process did is not known."""
        return False

    def is_answered(self, call: ToolUseBlock) -> bool:
        """Tell whether a call's result is in the history."""
        return any(one.tool_use_id == call.id for message in self.messages for one in message.tool_results)

    def add_result(self, message: Message, answer: Answer) -> Message:
        """Append a tool message; a result that it holds shortened is kept whole in `kept_results`."""
        if answer.whole is not None:
            self.kept_results[answer.call.id] = answer.whole
        return self.add(message)

    def add(self, message: Message) -> Message:
        """Append a message to the list, as one of its session."""
        if message.session_id != self.id and self.messages:
            message = attrs.evolve(message, session_id=self.id)
        self.messages.append(message)
        return message

    @contextmanager
    def adding_partial(self) -> Iterator[None]:
        """Append what an error holds of an answer; its `partial` is the appended message then."""
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
        """Return the client's arguments of the next step, besides the messages."""
        return {"model": self.model, "tools": tools, **self.options, **options}

    def sent(self) -> list[Message]:
        """Return what the next step sends: the instructions, then the history without what is hidden."""
        lead = [] if self.instructions is None else [self.instructions]
        return lead + [message for message in self.messages if message.id not in self.hidden]

    def plan_output(self, output: Any, tools: Sequence[ToolDefinition], *, stream: bool) -> OutputPlan[Any]:
        """Return how the model is asked for a typed answer; a forced choice of a tool is the loop's business."""
        options = {name: value for name, value in self.options.items() if name != "tool_choice"}
        return self.client.plan_output(output, model=self.model, tools=tools, stream=stream, **options)


class MemoryTurn(_Turn[Client]):
    """A turn in progress for blocking code; satisfies `Steps`.

    Args:
        client: sends; it stays the caller's.
        messages: the conversation, the user's new message last; answers and tool results are appended to this list.
        model: instead of the client's default.
        workspace: the folder that tools work in, instead of the client's.
        question: appended by `start`.
        **options: fields of `RequestKwargs` by name.

    Raises:
        CallerError: no model is named, or the name is no model.
    """

    def start(self) -> None:
        """Append the question, where there is one."""
        self.begin()

    def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """Send the conversation, append the answer and return it; raises what the client raises."""
        with self.adding_partial():
            return self.add(self.client.send(self.sent(), **self.arguments(tools, options)))

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> MemoryStream:
        """Make one step as a stream, to be used in a `with` statement."""
        return MemoryStream(self, self.arguments(tools, options))


class AsyncMemoryTurn(_Turn[AsyncClient]):
    """As `MemoryTurn`, for asynchronous code; satisfies `AsyncSteps`."""

    async def start(self) -> None:
        """As `MemoryTurn.start`."""
        self.begin()

    async def ask(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> Message:
        """As `MemoryTurn.ask`."""
        with self.adding_partial():
            return self.add(await self.client.send(self.sent(), **self.arguments(tools, options)))

    def stream(self, tools: Sequence[ToolDefinition] = (), **options: Any) -> AsyncMemoryStream:
        """As `MemoryTurn.stream`, with `async with`."""
        return AsyncMemoryStream(self, self.arguments(tools, options))


class _Stream:
    """What both streams share: the answer is appended once, as what it became."""

    def __init__(self, turn: _Turn[Any], arguments: Mapping[str, Any]) -> None:
        self._turn = turn
        self._inner = turn.client.stream(turn.sent(), **arguments)
        self._added: Message | None = None

    @property
    def partial(self) -> Message:
        """What was received so far; made when read."""
        return self._added or self._inner.partial

    def cancel(self) -> None:
        """Stop and keep what was received; any thread may call it."""
        self._inner.cancel()

    def _add(self, message: Message) -> Message:
        if self._added is None:
            if message.content or message.metadata.status is MessageStatus.COMPLETE:
                message = self._turn.add(message)
            self._added = message
        return self._added

    @contextmanager
    def _adding_failed(self) -> Iterator[None]:
        """Add what an error left; its `partial` is the added message then."""
        try:
            yield
        except InterlinguaError as error:
            if isinstance(error.partial, Message):
                error.partial = self._add(error.partial)
            raise


class MemoryStream(_Stream):
    """A streamed answer that is appended to the list as what it became: COMPLETE, CANCELLED or ERROR."""

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
        """Iterate over the events of each read together, in place of iterating over the stream."""
        with self._adding_failed():
            yield from self._inner.batches()

    @property
    def message(self) -> Message:
        """The answer; reading it waits for the rest.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        with self._adding_failed():
            return self._add(self._inner.message)


class AsyncMemoryStream(_Stream):
    """As `MemoryStream`, with `async with`, `async for` and `await stream.message`."""

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
        """As `MemoryStream.batches`."""
        with self._adding_failed():
            async for events in self._inner.batches():
                yield events

    @property
    def message(self) -> Awaitable[Message]:
        """As `MemoryStream.message`, to be awaited."""
        return self._rest()

    async def _rest(self) -> Message:
        with self._adding_failed():
            return self._add(await self._inner.message)

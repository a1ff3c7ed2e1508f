"""A streamed answer that is in the store while it arrives, for blocking and asynchronous code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from interlingua import AsyncClient, AsyncMessageStream, CallerError, Client, InterlinguaError, MessageStream
from interlingua.plugins import WireRequest
from interlingua.types import Message, StreamEvent, TextDelta, ToolDefinition
from interlingua_sessions.persistence import AnswerWriter, in_thread
from interlingua_sessions.turn import SessionState, TurnBase

StreamT = TypeVar("StreamT", MessageStream, AsyncMessageStream)


class _Stream(Generic[StreamT]):
    """What both faces share: the client's stream, and the writer that stores what it gives."""

    def __init__(self, state: SessionState, turn: TurnBase[Any], tools: Sequence[ToolDefinition]) -> None:
        self._state = state
        self._turn = turn
        self._tools = tools
        self._inner: StreamT | None = None
        self._writer: AnswerWriter | None = None

    @property
    def partial(self) -> Message:
        """What was received so far; made anew each time it is read."""
        inner, writer = self._opened()
        return writer.stored or inner.partial

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._opened()[0].request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._opened()[0].cancel()

    def _set_open(self, inner: StreamT) -> AnswerWriter:
        self._inner = inner
        self._writer = AnswerWriter(self._state, lambda: inner.partial)
        return self._writer

    def _opened(self) -> tuple[StreamT, AnswerWriter]:
        if self._inner is None or self._writer is None:
            word = "a with" if isinstance(self, SessionStream) else "an async with"
            raise CallerError(f"the stream is not open: use it in {word} statement")
        return self._inner, self._writer


class SessionStream(_Stream[MessageStream]):
    """As core's `MessageStream`; use it in a `with` statement.

    Entering stores the question, chooses a model and waits for the first event; an overloaded or rate-limited service
    is left for the next allowed model there. While events arrive the answer is saved as PARTIAL; at the end, on
    leaving early, on `cancel` and on Ctrl-C it is stored as what it became.
    """

    def __init__(
        self,
        state: SessionState,
        turn: TurnBase[Client],
        client: Client,
        tools: Sequence[ToolDefinition],
        start: Callable[[], None],
    ) -> None:
        super().__init__(state, turn, tools)
        self._client = client
        self._start = start
        self._events: Iterator[StreamEvent] = iter(())

    def __enter__(self) -> Self:
        self._start()
        plan = self._turn.plan(self._tools)
        while self._inner is None:
            stream = self._client.stream(plan.messages, **plan.arguments)
            try:
                inner = stream.__enter__()
            except InterlinguaError as error:
                plan = self._turn.plan_after_failure(plan, error)
            else:
                self._events = self._run(inner, self._set_open(inner))
        return self

    def __exit__(self, *exc: object) -> None:
        inner, writer = self._opened()
        inner.__exit__(None, None, None)
        writer.settle(inner.partial)

    def __iter__(self) -> Iterator[StreamEvent]:
        self._opened()
        return self._events

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The answer as stored; reading it waits for the rest.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        inner, writer = self._opened()
        if writer.stored is None:
            for _ in self._events:
                pass
        return writer.settle(inner.message)

    @staticmethod
    def _run(inner: MessageStream, writer: AnswerWriter) -> Iterator[StreamEvent]:
        try:
            for event in inner:
                writer.touch()
                yield event
            writer.settle(inner.message)
        except InterlinguaError as error:
            writer.fail(error)
            raise


class AsyncSessionStream(_Stream[AsyncMessageStream]):
    """As `SessionStream`, with `async with`, `async for` and `await stream.message`."""

    def __init__(
        self,
        state: SessionState,
        turn: TurnBase[AsyncClient],
        client: AsyncClient,
        tools: Sequence[ToolDefinition],
        start: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(state, turn, tools)
        self._client = client
        self._start = start
        self._events: AsyncIterator[StreamEvent]

    async def __aenter__(self) -> Self:
        await self._start()
        plan = self._turn.plan(self._tools)
        while self._inner is None:
            stream = self._client.stream(plan.messages, **plan.arguments)
            try:
                inner = await stream.__aenter__()
            except InterlinguaError as error:
                plan = self._turn.plan_after_failure(plan, error)
            else:
                self._events = self._run(inner, self._set_open(inner))
        return self

    async def __aexit__(self, *exc: object) -> None:
        inner, writer = self._opened()
        await inner.__aexit__(None, None, None)
        await in_thread(writer.settle, inner.partial)

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        self._opened()
        return self._events

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text async for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Awaitable[Message]:
        """The answer as stored, to be awaited; that waits for the rest.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`; raised by awaiting.
        """
        return _Rest(self._rest)

    async def _rest(self) -> Message:
        inner, writer = self._opened()
        if writer.stored is None:
            async for _ in self._events:
                pass
        return await in_thread(writer.settle, await inner.message)

    @staticmethod
    async def _run(inner: AsyncMessageStream, writer: AnswerWriter) -> AsyncIterator[StreamEvent]:
        try:
            async for event in inner:
                writer.touch()
                yield event
            await in_thread(writer.settle, await inner.message)
        except InterlinguaError as error:
            await in_thread(writer.fail, error)
            raise


class _Rest:
    """The rest of an answer; nothing runs before it is awaited, so reading `message` alone leaves no coroutine."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        self._rest = rest

    def __await__(self) -> Generator[Any, None, Message]:
        message: Message = yield from self._rest().__await__()
        return message

"""A streamed answer that is in the store while it arrives, for blocking and asynchronous code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any, Self

from interlingua import AsyncClient, AsyncMessageStream, CallerError, Client, InterlinguaError, MessageStream
from interlingua.plugins import WireRequest
from interlingua.types import Message, StreamEvent, TextDelta, ToolDefinition
from interlingua_sessions.persistence import AnswerWriter, in_thread
from interlingua_sessions.state import SessionState
from interlingua_sessions.turn import TurnCore


class SessionStream:
    """As core's `MessageStream`; use it in a `with` statement.

    Entering stores the question, chooses a model and waits for the first event; an overloaded or rate-limited service
    is left for the next allowed model there. While events arrive the answer is saved as PARTIAL; at the end, on
    leaving early, on `cancel` and on Ctrl-C it is stored as what it became.
    """

    def __init__(
        self,
        core: SessionState,
        turn: TurnCore,
        client: Client,
        tools: Sequence[ToolDefinition],
        begin: Callable[[], None],
    ) -> None:
        self._core = core
        self._turn = turn
        self._client = client
        self._tools = tools
        self._begin = begin
        self._inner: MessageStream | None = None
        self._keeping: AnswerWriter | None = None
        self._events: Iterator[StreamEvent] = iter(())

    def __enter__(self) -> Self:
        self._begin()
        plan = self._turn.plan(self._tools)
        while self._inner is None:
            stream = self._client.stream(plan.messages, **plan.arguments)
            try:
                self._inner = stream.__enter__()
            except InterlinguaError as error:
                plan = self._turn.after(plan, error)
        self._keeping = AnswerWriter(self._core, lambda: stream.partial)
        self._events = self._run(self._inner, self._keeping)
        return self

    def __exit__(self, *exc: object) -> None:
        inner, keeping = self._opened()
        inner.__exit__(None, None, None)
        keeping.settle(inner.partial)

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
        inner, keeping = self._opened()
        if keeping.stored is None:
            for _ in self._events:
                pass
        return keeping.settle(inner.message)

    @property
    def partial(self) -> Message:
        """What was received so far; made anew each time it is asked for."""
        inner, keeping = self._opened()
        return keeping.stored or inner.partial

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._opened()[0].request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._opened()[0].cancel()

    def _opened(self) -> tuple[MessageStream, AnswerWriter]:
        if self._inner is None or self._keeping is None:
            raise CallerError("the stream is not open: use it in a with statement")
        return self._inner, self._keeping

    @staticmethod
    def _run(inner: MessageStream, keeping: AnswerWriter) -> Iterator[StreamEvent]:
        try:
            for event in inner:
                keeping.touch()
                yield event
            keeping.settle(inner.message)
        except InterlinguaError as error:
            keeping.fail(error)
            raise


class AsyncSessionStream:
    """As `SessionStream`, with `async with`, `async for` and `await stream.message`."""

    def __init__(
        self,
        core: SessionState,
        turn: TurnCore,
        client: AsyncClient,
        tools: Sequence[ToolDefinition],
        begin: Callable[[], Awaitable[None]],
    ) -> None:
        self._core = core
        self._turn = turn
        self._client = client
        self._tools = tools
        self._begin = begin
        self._inner: AsyncMessageStream | None = None
        self._keeping: AnswerWriter | None = None
        self._events: AsyncIterator[StreamEvent]

    async def __aenter__(self) -> Self:
        await self._begin()
        plan = self._turn.plan(self._tools)
        while self._inner is None:
            stream = self._client.stream(plan.messages, **plan.arguments)
            try:
                self._inner = await stream.__aenter__()
            except InterlinguaError as error:
                plan = self._turn.after(plan, error)
        self._keeping = AnswerWriter(self._core, lambda: stream.partial)
        self._events = self._run(self._inner, self._keeping)
        return self

    async def __aexit__(self, *exc: object) -> None:
        inner, keeping = self._opened()
        await inner.__aexit__(None, None, None)
        await in_thread(keeping.settle, inner.partial)

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

    @property
    def partial(self) -> Message:
        """What was received so far; made anew each time it is asked for."""
        inner, keeping = self._opened()
        return keeping.stored or inner.partial

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._opened()[0].request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._opened()[0].cancel()

    def _opened(self) -> tuple[AsyncMessageStream, AnswerWriter]:
        if self._inner is None or self._keeping is None:
            raise CallerError("the stream is not open: use it in an async with statement")
        return self._inner, self._keeping

    async def _rest(self) -> Message:
        inner, keeping = self._opened()
        if keeping.stored is None:
            async for _ in self._events:
                pass
        return await in_thread(keeping.settle, await inner.message)

    @staticmethod
    async def _run(inner: AsyncMessageStream, keeping: AnswerWriter) -> AsyncIterator[StreamEvent]:
        try:
            async for event in inner:
                keeping.touch()
                yield event
            await in_thread(keeping.settle, await inner.message)
        except InterlinguaError as error:
            await in_thread(keeping.fail, error)
            raise


class _Rest:
    """The rest of an answer, waited for only when somebody awaits it."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        self._rest = rest

    def __await__(self) -> Generator[Any, None, Message]:
        message: Message = yield from self._rest().__await__()
        return message

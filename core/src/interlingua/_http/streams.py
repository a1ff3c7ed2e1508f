"""Streamed answers, blocking and asynchronous: sending, the first event, the others, and what ends them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self, TypeVar

from interlingua._http.shared import Exchange
from interlingua._http.transport import run_without_waiting
from interlingua._plugins.wire import WireRequest
from interlingua._response.stream import StreamReader
from interlingua.errors import APIConnectionError, CallerError, InterlinguaError
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.types.messages import Message, MessageStatus

_T = TypeVar("_T")
_NOTHING = nullcontext()


class BaseStream:
    """What both message streams do; its coroutines wait only where the client's transport does."""

    _reader: StreamReader | None = None  # of the attempt that is being read
    _answer: Any = None
    _message: Message | None = None
    _error: InterlinguaError | None = None
    _first: list[StreamEvent] | None = None  # events that were read before anybody iterates
    _batches: Any = None
    _events: Any = None
    _run: Any
    _iterate: Any

    def __init__(self, exchange: Exchange, client: Any) -> None:
        self._exchange, self._client = exchange, client
        # an instance's attributes are looked at faster
        self._stopped = False  # somebody called `cancel`
        self._ended = False  # all of the body was read, or an error event

    @property
    def partial(self) -> Message:
        """What was received so far, as a message; made anew each time it is asked for."""
        if self._message is not None:
            return self._message
        if self._error is not None and isinstance(self._error.partial, Message):
            return self._error.partial
        return self._snapshot(MessageStatus.PARTIAL)

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._exchange.request.wire

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._stopped = True
        if self._answer is not None and not self._finished:
            self._answer.abort()

    @property
    def _finished(self) -> bool:
        """True when nothing more will come."""
        return self._message is not None or self._error is not None

    async def _enter(self) -> None:
        """Send the request and wait for the first event; what fails before it is tried again."""
        exchange = self._exchange
        with exchange.instrument:
            try:
                while self._events is None:
                    try:
                        self._first = await self._open(exchange)
                        self._batches = self._run()
                        self._events = self._iterate(self._batches)
                    except BaseException as error:
                        await self._close()
                        if not isinstance(error, InterlinguaError):
                            raise
                        await self._client._wait(exchange.retry_delay(error))
            except BaseException as error:
                self._keep_ending(error)
                raise

    async def _open(self, exchange: Exchange) -> list[StreamEvent]:
        """Begin an attempt and return its first events; an error before all content is raised."""
        answer = self._answer = await exchange.send(self._client._transport)
        reader = self._reader = await self._client._open_reader(exchange, answer)
        self._ended = False
        while not (events := await self._read(reader, _NOTHING)) and not self._ended:  # this is inside already
            pass
        exchange.response.first_event = time.monotonic()
        if events and type(events[-1]) is ErrorEvent and not any(hasattr(event, "index") for event in events):
            raise events[-1].error
        return events

    async def _read(self, reader: StreamReader, activity: AbstractContextManager[Any]) -> list[StreamEvent]:
        """Return the events of the next piece of the body, perhaps none, or those of its end."""
        piece = broken = None
        try:
            with activity:
                piece = await anext(self._answer)
        except StopAsyncIteration:
            pass
        except APIConnectionError as error:
            broken = error
        events = [] if piece is None else reader.feed(piece)
        if piece is None or (events and type(events[-1]) is ErrorEvent):
            self._ended = True
            if not self._stopped:
                events += reader.end(broken)
        return events

    async def _next_batch(self) -> list[StreamEvent] | None:
        """Return the events of the next read; None when all were given: the message is there then."""
        reader, (events, self._first) = self._opened(self._reader), (self._first, None)
        try:
            if events is None and not (self._stopped or self._ended):
                events = await self._read(reader, self._exchange.response.activity or _NOTHING)
            if events is None:
                if self._stopped:
                    self._keep_cancelled()
                elif not self._finished:
                    self._message = reader.message()
                    self._exchange.response.report(self._message)
        except BaseException as error:
            self._keep_ending(error)
            raise
        return events

    def _keep_cancelled(self) -> None:
        """Keep what was received as a cancelled message, unless the stream had ended."""
        if not self._finished:
            whole = self._reader is not None and self._reader.complete
            self._message = self._snapshot(MessageStatus.COMPLETE if whole else MessageStatus.CANCELLED)
            self._exchange.response.report(self._message)
            if self._reader is not None:
                self._reader.close()

    def _keep_ending(self, error: BaseException) -> None:
        """Keep the error that ends the stream; what is none of ours (Ctrl-C, a cancelled task) cancels it."""
        if not isinstance(error, InterlinguaError):
            self._keep_cancelled()
            return
        self._error = error
        if error.partial is None:
            error.partial = self._snapshot(MessageStatus.ERROR)
        self._exchange.response.report(error.partial, error)

    def _result(self) -> Message:
        """Return the message, or raise what ended the stream, with `.partial`."""
        if self._error is not None:
            raise self._error
        return self._opened(self._message)

    def _opened(self, made: _T | None) -> _T:
        """Return what opening the stream makes."""
        if made is None:
            raise CallerError("the stream is not open: use it in a with statement, or in an async with statement")
        return made

    def _snapshot(self, status: MessageStatus) -> Message:
        if self._reader is None:
            return self._exchange.request.context.message([], stop_reason=None, status=status)
        return self._reader.partial(status)

    async def _close(self) -> None:
        if self._answer is not None:
            await self._answer.close()


class MessageStream(BaseStream):
    """A streamed answer; use it in a `with` statement and iterate over its events.

    Entering sends the request and waits for the first event: what fails before that is tried again as the client's
    `Retry` says, and raised from here. A failure later comes as a terminal `ErrorEvent`, then is raised with
    `.partial`. Leaving early, `cancel` and Ctrl-C keep what was received as a CANCELLED message.
    """

    def __enter__(self) -> Self:
        run_without_waiting(self._enter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keep_cancelled()
        run_without_waiting(self._close())

    def __iter__(self) -> Iterator[StreamEvent]:
        events: Iterator[StreamEvent] = self._opened(self._events)
        return events

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together; in place of iterating over the stream."""
        batches: Iterator[list[StreamEvent]] = self._opened(self._batches)
        return batches

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The message; reading it waits for the rest of the answer.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`.
        """
        if not self._finished:
            for _ in self:
                pass
        return self._result()

    def _run(self) -> Iterator[list[StreamEvent]]:
        try:
            while (events := run_without_waiting(self._next_batch())) is not None:
                yield events
        finally:
            self._keep_cancelled()
            run_without_waiting(self._close())

    def _iterate(self, batches: Iterator[list[StreamEvent]]) -> Iterator[StreamEvent]:
        for events in batches:
            for event in events:
                if self._stopped:
                    break
                yield event


class AsyncMessageStream(BaseStream):
    """As `MessageStream`, with `async with`, `async for` and `await stream.message`.

    A cancelled task keeps what was received as a CANCELLED message, as leaving early does.
    """

    async def __aenter__(self) -> Self:
        with self._exchange.instrument:
            await self._client._write(self._exchange)
        await self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keep_cancelled()
        if self._events is not None:
            await self._events.aclose()
            await self._batches.aclose()
        await self._close()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        events: AsyncIterator[StreamEvent] = self._opened(self._events)
        return events

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together; in place of `async for` over the stream."""
        batches: AsyncIterator[list[StreamEvent]] = self._opened(self._batches)
        return batches

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The pieces of text alone, as they arrive."""
        return (event.text async for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Awaitable[Message]:
        """The message, to be awaited; that waits for the rest of the answer.

        Raises:
            InterlinguaError: what ended the stream, with `.partial`; raised by awaiting.
        """
        return _Rest(self._rest)

    async def _run(self) -> AsyncIterator[list[StreamEvent]]:
        try:
            while (events := await self._next_batch()) is not None:
                yield events
        finally:
            self._keep_cancelled()
            await self._close()

    async def _iterate(self, batches: AsyncIterator[list[StreamEvent]]) -> AsyncIterator[StreamEvent]:
        async for events in batches:
            for event in events:
                if self._stopped:
                    break
                yield event

    async def _rest(self) -> Message:
        if not self._finished:
            async for _ in self:
                pass
        return self._result()


class _Rest:
    """An awaitable that starts nothing before it is awaited, so that looking at it costs and warns of nothing."""

    def __init__(self, start: Callable[[], Awaitable[Message]]) -> None:
        self._start = start

    def __await__(self) -> Generator[object, None, Message]:
        return self._start().__await__()

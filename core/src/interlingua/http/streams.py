"""Streamed answers, blocking and asynchronous: sending, the first event, the others, and what ends them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from interlingua.errors import APIConnectionError, CallerError, InterlinguaError
from interlingua.http.shared import Exchange
from interlingua.plugins.wire import WireRequest
from interlingua.response.finalize import FAILED
from interlingua.response.stream import StreamReader
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.types.messages import Message, MessageStatus

_T = TypeVar("_T")


class BaseStream:
    """What both message streams have that neither sends nor waits."""

    _reader: StreamReader | None = None  # of the attempt that is being read
    _answer: Any = None
    _message: Message | None = None
    _error: InterlinguaError | None = None

    def __init__(self, exchange: Exchange, client: Any) -> None:
        self._exchange, self._client = exchange, client
        self._stopped = False  # somebody called `cancel`; an instance's attribute is looked at faster
        self._first_events: list[StreamEvent] = []

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
            self._answer.break_off()

    @property
    def _finished(self) -> bool:
        """True when nothing more will come."""
        return self._message is not None or self._error is not None

    def _check_first(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Return the first events; an error before all content is raised, so that it can be tried again."""
        self._exchange.response.first_event = time.monotonic()
        if events and type(events[-1]) is ErrorEvent and self._reader is not None:
            self._reader.end()  # lets the error know the headers
            if not any(hasattr(event, "index") for event in events):
                raise events[-1].error
        return events

    def _finish(self, reader: StreamReader) -> None:
        """Keep the message: all events were delivered; or raise what ended the stream, with `.partial`."""
        self._message = reader.message()
        self._exchange.response.report(self._message)

    def _keep_cancelled(self) -> None:
        """Keep what was received as a cancelled message, unless the stream had ended."""
        if not self._finished:
            whole = self._reader is not None and self._reader.complete
            self._message = self._snapshot(MessageStatus.COMPLETE if whole else MessageStatus.CANCELLED)
            self._exchange.response.report(self._message)
            if self._reader is not None:
                self._reader.close()

    @contextmanager
    def _keep_ending(self) -> Iterator[None]:
        """Keep the error that ends the stream; what is none of ours (Ctrl-C, a cancelled task, leaving) cancels it."""
        try:
            yield
        except InterlinguaError as error:
            self._error = error
            if error.partial is None:
                error.partial = self._snapshot(MessageStatus.ERROR)
            self._exchange.response.report(error.partial, error)
            raise
        except BaseException:
            self._keep_cancelled()
            raise

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


class MessageStream(BaseStream):
    """A streamed answer; use it in a `with` statement and iterate over its events.

    Entering sends the request and waits for the first event: what fails before that is tried again as the client's
    `Retry` says, and raised from here. A failure later comes as a terminal `ErrorEvent`, then is raised with
    `.partial`. Leaving early, `cancel` and Ctrl-C keep what was received as a CANCELLED message.
    """

    _chunks: Iterator[bytes]
    _batches: Iterator[list[StreamEvent]] | None = None
    _events: Iterator[StreamEvent] | None = None

    def __enter__(self) -> MessageStream:
        exchange = self._exchange
        with exchange.around, self._keep_ending():
            while self._events is None:
                try:
                    self._first_events = self._open(exchange)
                    self._batches = self._run()
                    self._events = self._iterate(self._batches)
                except BaseException as error:
                    self._close()
                    if not isinstance(error, InterlinguaError):
                        raise
                    self._client._sleep(exchange.retry_delay(error))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keep_cancelled()
        self._close()

    def __iter__(self) -> Iterator[StreamEvent]:
        return self._opened(self._events)

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together; in place of iterating over the stream."""
        return self._opened(self._batches)

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

    def _open(self, exchange: Exchange) -> list[StreamEvent]:
        answer = self._answer = self._client._transport.open(exchange.begin_attempt(), exchange.deadline)
        if answer.status >= FAILED:
            exchange.response.read(answer.read())
        reader = self._reader = exchange.open_reader(answer, self._client._transport.limit)
        chunks, activity = answer.chunks(), exchange.response.activity
        self._chunks = chunks if activity is None else activity.pull(chunks)
        try:
            for raw in chunks:  # this is inside already
                if events := reader.feed(raw):
                    return self._check_first(events)
        except APIConnectionError as error:
            return self._check_first(reader.end(error))
        return self._check_first(reader.end())

    def _iterate(self, batches: Iterator[list[StreamEvent]]) -> Iterator[StreamEvent]:
        for events in batches:
            for event in events:
                if self._stopped:
                    break
                yield event

    def _run(self) -> Iterator[list[StreamEvent]]:
        reader, events, broken = self._opened(self._reader), self._first_events, None
        try:
            with self._keep_ending():
                try:
                    yield events
                    while not (self._stopped or (events and type(events[-1]) is ErrorEvent)):
                        events = reader.feed(next(self._chunks))
                        yield events
                except StopIteration:
                    pass
                except APIConnectionError as error:
                    broken = error
                if self._stopped:
                    self._keep_cancelled()
                    return
                yield reader.end(broken)
                self._finish(reader)
        finally:
            self._close()

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.close()


class AsyncMessageStream(BaseStream):
    """As `MessageStream`, with `async with`, `async for` and `await stream.message`.

    A cancelled task keeps what was received as a CANCELLED message, as leaving early does.
    """

    _chunks: AsyncIterator[bytes]
    _batches: AsyncGenerator[list[StreamEvent], None] | None = None
    _events: AsyncGenerator[StreamEvent, None] | None = None

    async def __aenter__(self) -> AsyncMessageStream:
        exchange = self._exchange
        with exchange.around:
            await self._client._write(exchange)
            with self._keep_ending():
                while self._events is None:
                    try:
                        self._first_events = await self._open(exchange)
                        self._batches = self._run()
                        self._events = self._iterate(self._batches)
                    except BaseException as error:
                        await self._close()
                        if not isinstance(error, InterlinguaError):
                            raise
                        await self._client._sleep(exchange.retry_delay(error))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keep_cancelled()
        if self._events is not None and self._batches is not None:
            await self._events.aclose()
            await self._batches.aclose()
        await self._close()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._opened(self._events)

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together; in place of `async for` over the stream."""
        return self._opened(self._batches)

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

    async def _open(self, exchange: Exchange) -> list[StreamEvent]:
        await exchange.fetch_secret()
        answer = self._answer = await self._client._transport.open(exchange.begin_attempt(), exchange.deadline)
        reader = self._reader = await self._client._open_reader(exchange, answer)
        chunks, activity = answer.chunks(), exchange.response.activity
        self._chunks = chunks if activity is None else activity.pull_async(chunks)
        try:
            async for raw in chunks:  # this is inside already
                if events := reader.feed(raw):
                    return self._check_first(events)
        except APIConnectionError as error:
            return self._check_first(reader.end(error))
        return self._check_first(reader.end())

    async def _iterate(self, batches: AsyncIterator[list[StreamEvent]]) -> AsyncGenerator[StreamEvent, None]:
        async for events in batches:
            for event in events:
                if self._stopped:
                    break
                yield event

    async def _run(self) -> AsyncGenerator[list[StreamEvent], None]:
        reader, events, broken = self._opened(self._reader), self._first_events, None
        try:
            with self._keep_ending():
                try:
                    yield events
                    while not (self._stopped or (events and type(events[-1]) is ErrorEvent)):
                        events = reader.feed(await anext(self._chunks))
                        yield events
                except StopAsyncIteration:
                    pass
                except APIConnectionError as error:
                    broken = error
                if self._stopped:
                    self._keep_cancelled()
                    return
                yield reader.end(broken)
                self._finish(reader)
        finally:
            await self._close()

    async def _rest(self) -> Message:
        if not self._finished:
            async for _ in self:
                pass
        return self._result()

    async def _close(self) -> None:
        if self._answer is not None:
            await self._answer.close()


class _Rest:
    """An awaitable that starts nothing before it is awaited, so that looking at it costs and warns of nothing."""

    def __init__(self, start: Callable[[], Awaitable[Message]]) -> None:
        self._start = start

    def __await__(self) -> Generator[object, None, Message]:
        return self._start().__await__()

"""Streamed answers, blocking and asynchronous: sending, the first event, the others, and what ends them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Generic, Self, TypeVar

from interlingua._http.exchange import LARGE, Exchange
from interlingua._http.io import run_without_waiting
from interlingua._http.transports import IO
from interlingua._plugins.wire import RequestContext, WireRequest
from interlingua._response.stream import StreamReader
from interlingua.errors import APIConnectionError, APITimeoutError, CallerError, InterlinguaError
from interlingua.output import Answer, OutputPlan, Partial
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.types.messages import Message, MessageStatus

_T = TypeVar("_T")
_NOTHING = nullcontext()


class BaseStream:
    """Shared code of both message streams, written as coroutines that wait by the client's `IO`."""

    _reader: StreamReader | None = None  # of the attempt that is being read
    _body: Any = None
    _message: Message | None = None
    _error: InterlinguaError | None = None
    _first: list[StreamEvent] | None = None  # events that were read before iteration begins
    _batches: Any = None
    _events: Any = None
    _run: Any
    _iterate: Any

    def __init__(self, exchange: Exchange, io: IO) -> None:
        self._exchange, self._io = exchange, io
        # attributes of an instance are looked up faster
        self._stopped = False  # `cancel` was called
        self._ended = False  # all of the body was read, or an error event
        self._unread = 0  # bytes since the last event

    @property
    def partial(self) -> Message:
        """The message as far as it has been received; built at each access."""
        if self._message is not None:
            return self._message
        if self._error is not None and isinstance(self._error.partial, Message):
            return self._error.partial
        return self._snapshot(MessageStatus.PARTIAL)

    @property
    def request(self) -> WireRequest:
        """The request that was sent, with its losses."""
        return self._exchange.request.wire

    def cancel(self) -> None:
        """Stop, and keep what was received as a CANCELLED message. May be called from another thread."""
        self._stopped = self._exchange.stopped = True
        if self._body is not None and not self._finished:
            self._body.abort()

    @property
    def _finished(self) -> bool:
        """True when nothing more will come."""
        return self._message is not None or self._error is not None

    async def _enter(self) -> None:
        """Send the request and wait for the first event; a failure before it is tried again."""
        while self._first is None and not self._finished:
            exchange = self._exchange
            with exchange.instrument:
                try:
                    try:
                        self._first = await exchange.run_attempts(self._io, self._open)
                    except InterlinguaError as error:
                        self._exchange = await (await exchange.after_failure(self._io, error)).build_first(self._io)
                        self._exchange.stopped = self._stopped
                except BaseException as error:
                    self._keep_ending(error)
                    if not (self._stopped and self._message):
                        raise
        self._batches = self._run()
        self._events = self._iterate(self._batches)

    async def _open(self, io: IO) -> list[StreamEvent]:
        """Begin an attempt and return its first events; an error before all content is raised."""
        try:
            self._reader = None
            self._body = await self._exchange.open(io)
            self._reader = await self._exchange.open_reader(self._body, io)
            return await self._read_first(self._reader)
        except BaseException as error:
            if isinstance(error, InterlinguaError) and error.partial is None and self._reader is not None:
                error.partial = self._snapshot(MessageStatus.ERROR)  # it may hold what the attempt cost
            await self._close()
            raise

    async def _read_first(self, reader: StreamReader) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        self._ended = False
        while not self._ended:
            events += await self._read(reader, _NOTHING)  # this is inside already
            if any(hasattr(event, "index") for event in events):
                break  # content
            if events and self._exchange.chain is None:
                break  # with further models, after a failure before the first content the next one is asked
        self._exchange.response.first_event = time.monotonic()
        if events and type(events[-1]) is ErrorEvent and not any(hasattr(event, "index") for event in events):
            raise events[-1].error
        return events

    async def _read(self, reader: StreamReader, activity: AbstractContextManager[Any]) -> list[StreamEvent]:
        """Return the events of the next piece of the body, possibly an empty list, or those of its end."""
        piece = broken = None
        try:
            with activity:
                piece = await anext(self._body)
        except StopAsyncIteration:
            pass
        except APIConnectionError as error:
            broken = error
        events: list[StreamEvent] = []
        if piece is not None:
            events = await self._io.load(reader.feed, piece) if self._unread > LARGE else reader.feed(piece)
            self._unread = 0 if events else self._unread + len(piece)
        goes_on = self._exchange.take_announced(reader) and not (self._stopped or isinstance(broken, APITimeoutError))
        if piece is None and goes_on:
            with activity:
                await self._continue(reader)
        elif piece is None or (events and type(events[-1]) is ErrorEvent):
            self._ended = True
            if not self._stopped:
                events += reader.end(broken)
        return events

    async def _continue(self, reader: StreamReader) -> None:
        """Begin to read what continues the stream."""
        await self._body.close()
        try:
            self._body = await self._exchange.run_attempts(self._io, partial(self._exchange.continue_stream, reader))
        except InterlinguaError as error:
            error.partial = self._snapshot(MessageStatus.ERROR)
            raise

    async def _next_batch(self) -> list[StreamEvent] | None:
        """Return the events of the next read; None after the last, when the message is complete."""
        if self._reader is None and self._message is not None:  # cancelled before anything was read
            return None
        reader, (events, self._first) = self._opened(self._reader), (self._first, None)
        try:
            if events is None and not (self._stopped or self._ended):
                events = await self._read(reader, self._exchange.response.activity or _NOTHING)
            if events is None:
                if self._stopped:
                    self._keep_cancelled()
                elif not self._finished:
                    await self._exchange.read_usage(self._io)
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
        """Keep the error that ends the stream; any other exception (Ctrl-C, a cancelled task) cancels the stream."""
        if self._stopped or not isinstance(error, InterlinguaError):
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
        """Return something that exists only in an open stream."""
        if made is None:
            raise CallerError("the stream is not open: use it in a with or async with statement")
        return made

    def _read_answer(self, message: Message) -> Answer[Any]:
        plan: OutputPlan[Any] = self._exchange.plan
        return plan.answer(message, self.request.losses)

    def _snapshot(self, status: MessageStatus) -> Message:
        if self._reader is None:
            context: RequestContext = self._opened(getattr(self._exchange.request, "context", None))  # once built
            return self._exchange.response.finalize(context.message([], stop_reason=None, status=status))
        return self._reader.partial(status)

    async def _close(self) -> None:
        if self._body is not None:
            await self._body.close()
        self._exchange.end_turn(self._message)
        if self._finished and (self._message is None or self._message.metadata.status is MessageStatus.CANCELLED):
            await self._exchange.leave(self._io, self._error)


class MessageStream(BaseStream):
    """A streamed answer; use it in a `with` statement and iterate over its events.

    Entering sends the request and waits for the first event. A failure before that is retried as the client's `Retry`
    says, then raised here. A later failure arrives as a terminal `ErrorEvent`, then is raised with `.partial`. Leaving
    early, `cancel` and Ctrl-C keep what was received as a CANCELLED message.
    """

    def __enter__(self) -> Self:
        run_without_waiting(self._enter())
        return self

    def __exit__(self, *_error: object) -> None:
        self._keep_cancelled()
        run_without_waiting(self._close())

    def __iter__(self) -> Iterator[StreamEvent]:
        return iter(self._opened(self._events))

    def batches(self) -> Iterator[list[StreamEvent]]:
        """Iterate over lists of events, one for each read of the answer, instead of iterating over the stream."""
        return iter(self._opened(self._batches))

    @property
    def text_stream(self) -> Iterator[str]:
        """The text of the answer alone, in pieces as they arrive."""
        return (event.text for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Message:
        """The message; reading it waits for the rest of the answer.

        Raises:
            InterlinguaError: the error that ended the stream, with `.partial`.
        """
        if not self._finished:
            for _ in self:
                pass
        return self._result()

    def show(self) -> Message:
        """Print the text as it arrives, in a notebook into one output that is updated; return the message."""
        from interlingua._display import LiveOutput  # noqa: PLC0415  only for streams that are shown

        live = LiveOutput()
        for text in self.text_stream:
            live.add(text)
        live.end([self.message])
        return self.message

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
        self._exchange = await self._exchange.build_first(self._io)
        await self._enter()
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._keep_cancelled()
        if self._events is not None:
            await self._events.aclose()
            await self._batches.aclose()
        await self._close()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return aiter(self._opened(self._events))

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """Iterate over lists of events, one for each read of the answer, instead of `async for` over the stream."""
        return aiter(self._opened(self._batches))

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The text of the answer alone, in pieces as they arrive."""
        return (event.text async for event in self if type(event) is TextDelta)

    @property
    def message(self) -> Awaitable[Message]:
        """The message, to be awaited; that waits for the rest of the answer.

        Raises:
            InterlinguaError: the error that ended the stream, with `.partial`; raised by awaiting.
        """
        return _Later(self._rest)

    async def show(self) -> Message:
        """See `MessageStream.show`."""
        from interlingua._display import LiveOutput  # noqa: PLC0415  only for streams that are shown

        live = LiveOutput()
        async for text in self.text_stream:
            live.add(text)
        live.end([await self.message])
        return await self.message

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


class _Later(Generic[_T]):
    """An awaitable that starts nothing before it is awaited, so that only reading the property warns of nothing."""

    def __init__(self, start: Callable[[], Awaitable[_T]]) -> None:
        self._start = start

    def __await__(self) -> Generator[object, None, _T]:
        return self._start().__await__()


class OutputStream(MessageStream, Generic[_T]):
    """A streamed typed answer: as `MessageStream`, with `partials` and `answer`."""

    @property
    def partials(self) -> Iterator[Partial]:
        """The incomplete answer, each time it grows."""
        feed = self._exchange.plan.partials().feed
        return (part for event in self if (part := feed(event)) is not None)

    @property
    def answer(self) -> Answer[_T]:
        """The answer; reading it waits for the rest of it.

        Raises:
            InvalidOutputError: it does not fit.
            InterlinguaError: the error that ended the stream, with `.partial`.
        """
        return self._read_answer(self.message)


class AsyncOutputStream(AsyncMessageStream, Generic[_T]):
    """A streamed typed answer: as `AsyncMessageStream`, with `partials` and `await stream.answer`."""

    @property
    def partials(self) -> AsyncIterator[Partial]:
        """The incomplete answer, each time it grows."""
        feed = self._exchange.plan.partials().feed
        return (part async for event in self if (part := feed(event)) is not None)

    @property
    def answer(self) -> Awaitable[Answer[_T]]:
        """The answer, to be awaited; that waits for the rest of it. Awaiting raises the errors of `OutputStream`."""

        async def answer() -> Answer[_T]:
            return self._read_answer(await self._rest())

        return _Later(answer)

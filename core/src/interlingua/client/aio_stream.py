"""`AsyncMessageStream`: a streamed answer for asynchronous code.

Never decodes by itself (the reading does) and never tries again once an event was given out.
The asynchronous client makes these; applications use them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from types import TracebackType

from interlingua.client.exchange import FAILED, Exchange
from interlingua.client.outcome import Outcome
from interlingua.client.reading import Reading
from interlingua.errors import CallerError, InterlinguaError, TransportError
from interlingua.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.messages import Message
from interlingua.transport import AsyncAnswer, AsyncTransport
from interlingua.wire import WireRequest


class AsyncMessageStream:
    """As `MessageStream`, with `async with`, `async for` and `await stream.message`.

    A cancelled task keeps what was received as a CANCELLED message, as leaving early does.
    """

    def __init__(
        self,
        exchange: Exchange,
        write: Callable[[Exchange], Awaitable[Exchange]],
        transport: AsyncTransport,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._outcome = Outcome(exchange)
        self._write = write
        self._transport = transport
        self._sleep = sleep
        self._answer: AsyncAnswer | None = None
        self._chunks: AsyncIterator[bytes]
        self._begun: list[StreamEvent] = []
        self._events: AsyncGenerator[StreamEvent, None] | None = None

    async def __aenter__(self) -> AsyncMessageStream:
        exchange = self._outcome.exchange
        await self._write(exchange)
        try:
            while self._events is None:
                try:
                    self._begun = await self._open(exchange)
                    self._events = self._run()
                except InterlinguaError as error:
                    await self._close()
                    await self._sleep(exchange.pause(error))
        except InterlinguaError as error:
            self._outcome.fail(error)
            raise
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        if self._events is None:
            raise CallerError("the stream is not open: use it in an async with statement")
        return self._events

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

    @property
    def partial(self) -> Message:
        """What was received so far, as a message; made anew each time it is asked for."""
        return self._outcome.partial()

    @property
    def request(self) -> WireRequest:
        """What was sent, with its losses."""
        return self._outcome.request

    def cancel(self) -> None:
        """Stop; what was received stays as a CANCELLED message. May be called from another thread."""
        self._outcome.stopped = True
        if self._answer is not None and not self._outcome.settled:
            self._answer.break_off()

    async def _open(self, exchange: Exchange) -> list[StreamEvent]:
        answer = self._answer = await self._transport.open(exchange.outgoing(), exchange.limits)
        if answer.status >= FAILED:
            exchange.read(answer.status, answer.headers, await answer.read())
        reading = self._outcome.begin(Reading(exchange, answer.status, answer.headers))
        self._chunks = answer.chunks()
        try:
            async for raw in self._chunks:
                events = reading.feed(raw)
                if events:
                    return self._outcome.begun(events)
        except TransportError as error:
            return self._outcome.begun(reading.end(error))
        return self._outcome.begun(reading.end())

    async def _run(self) -> AsyncGenerator[StreamEvent, None]:
        outcome, reading = self._outcome, self._outcome.reading
        assert reading is not None  # noqa: S101
        broken: InterlinguaError | None = None
        events, feed = self._begun, reading.feed
        try:
            try:
                while True:
                    for event in events:
                        if outcome.stopped:
                            break
                        yield event
                    if outcome.stopped or (events and type(events[-1]) is ErrorEvent):
                        break
                    events = feed(await anext(self._chunks))
            except StopAsyncIteration:
                pass
            except TransportError as error:
                broken = error
            if outcome.stopped:
                outcome.cancel()
                return
            for event in reading.end(broken):
                yield event
            outcome.settle()
        except InterlinguaError as error:
            outcome.fail(error)
            raise
        except BaseException:  # the task was cancelled while waiting, or the stream was left
            outcome.cancel()
            raise
        finally:
            await self._close()

    async def _rest(self) -> Message:
        if not self._outcome.settled:
            async for _ in self:
                pass
        return self._outcome.result()

    async def _close(self) -> None:
        if self._answer is not None:
            await self._answer.close()

    async def _leave(self) -> None:
        self._outcome.cancel()
        if self._events is not None:
            await self._events.aclose()
        await self._close()


class _Rest:
    """An awaitable that starts nothing before it is awaited, so that looking at it costs and warns of nothing."""

    def __init__(self, start: Callable[[], Awaitable[Message]]) -> None:
        self._start = start

    def __await__(self) -> Generator[object, None, Message]:
        return self._start().__await__()

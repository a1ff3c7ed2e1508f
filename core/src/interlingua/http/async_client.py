"""The asynchronous client and its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from interlingua.errors import APIConnectionError, CallerError, InterlinguaError
from interlingua.http.limits import Deadline
from interlingua.http.shared import (
    AuxiliaryExchange,
    BaseClient,
    BaseStream,
    Exchange,
    Given,
    RequestOptions,
    image_request,
    read_image,
)
from interlingua.http.transport import AsyncAnswer, AsyncTransport
from interlingua.output import Answer, Output, Partial
from interlingua.plugins.wire import Outgoing, WireRequest, WireResponse
from interlingua.response.finalize import FAILED
from interlingua.response.stream import StreamReader
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.types.messages import Message

if TYPE_CHECKING:
    from interlingua.plugins.provider import Provider
    from interlingua.request.media import Fetched
    from interlingua_output import OutputPlan

_Result = TypeVar("_Result")
_T = TypeVar("_T")


class AsyncMessageStream(BaseStream):
    """As `MessageStream`, with `async with`, `async for` and `await stream.message`.

    A cancelled task keeps what was received as a CANCELLED message, as leaving early does.
    """

    _chunks: AsyncIterator[bytes]
    _batches: AsyncGenerator[list[StreamEvent], None] | None = None
    _events: AsyncGenerator[StreamEvent, None] | None = None

    async def __aenter__(self) -> AsyncMessageStream:
        with self._exchange.around:
            await self._begin(self._exchange)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        if self._events is None:
            raise CallerError("the stream is not open: use it in an async with statement")
        return self._events

    def batches(self) -> AsyncIterator[list[StreamEvent]]:
        """Iterate over the events of each read of the answer, together; in place of `async for` over the stream."""
        if self._batches is None:
            raise CallerError("the stream is not open: use it in an async with statement")
        return self._batches

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

    async def _begin(self, exchange: Exchange) -> None:
        await self._client._write(exchange)
        try:
            while self._events is None:
                try:
                    self._first_events = await self._open(exchange)
                    self._batches = self._run()
                    self._events = self._iterate(self._batches)
                except InterlinguaError as error:
                    await self._close()
                    await self._client._sleep(exchange.retry_delay(error))
        except InterlinguaError as error:
            self._state.fail(error)
            raise
        except BaseException:
            await self._leave()
            raise

    async def _open(self, exchange: Exchange) -> list[StreamEvent]:
        await exchange.fetch_secret()
        answer = self._answer = await self._client._transport.open(exchange.begin_attempt(), exchange.deadline)
        reader = self._state.reader = await self._client._open_reader(exchange, answer)
        chunks, activity = answer.chunks(), exchange.response.activity
        self._chunks = chunks if activity is None else activity.pull_async(chunks)
        try:
            async for raw in chunks:  # this is inside already
                events = reader.feed(raw)
                if events:
                    return self._state.raise_early_error(events)
        except APIConnectionError as error:
            return self._state.raise_early_error(reader.end(error))
        return self._state.raise_early_error(reader.end())

    async def _iterate(self, batches: AsyncIterator[list[StreamEvent]]) -> AsyncGenerator[StreamEvent, None]:
        async for events in batches:
            for event in events:
                if self._state.stopped:
                    break
                yield event

    async def _run(self) -> AsyncGenerator[list[StreamEvent], None]:
        state, reader = self._state, self._state.reader
        assert reader is not None  # noqa: S101
        broken: InterlinguaError | None = None
        events = self._first_events
        try:
            try:
                yield events
                while not (state.stopped or (events and type(events[-1]) is ErrorEvent)):
                    events = reader.feed(await anext(self._chunks))
                    yield events
            except StopAsyncIteration:
                pass
            except APIConnectionError as error:
                broken = error
            if state.stopped:
                state.cancel()
                return
            yield reader.end(broken)
            state.finish()
        except InterlinguaError as error:
            state.fail(error)
            raise
        except BaseException:  # the task was cancelled while waiting, or the stream was left
            state.cancel()
            raise
        finally:
            await self._close()

    async def _rest(self) -> Message:
        if not self._state.finished:
            async for _ in self:
                pass
        return self._state.result()

    async def _close(self) -> None:
        if isinstance(self._answer, AsyncAnswer):
            await self._answer.close()

    async def _leave(self) -> None:
        self._state.cancel()
        if self._events is not None and self._batches is not None:
            await self._events.aclose()
            await self._batches.aclose()
        await self._close()


class AsyncOutputStream(AsyncMessageStream, Generic[_T]):
    """A streamed typed answer: as `AsyncMessageStream`, with `partials` and `await stream.answer`."""

    async def __aenter__(self) -> AsyncOutputStream[_T]:
        await super().__aenter__()
        return self

    @property
    def partials(self) -> AsyncIterator[Partial]:
        """What has arrived of the answer, each time it grows."""
        feed = self._exchange.plan.partials().feed
        return (part async for event in self if (part := feed(event)) is not None)

    @property
    def answer(self) -> Awaitable[Answer[_T]]:
        """The answer, to be awaited; that waits for the rest of it.

        Raises:
            InvalidOutputError: it does not fit; raised by awaiting, as what ended the stream is.
        """
        return _Rest(self._read)

    async def _read(self) -> Answer[_T]:
        answer: Answer[_T] = self._exchange.plan.answer(await self._rest(), self.request.losses)
        return answer


class _Rest(Generic[_T]):
    """An awaitable that starts nothing before it is awaited, so that looking at it costs and warns of nothing."""

    def __init__(self, start: Callable[[], Awaitable[_T]]) -> None:
        self._start = start

    def __await__(self) -> Generator[object, None, _T]:
        return self._start().__await__()


class AsyncClient(BaseClient):
    """As `Client`, with `await`; one may serve several event loops, one after the other or at once.

    What the first request of a kind has to load (modules, certificates, catalogue) is loaded in a thread: adapters'
    hooks are called there once. Connections belong to the loop they were made in and are closed when that loop shuts
    down its asynchronous generators (`asyncio.run` does), or by `close`. Arguments and errors are those of `Client`.
    """

    _transport: AsyncTransport
    _transport_class = AsyncTransport
    _sleep = staticmethod(asyncio.sleep)

    @overload
    async def send(
        self, messages: Given, *, output: None = None, output_retries: int = ..., **options: Unpack[RequestOptions]
    ) -> Message: ...
    @overload
    async def send(
        self, messages: Given, *, output: type[_T] | Output[_T], output_retries: int = ...,
        **options: Unpack[RequestOptions],
    ) -> Answer[_T]: ...  # fmt: skip
    @overload
    async def send(
        self, messages: Given, *, output: Any, output_retries: int = ..., **options: Unpack[RequestOptions]
    ) -> Answer[Any]: ...
    async def send(
        self, messages: Given, *, output: Any = None, output_retries: int = 1, **options: Unpack[RequestOptions]
    ) -> Message | Answer[Any]:
        """Send a conversation and return the assistant's message; arguments and errors as for `Client.send`."""
        plan = attempts = None
        if output is not None:
            plan = await asyncio.to_thread(self._shared.plan_output, output, options)
            attempts = plan.attempts(messages, output_retries)
            messages = attempts.messages
        while True:
            exchange = await self.prepare(messages, plan=plan, **options)
            message: Message | None = None
            while message is None:
                try:
                    message = await self.attempt(exchange)
                except InterlinguaError as error:
                    with exchange.around:
                        await self._sleep(exchange.retry_delay(error))
            if attempts is None:
                return message
            if (answer := attempts.take(message, exchange.request.wire.losses)) is not None:
                return answer
            messages = attempts.messages

    async def prepare(
        self, messages: Given, *, plan: OutputPlan[Any] | None = None, **options: Unpack[RequestOptions]
    ) -> Exchange:
        """Write the request that `send` makes, for who decides when it is sent; arguments and errors as for `send`.

        A `plan` of `plan_output` makes it ask for a typed answer.
        """
        if (model := options.get("model")) not in self._shared.resolved:  # its provider is to be imported
            await asyncio.to_thread(self._shared.resolve_model, model)
        exchange = self._shared.begin_exchange(messages, options, plan=plan)
        with exchange.around:
            return await self._write(exchange)

    async def attempt(self, exchange: Exchange) -> Message:
        """Send a prepared request once and return its answer; `exchange.retry_delay` says what an error asks for."""
        with exchange.around:
            await exchange.fetch_secret()
            response = await self._receive(exchange.begin_attempt(), exchange.deadline)
            exchange.headers = response.headers
            message = await self._call(exchange, exchange.response.read, response)
            self._shared.answered.add(exchange.kind)
            return message

    @overload
    def stream(
        self, messages: Given, *, output: None = None, **options: Unpack[RequestOptions]
    ) -> AsyncMessageStream: ...
    @overload
    def stream(
        self, messages: Given, *, output: type[_T] | Output[_T], **options: Unpack[RequestOptions]
    ) -> AsyncOutputStream[_T]: ...
    @overload
    def stream(self, messages: Given, *, output: Any, **options: Unpack[RequestOptions]) -> AsyncOutputStream[Any]: ...
    def stream(
        self, messages: Given, *, output: Any = None, **options: Unpack[RequestOptions]
    ) -> AsyncMessageStream | AsyncOutputStream[Any]:
        """Return the answer as a stream, to be used in an `async with` statement; arguments as for `send`."""
        exchange = self._shared.begin_exchange(messages, options, stream=True, output=output)
        return AsyncMessageStream(exchange, self) if output is None else AsyncOutputStream(exchange, self)

    async def to_wire(
        self, messages: Given, *, stream: bool = False, output: Any = None, **options: Unpack[RequestOptions]
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, with its ledger, without auth.

        Nothing is sent and nothing fetched: where an image has to be fetched first, its address stands in the place of
        its data, and a row of the ledger says so.
        """
        exchange = self._shared.begin_exchange(messages, options, stream=stream, output=output)
        return exchange.write(None).request.wire

    async def live_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has: names without provider key, of the provider named or the default's.

        Raises:
            CapabilityError: the provider offers no such list.
            ProviderError: the service answered with a failure.
        """
        found: list[str] = await self._ask(self._shared.resolve_provider(provider), "models", {})
        return found

    async def ask(self, provider: str, kind: str, **arguments: Any) -> Any:
        """Ask a provider for what only it offers, such as what an answer cost; its README lists kinds and arguments.

        Raises:
            CapabilityError: the provider offers no such thing.
            ProviderError: the service answered with a failure.
        """
        return await self._ask(self.registry.provider(provider), kind, arguments)

    async def count_tokens(self, messages: Given, **options: Unpack[RequestOptions]) -> int:
        """Ask the service how many input tokens a request has; arguments as for `send`.

        Raises:
            CapabilityError: the provider offers no count; `Provider.estimate_input_tokens` estimates one.
            ProviderError: the service answered with a failure.
        """
        exchange = await self._write(self._shared.begin_exchange(messages, options))
        found: int = await self._ask(exchange.request.provider, "count_tokens", {"request": exchange.request.wire})
        return found

    async def close(self) -> None:
        """Close the running loop's connections, unless the HTTP client is the caller's."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _write(self, exchange: Exchange) -> Exchange:
        await self._transport.prepare()
        fetched = {url: await self._fetch(url) for url in exchange.request.urls}
        return await self._call(exchange, exchange.write, fetched)

    async def _call(self, exchange: Exchange, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function; in a thread until such a request was answered, for it may load modules and a catalogue."""
        if exchange.kind in self._shared.answered:
            return function(*arguments)
        return await asyncio.to_thread(function, *arguments)

    async def _open_reader(self, exchange: Exchange, answer: AsyncAnswer) -> StreamReader:
        if answer.status >= FAILED:
            await self._call(exchange, exchange.response.read, await answer.read())
        reader = await self._call(
            exchange,
            StreamReader,
            exchange.response,
            exchange.connection.framing,
            answer.status,
            answer.headers,
            self._transport.limit,
        )
        self._shared.answered.add(exchange.kind)
        return reader

    async def _ask(self, provider: Provider, kind: str, arguments: Mapping[str, Any]) -> Any:
        auxiliary = AuxiliaryExchange(self._shared, provider, kind, arguments)
        while True:
            try:
                await auxiliary.fetch_secret()
                return auxiliary.read(await self._receive(auxiliary.begin_attempt(), auxiliary.deadline))
            except InterlinguaError as error:
                auxiliary.check_refusal(error)

    async def _receive(self, request: Outgoing, deadline: Deadline) -> WireResponse:
        answer = await self._transport.open(request, deadline)
        return await answer.read()

    async def _fetch(self, url: str) -> Fetched:
        return read_image(url, await self._receive(image_request(url), Deadline(self._shared.timeout)))

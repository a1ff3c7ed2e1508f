"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from interlingua.errors import InterlinguaError
from interlingua.http.limits import Deadline
from interlingua.http.shared import (
    AuxiliaryExchange,
    BaseClient,
    Exchange,
    Given,
    RequestOptions,
    image_request,
    read_image,
)
from interlingua.http.streams import AsyncMessageStream, AsyncOutputStream
from interlingua.http.transport import AsyncAnswer, AsyncTransport
from interlingua.output import Answer, Output
from interlingua.plugins.wire import Outgoing, WireRequest, WireResponse
from interlingua.response.finalize import FAILED
from interlingua.response.stream import StreamReader
from interlingua.types.messages import Message

if TYPE_CHECKING:
    from interlingua.plugins.provider import Provider
    from interlingua.request.media import Fetched
    from interlingua_output import OutputPlan

_Result = TypeVar("_Result")
_T = TypeVar("_T")


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
        """Write the request that `send` makes, as `Client.prepare` does."""
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
        """Return the request that `send` (or `stream`) would make, as `Client.to_wire` does."""
        exchange = self._shared.begin_exchange(messages, options, stream=stream, output=output)
        return exchange.write(None).request.wire

    async def live_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has, as `Client.live_models` does."""
        found: list[str] = await self._ask(self._shared.resolve_provider(provider), "models", {})
        return found

    async def ask(self, provider: str, kind: str, **arguments: Any) -> Any:
        """Ask a provider for what only it offers, as `Client.ask` does."""
        return await self._ask(self.registry.provider(provider), kind, arguments)

    async def count_tokens(self, messages: Given, **options: Unpack[RequestOptions]) -> int:
        """Ask the service how many input tokens a request has, as `Client.count_tokens` does."""
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
        reader = await self._call(exchange, exchange.open_reader, answer, self._transport.limit)
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

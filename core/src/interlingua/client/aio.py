"""`AsyncClient`: send a conversation and get the answer, in asynchronous code.

Never decides anything itself: the exchange says what to send, whether to try again and what the answer is.
Applications come in, through `interlingua`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from interlingua.client.core import ClientCore
from interlingua.client.retry import Retry
from interlingua.errors import CallerError, InterlinguaError
from interlingua.registry import Registry
from interlingua.transport import AsyncTransport, Limits, Outgoing, Timeout

if TYPE_CHECKING:  # a client is made without them
    from interlingua.catalogue import ModelInfo
    from interlingua.client.aio_stream import AsyncMessageStream
    from interlingua.client.exchange import Exchange
    from interlingua.client.resolve import Fetched
    from interlingua.messages import Message, RoutingDecisionRecord
    from interlingua.provider import Provider
    from interlingua.tools import ToolDefinition
    from interlingua.wire import WireRequest


class AsyncClient:
    """As `Client`, with `await`; one may serve several event loops, one after the other or at once (case 30).

    Connections belong to the loop they were made in and are closed when that loop shuts down its asynchronous
    generators (`asyncio.run` does), or by `close`. Arguments and errors are those of `Client`.
    """

    _sleep = staticmethod(asyncio.sleep)

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        registry: Registry | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: Timeout | float | None = None,
        retry: Retry | int | None = None,
        http_client: Any = None,
        headers: Mapping[str, str] | None = None,
        workspace: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._core = ClientCore(
            model, api_key=api_key, base_url=base_url, registry=registry, settings=settings, timeout=timeout,
            retry=retry, headers=headers, workspace=workspace, environ=environ,
        )  # fmt: skip
        self._transport = AsyncTransport(http_client)
        self._core.leave_limits(given_client_has_own=self._transport.own_limits)

    @property
    def registry(self) -> Registry:
        """The providers this client can use."""
        return self._core.registry

    @property
    def model(self) -> str | None:
        """The default model, as it was given."""
        return self._core.model

    async def send(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        routing: RoutingDecisionRecord | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Message:
        """Send a conversation and return the assistant's message; arguments and errors as for `Client.send`."""
        exchange = await self._written(self._exchange(messages, model, tools, routing, user_id, options, stream=False))
        while True:
            try:
                return await self._attempt(exchange)
            except InterlinguaError as error:
                await self._sleep(exchange.pause(error))

    def stream(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        routing: RoutingDecisionRecord | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> AsyncMessageStream:
        """Return the answer as a stream, to be used in an `async with` statement; arguments as for `send`."""
        from interlingua.client.aio_stream import AsyncMessageStream  # noqa: PLC0415  not needed until something is streamed

        exchange = self._exchange(messages, model, tools, routing, user_id, options, stream=True)
        return AsyncMessageStream(exchange, self._written, self._transport, self._sleep)

    async def to_wire(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        stream: bool = False,
        **options: Any,
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, with its ledger, without auth; nothing is sent."""
        user_id = options.pop("user_id", None)
        exchange = await self._written(self._exchange(messages, model, tools, None, user_id, options, stream=stream))
        return exchange.wire

    def models(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return the catalogue of a provider: the one named, else the default model's."""
        return self._core.models(provider)

    async def live_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has: names without provider key, of the provider named or the default's.

        Raises:
            CapabilityError: the provider offers no such list.
            ProviderError: the service answered with a failure.
        """
        known = self.registry.provider(provider) if provider is not None else self._core.known(None).provider
        found: list[str] = await self._asked(known, "models", {})
        return found

    async def ask(self, provider: str, kind: str, **arguments: Any) -> Any:
        """Ask a provider for what only it offers, such as what an answer cost; its README lists kinds and arguments.

        Raises:
            CapabilityError: the provider offers no such thing.
            ProviderError: the service answered with a failure.
        """
        return await self._asked(self.registry.provider(provider), kind, arguments)

    async def count_tokens(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        **options: Any,
    ) -> int:
        """Ask the service how many input tokens a request has; arguments as for `send`.

        Raises:
            CapabilityError: the provider offers no count; `Provider.estimate_input_tokens` estimates one.
            ProviderError: the service answered with a failure.
        """
        user_id = options.pop("user_id", None)
        exchange = await self._written(self._exchange(messages, model, tools, None, user_id, options, stream=False))
        found: int = await self._asked(exchange.provider, "count_tokens", {"request": exchange.wire})
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

    def _exchange(
        self,
        messages: str | Message | Sequence[Message],
        model: str | None,
        tools: Sequence[ToolDefinition],
        routing: RoutingDecisionRecord | None,
        user_id: str | None,
        options: Mapping[str, Any],
        *,
        stream: bool,
    ) -> Exchange:
        return self._core.begin(
            self._core,
            messages,
            model=model,
            tools=tools,
            routing=routing,
            user_id=user_id,
            options=options,
            stream=stream,
        )

    async def _written(self, exchange: Exchange) -> Exchange:
        return exchange.write({url: await self._fetch(url) for url in exchange.urls})

    async def _asked(self, provider: Provider, kind: str, arguments: Mapping[str, Any]) -> Any:
        from interlingua.client.auxiliary import Auxiliary  # noqa: PLC0415  few clients ask for anything

        auxiliary = Auxiliary(self._core, provider, kind, arguments)
        answer = await self._transport.open(auxiliary.outgoing(), auxiliary.limits)
        try:
            body = await answer.read()
        finally:
            await answer.close()
        return auxiliary.read(answer.status, answer.headers, body)

    async def _attempt(self, exchange: Exchange) -> Message:
        answer = await self._transport.open(exchange.outgoing(), exchange.limits)
        try:
            body = await answer.read()
        finally:
            await answer.close()
        return exchange.read(answer.status, answer.headers, body)

    async def _fetch(self, url: str) -> Fetched:
        from interlingua.client.exchange import FAILED  # noqa: PLC0415  with the request that asks for it
        from interlingua.client.resolve import SIZE_LIMIT, Fetched  # noqa: PLC0415  the same

        answer = await self._transport.open(Outgoing("GET", url, {}, b""), Limits(self._core.timeout))
        try:
            if answer.status >= FAILED:
                raise CallerError(f"the image {url} cannot be fetched: HTTP {answer.status}")
            data = bytearray()
            async for chunk in answer.chunks():
                data += chunk
                if len(data) > SIZE_LIMIT:
                    raise CallerError(f"the image {url} is larger than {SIZE_LIMIT} bytes")
            return Fetched(bytes(data), answer.headers.get("content-type", "").partition(";")[0])
        finally:
            await answer.close()

"""The blocking and the asynchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from interlingua._catalogue import ModelInfo
from interlingua._http.limits import Deadline, Retry, Timeout
from interlingua._http.output_streams import AsyncOutputStream, OutputStream
from interlingua._http.shared import (
    AuxiliaryExchange,
    ClientState,
    Exchange,
    MessagesInput,
    RequestKwargs,
    image_request,
    read_image,
)
from interlingua._http.streams import AsyncMessageStream, MessageStream
from interlingua._http.transport import Response, Transport, run_without_waiting
from interlingua._plugins.registry import Registry
from interlingua._plugins.wire import WireRequest
from interlingua._response.finalize import FAILED
from interlingua._response.framing import EVENT_LIMIT
from interlingua._response.stream import StreamReader
from interlingua.errors import InterlinguaError
from interlingua.output import Answer, OutputFormat, OutputPlan
from interlingua.types.messages import Message

if TYPE_CHECKING:
    from interlingua._request.media import Fetched

_Result = TypeVar("_Result")
_T = TypeVar("_T")


class BaseClient:
    """What both clients do: coroutines that wait only in the asynchronous one. The arguments are those of `Client`."""

    _blocking: bool
    _sleep: Callable[[float], Any]

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
        transport: str | None = None,
        headers: Mapping[str, str] | None = None,
        workspace: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        max_response_bytes: int = EVENT_LIMIT,
    ) -> None:
        self._shared = ClientState(
            model, api_key=api_key, base_url=base_url, registry=registry, settings=settings, timeout=timeout,
            retry=retry, headers=headers, workspace=workspace, environ=environ,
        )  # fmt: skip
        self._transport = Transport(http_client, max_response_bytes, transport, blocking=self._blocking)
        if self._transport.own_limits and timeout is None:
            self._shared.timeout = None

    @property
    def registry(self) -> Registry:
        """The providers this client can use."""
        return self._shared.registry

    @property
    def model(self) -> str | None:
        """The default model, as it was given."""
        return self._shared.model

    @property
    def workspace(self) -> str:
        """The folder that `file_ref` media are read from, as it was given; empty for none."""
        return str(self._shared.workspace or "")

    def catalogue(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return the catalogue of a provider: the one named, else the default model's."""
        return self._shared.resolve_provider(provider).models()

    def plan_output(self, output: Any, *, stream: bool = False, **options: Unpack[RequestKwargs]) -> OutputPlan[Any]:
        """Return how a typed answer would be asked for, for loops that send and read by themselves.

        Args:
            output: a type, or an `Output`.
            stream: the answer is to be streamed.
            **options: as for `send`.

        Raises:
            CallerError: no JSON can be read into the type, or an option cannot be read.
            CapabilityError: the mode asked for is not to be had.
        """
        return self._shared.plan_output(output, options, stream=stream)

    async def _send(self, messages: MessagesInput, output: Any, output_retries: int, options: RequestKwargs) -> Any:
        if output is None:
            return await self._complete(await self._begin(messages, options))
        plan = await self._load(self._shared.plan_output, output, options)
        attempts, answer = plan.attempts(messages, output_retries), None
        while answer is None:
            exchange = await self._begin(attempts.messages, options, plan)
            answer = attempts.take(await self._complete(exchange), exchange.request.wire.losses)
        return answer

    async def _begin(self, messages: MessagesInput, options: RequestKwargs, output: Any = None) -> Exchange:
        if (model := options.get("model")) not in self._shared.resolved:  # its provider is to be imported
            await self._load(self._shared.resolve_model, model)
        return self._shared.new_exchange(messages, options, output=output)

    async def _complete(self, exchange: Exchange) -> Message:
        """Write a request and send it until it is answered, or not to be tried again."""
        with exchange.instrument:
            await self._write(exchange)
            while True:
                try:
                    return await self._attempt(exchange)
                except InterlinguaError as error:
                    await self._wait(exchange.retry_delay(error))

    async def _prepare(self, messages: MessagesInput, output: Any, options: RequestKwargs) -> Exchange:
        exchange = await self._begin(messages, options, output)
        with exchange.instrument:
            return await self._write(exchange)

    async def _write(self, exchange: Exchange) -> Exchange:
        if not self._blocking:
            await self._transport.prepare()
        fetched: dict[str, Fetched] = {}
        for url in exchange.request.urls:
            fetched[url] = await self._fetch(url)
        if exchange.kind in self._shared.answered:
            return exchange.write(fetched)
        return await self._load(exchange.write, fetched)

    async def _fetch(self, url: str) -> Fetched:
        answer = await self._transport.open(image_request(url), Deadline(self._shared.timeout))
        return read_image(url, await answer.read())

    async def _attempt(self, exchange: Exchange) -> Message:
        response = await (await exchange.send(self._transport)).read()
        exchange.headers = response.headers
        if exchange.kind in self._shared.answered:
            return exchange.response.read(response)
        message = await self._load(exchange.response.read, response)
        self._shared.answered.add(exchange.kind)
        return message

    async def _open_reader(self, exchange: Exchange, answer: Response) -> StreamReader:
        """Return what reads a streamed answer; raises what a refusal says."""
        if answer.status >= FAILED:
            await self._load(exchange.response.read, await answer.read())
        if exchange.kind in self._shared.answered:
            return exchange.open_reader(answer, self._transport.limit)
        reader = await self._load(exchange.open_reader, answer, self._transport.limit)
        self._shared.answered.add(exchange.kind)
        return reader

    async def _ask(self, provider: str | None, kind: str, arguments: Mapping[str, Any]) -> Any:
        auxiliary = AuxiliaryExchange(self._shared, provider, kind, arguments)
        while True:
            try:
                return auxiliary.read(await (await auxiliary.send(self._transport)).read())
            except InterlinguaError as error:
                auxiliary.check_refusal(error)

    async def _count_tokens(self, messages: MessagesInput, options: RequestKwargs) -> int:
        exchange = await self._write(self._shared.new_exchange(messages, options))
        found: int = await self._ask(exchange.request.provider.key, "count_tokens", {"request": exchange.request.wire})
        return found

    async def _load(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function that may load modules or a catalogue; in a thread, for an event loop should not wait."""
        return function(*arguments) if self._blocking else await self._transport.loops.to_thread(function, *arguments)

    async def _wait(self, seconds: float) -> None:
        if self._blocking:
            self._sleep(seconds)
        else:
            await self._sleep(seconds)


class Client(BaseClient):
    """Talks to any installed provider; safe for use from several threads.

    Args:
        model: default model, `<provider>:<name>` or an alias.
        api_key: key for the provider of `model`; None leaves it to the environment.
        base_url: another address for the provider of `model`.
        registry: installed providers; None finds them.
        settings: provider key -> `api_key`, `base_url`, `api`, `options` (connection options of that provider).
        timeout: limits in seconds; a number is the total of one call.
        retry: when to try again; a number is how many times.
        http_client: an httpx-compatible client, used as it is and left open; its own time limits stay unless `timeout`
            is given or they are the library's default.
        transport: what the requests go by, by name: `httpx`, or that of an installed distribution, such as the faster
            `pycurl` of interlingua-pycurl.
        headers: further request headers, for every request.
        workspace: the folder that `file_ref` media are read from.
        environ: environment variables; None takes the process's.
        max_response_bytes: bytes that a whole body, or one event of a stream, may have, decompressed.

    Raises:
        CallerError: a setting is unknown, or `api_key` or `base_url` comes without `model`.
        UnknownProviderError: the provider of `model` is not installed.
    """

    _blocking = True
    _sleep = staticmethod(time.sleep)

    @overload
    def send(
        self,
        messages: MessagesInput,
        *,
        output: None = None,
        output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Message: ...
    @overload
    def send(
        self, messages: MessagesInput, *, output: type[_T] | OutputFormat[_T], output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Answer[_T]: ...  # fmt: skip
    @overload
    def send(
        self, messages: MessagesInput, *, output: Any, output_retries: int = ..., **options: Unpack[RequestKwargs]
    ) -> Answer[Any]: ...
    def send(
        self, messages: MessagesInput, *, output: Any = None, output_retries: int = 1, **options: Unpack[RequestKwargs]
    ) -> Message | Answer[Any]:
        """Send a conversation and return the assistant's message.

        Args:
            messages: the conversation, one message, or the text of one user message.
            output: the type wanted, or an `Output`; then an `Answer` with a value of it is returned.
            output_retries: how often an answer that does not fit is asked for again, with what is wrong.
            **options: `model`, instead of the client's default; `tools`, what the model may call; `routing`, why this
                model, where a router chose it; `user_id` and `team_id`, stable pseudonymous ids of the end user and the
                team; fields of `RequestKwargs` by name.

        Raises:
            CallerError: a local mistake; nothing was sent.
            InvalidOutputError: no answer fits `output`.
            ProviderError: the service answered with a failure.
            WireError: the answer could not be had, or not read.
        """
        answer: Message | Answer[Any] = run_without_waiting(self._send(messages, output, output_retries, options))
        return answer

    def prepare(self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]) -> Exchange:
        """Write the request that `send` makes, for who decides when it is sent; arguments and errors as for `send`.

        An `output` may be the plan of `plan_output` too, which reads the answer.
        """
        return run_without_waiting(self._prepare(messages, output, options))

    def attempt(self, exchange: Exchange) -> Message:
        """Send a prepared request once and return its answer; `exchange.retry_delay` says what an error asks for."""
        with exchange.instrument:
            return run_without_waiting(self._attempt(exchange))

    @overload
    def stream(
        self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]
    ) -> MessageStream: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: type[_T] | OutputFormat[_T], **options: Unpack[RequestKwargs]
    ) -> OutputStream[_T]: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: Any, **options: Unpack[RequestKwargs]
    ) -> OutputStream[Any]: ...
    def stream(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> MessageStream | OutputStream[Any]:
        """Return the answer as a stream, to be used in a `with` statement; arguments as for `send`."""
        exchange = self._shared.new_exchange(messages, options, stream=True, output=output)
        with exchange.instrument:
            run_without_waiting(self._write(exchange))
        return MessageStream(exchange, self) if output is None else OutputStream(exchange, self, exchange.plan)

    def build_request(
        self, messages: MessagesInput, *, stream: bool = False, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, with its ledger, without auth.

        Nothing is sent and nothing fetched: where an image has to be fetched first, its address stands in the place of
        its data, and a row of the ledger says so.
        """
        exchange = self._shared.new_exchange(messages, options, stream=stream, output=output)
        return exchange.write(None).request.wire

    def list_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has: names without provider key, of the provider named or the default's.

        Raises:
            CapabilityError: the provider offers no such list.
            ProviderError: the service answered with a failure.
        """
        found: list[str] = self.auxiliary(provider, "models")
        return found

    def auxiliary(self, provider: str | None, kind: str, **arguments: Any) -> Any:
        """Ask a provider (None: the default model's) for what only it offers, such as what an answer cost.

        Its README lists kinds and arguments.

        Raises:
            CapabilityError: the provider offers no such thing.
            ProviderError: the service answered with a failure.
        """
        return run_without_waiting(self._ask(provider, kind, arguments))

    def count_tokens(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> int:
        """Ask the service how many input tokens a request has; arguments as for `send`.

        Raises:
            CapabilityError: the provider offers no count; `Provider.estimate_input_tokens` estimates one.
            ProviderError: the service answered with a failure.
        """
        return run_without_waiting(self._count_tokens(messages, options))

    def close(self) -> None:
        """Close the connections, unless the HTTP client is the caller's, and forget the conversations."""
        self._shared.clear()
        run_without_waiting(self._transport.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(BaseClient):
    """As `Client`, with `await`; one may serve several event loops, one after the other or at once.

    What the first request of a kind has to load (modules, certificates, catalogue) is loaded in a thread: adapters'
    hooks are called there once. Connections belong to the loop they were made in and are closed when that loop shuts
    down its asynchronous generators (`asyncio.run` does), or by `close`. Arguments and errors are those of `Client`.
    """

    _blocking = False

    async def _sleep(self, seconds: float) -> None:
        await self._transport.loops.sleep(seconds)

    @overload
    async def send(
        self,
        messages: MessagesInput,
        *,
        output: None = None,
        output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Message: ...
    @overload
    async def send(
        self, messages: MessagesInput, *, output: type[_T] | OutputFormat[_T], output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Answer[_T]: ...  # fmt: skip
    @overload
    async def send(
        self, messages: MessagesInput, *, output: Any, output_retries: int = ..., **options: Unpack[RequestKwargs]
    ) -> Answer[Any]: ...
    async def send(
        self, messages: MessagesInput, *, output: Any = None, output_retries: int = 1, **options: Unpack[RequestKwargs]
    ) -> Message | Answer[Any]:
        """Send a conversation and return the assistant's message; arguments and errors as for `Client.send`."""
        answer: Message | Answer[Any] = await self._send(messages, output, output_retries, options)
        return answer

    async def prepare(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> Exchange:
        """Write the request that `send` makes, as `Client.prepare` does."""
        return await self._prepare(messages, output, options)

    async def attempt(self, exchange: Exchange) -> Message:
        """Send a prepared request once and return its answer; `exchange.retry_delay` says what an error asks for."""
        with exchange.instrument:
            return await self._attempt(exchange)

    @overload
    def stream(
        self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]
    ) -> AsyncMessageStream: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: type[_T] | OutputFormat[_T], **options: Unpack[RequestKwargs]
    ) -> AsyncOutputStream[_T]: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: Any, **options: Unpack[RequestKwargs]
    ) -> AsyncOutputStream[Any]: ...
    def stream(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> AsyncMessageStream | AsyncOutputStream[Any]:
        """Return the answer as a stream, to be used in an `async with` statement; arguments as for `send`."""
        exchange = self._shared.new_exchange(messages, options, stream=True, output=output)
        return (
            AsyncMessageStream(exchange, self) if output is None else AsyncOutputStream(exchange, self, exchange.plan)
        )

    async def build_request(
        self, messages: MessagesInput, *, stream: bool = False, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, as `Client.to_wire` does."""
        exchange = self._shared.new_exchange(messages, options, stream=stream, output=output)
        return exchange.write(None).request.wire

    async def list_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has, as `Client.list_models` does."""
        found: list[str] = await self.auxiliary(provider, "models")
        return found

    async def auxiliary(self, provider: str | None, kind: str, **arguments: Any) -> Any:
        """Ask a provider for what only it offers, as `Client.ask` does."""
        return await self._ask(provider, kind, arguments)

    async def count_tokens(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> int:
        """Ask the service how many input tokens a request has, as `Client.count_tokens` does."""
        return await self._count_tokens(messages, options)

    async def close(self) -> None:
        """Close the running loop's connections, unless the HTTP client is the caller's; forget the conversations."""
        self._shared.clear()
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

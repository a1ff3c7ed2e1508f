"""The blocking and the asynchronous client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, Unpack, cast, overload

from interlingua._catalogue import ModelInfo
from interlingua._http.exchange import LONG, AuxiliaryExchange, Exchange, PassedExchange
from interlingua._http.io import run_without_waiting
from interlingua._http.retry import Retry
from interlingua._http.state import ClientState, FetchPolicy, MessagesInput
from interlingua._http.transports import IO, has_own_timeouts, new_io
from interlingua._plugins.registry import Registry
from interlingua._plugins.wire import EVENT_LIMIT, WireRequest
from interlingua._request.prepare import check_options, read_messages
from interlingua.errors import InterlinguaError
from interlingua.output import Answer, OutputFormat, OutputPlan
from interlingua.transport import AsyncReply, AsyncTransport, Reply, Timeout, Transport
from interlingua.types.messages import Message
from interlingua.types.options import RequestKwargs, explain_arguments

if TYPE_CHECKING:
    from typing_extensions import TypeForm
    from typing_extensions import TypeVar as DefaultTypeVar

    from interlingua._http.mapping import MapProgress
    from interlingua._http.streams import AsyncMessageStream, AsyncOutputStream, MessageStream, OutputStream
    from interlingua.fallback import Fallback

    _S = DefaultTypeVar("_S", default=Any)
    _Form = OutputFormat[_S] | OutputPlan[_S] | Mapping[str, Any]  # mypy reads no TypeForm within a union

_TransportT = TypeVar("_TransportT")
_PLACES = {"system": "put interlingua.system(…) first in the messages", "max_retries": "use retry=…"}
_AT_ONCE = 8  # requests of `map`, unless the client or the call says how many


class BaseClient(Generic[_TransportT]):
    """Shared code of both clients, as coroutines that wait by `self._io`. `Client` documents the arguments."""

    _blocking: bool

    @explain_arguments("pass it to a call: client.send(…, {}=…)", lambda: _PLACES)
    def __init__(
        self,
        model: str | Sequence[str] | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        registry: Registry | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: Timeout | float | None = None,
        retry: Retry | int | None = None,
        http_client: Any = None,
        transport: str | _TransportT | None = None,
        headers: Mapping[str, str] | None = None,
        workspace: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        max_response_bytes: int = EVENT_LIMIT,
        allow_loss: bool = False,
        cache: Literal["auto"] | None = None,
        fetch: FetchPolicy = "public",
        fallback: Fallback | None = None,
        concurrency: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        uploads: Any = None,
    ) -> None:
        self._shared = ClientState(
            model, api_key=api_key, base_url=base_url, registry=registry, settings=settings, timeout=timeout,
            retry=retry, headers=headers, workspace=workspace, environ=environ, max_response_bytes=max_response_bytes,
            defaults={"allow_loss": allow_loss, "cache": cache}, fetch=fetch, fallback=fallback, uploads=uploads,
            limits=(concurrency, requests_per_minute, tokens_per_minute),
        )  # fmt: skip
        if timeout is None and has_own_timeouts(http_client):
            self._shared.timeout = None
        self.allow_loss: Final = allow_loss
        self._io = new_io(http_client, transport, blocking=self._blocking)

    @property
    def registry(self) -> Registry:
        """The providers this client can use."""
        return self._shared.registry

    @property
    def model(self) -> str | None:
        """The default model, the first of several."""
        return self.models[0] if self.models else None

    @property
    def models(self) -> tuple[str, ...]:
        """The default model, and those that are asked if it fails."""
        return self._shared.models

    @property
    def workspace(self) -> str:
        """The folder that `file_ref` media are read from; an empty string for none."""
        return str(self._shared.workspace or "")

    def forget(self) -> None:
        """Drop the last conversations, which are kept so that their next turn costs less to write; `close` does it."""
        self._shared.conversations.clear()
        self._shared.prefix_watch.clear()

    def catalogue(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return the catalogue of a provider: the one named, else the default model's."""
        return self._shared.resolve_provider(provider).models()

    def plan_output(self, output: Any, *, stream: bool = False, **options: Unpack[RequestKwargs]) -> OutputPlan[Any]:
        """Return how a typed answer would be asked for, for loops that send requests and read answers themselves.

        Args:
            output: a type, or an `Output`.
            stream: the answer will be streamed.
            **options: as for `send`.

        Raises:
            CallerError: no JSON can be read into the type, or an option cannot be read.
            CapabilityError: the requested mode is not available.
        """
        return self._shared.plan_output(output, options, stream=stream)

    async def _send(
        self, messages: MessagesInput, output: Any, output_retries: int, options: RequestKwargs
    ) -> Message | Answer[Any]:
        if output is None:
            return (await self._complete(await self._begin(messages, options)))[0]
        begin = partial(self._begin, messages, options)
        if isinstance(output, OutputFormat) and (own := await output.ask(begin, self._complete)) is not None:
            return own
        exchange = await self._begin(messages, options, output)
        plan = attempts = None
        while True:
            message, exchange = await self._complete(exchange)
            if attempts is None or exchange.plan is not plan:  # the first answer of this model
                plan = exchange.plan
                attempts = plan.attempts(read_messages(messages), output_retries)
            answer: Answer[Any] | None = attempts.take(message, exchange.request.wire.losses)
            if answer is not None:
                return answer
            exchange = exchange.again(attempts.messages, message)

    async def _begin(self, messages: MessagesInput, options: RequestKwargs, output: Any = None) -> Exchange:
        model = options.get("model")
        known = isinstance(model, (str, NoneType)) and model in self._shared.resolved
        if output is not None or not known or (isinstance(messages, (list, tuple)) and len(messages) >= LONG):
            # a provider, or a package for typed answers, must be imported first; or many messages are checked
            return await self._io.load(partial(Exchange, self._shared, messages, options, output=output))
        return Exchange(self._shared, messages, options, output=output)

    async def _complete(
        self, exchange: Exchange, method: Callable[[Exchange, IO], Awaitable[Message]] = Exchange.attempt
    ) -> tuple[Message, Exchange]:
        """Return the answer of the first model that answers, and the exchange that it belongs to."""
        while True:
            try:
                with exchange.instrument:
                    await exchange.build(self._io)
                    return await exchange.run_attempts(self._io, partial(method, exchange)), exchange
            except InterlinguaError as error:
                exchange = await exchange.after_failure(self._io, error)

    async def _map(
        self, requests: Iterable[MessagesInput], concurrency: int | None,
        progress: bool | Callable[[MapProgress], object], output: Any, output_retries: int, options: RequestKwargs,
    ) -> list[Any]:  # fmt: skip
        from interlingua._http.mapping import map_requests  # noqa: PLC0415  few calls are mapped

        check_options(options)  # a mistake of the call, not of one request
        own = self._shared.limits.concurrency if self._shared.limits is not None else None
        send = partial(self._send, output=output, output_retries=output_retries, options=options)
        count = own or _AT_ONCE if concurrency is None else concurrency
        return await map_requests(self._io, requests, send, count, progress)

    async def _start(self, messages: MessagesInput, options: RequestKwargs) -> Message:
        return (await self._complete(await self._begin(messages, options), Exchange.start))[0]

    async def _resume(self, message: Message) -> Message:
        return (await self._complete(await self._io.load(Exchange.resume, self._shared, message)))[0]

    async def _prepare(self, messages: MessagesInput, output: Any, options: RequestKwargs) -> Exchange:
        exchange = await (await self._begin(messages, options, output)).build_first(self._io)
        exchange.limits_before = None  # the time of a call counts from its first attempt
        return exchange

    async def _attempt(self, exchange: Exchange) -> Message:
        with exchange.instrument:
            try:
                answer = await exchange.attempt(self._io)
                exchange.note_answer(answer)
                return answer
            except BaseException as error:
                exchange.end_turn()
                if not getattr(error, "retryable", False):
                    await exchange.leave(self._io, error)
                raise

    def _preview(self, messages: MessagesInput, stream: bool, output: Any, options: RequestKwargs) -> WireRequest:
        return Exchange(self._shared, messages, options, stream=stream, output=output).write(None)

    async def _auxiliary(self, provider: str | None, kind: str, arguments: Mapping[str, Any]) -> Any:
        exchange = AuxiliaryExchange(self._shared, provider, kind, arguments)
        return await exchange.run_attempts(self._io, exchange.attempt)

    async def _open_request(self, provider: str, request: WireRequest) -> Any:
        return await PassedExchange(self._shared, provider, request).attempt(self._io)

    async def _count_tokens(self, messages: MessagesInput, options: RequestKwargs) -> int:
        request = (await Exchange(self._shared, messages, options).build(self._io)).request
        return int(await self._auxiliary(request.provider.key, "count_tokens", {"request": request.wire}))


class Client(BaseClient[Transport]):
    """A client for every installed provider; safe for use from several threads.

    Args:
        model: default model, `<provider>:<name>` or an alias; or a list of them: if one fails, the next is asked.
        api_key: key for the provider of `model`; None reads it from the environment.
        base_url: another address for the provider of `model`.
        registry: the providers; None finds those that are installed.
        settings: provider key -> `api_key`, `base_url`, `api`, `options` (connection options of that provider).
        timeout: limits in seconds; a number is the total of one call.
        retry: when to try again; a number is how many times.
        http_client: an httpx client, used unchanged and never closed. Its own timeouts apply unless `timeout` is set or
            they are httpx's defaults.
        transport: the transport of the requests: a `Transport` of `interlingua.transport`, which stays open, or a name:
            `httpx` (the default), or one that an installed distribution provides, such as `pycurl`.
        headers: further headers of every request.
        workspace: the folder that `file_ref` media are read from.
        environ: environment variables; None uses the process's.
        max_response_bytes: largest size of a whole body, or of one event of a stream, decompressed.
        allow_loss: the default of the option `allow_loss` (`RequestOptions`).
        cache: the default of the option `cache`.
        fetch: which image URLs are fetched for services that take none: those of public addresses (`public`), all
            (`any`) or none (`none`).
        fallback: when a call tries its next model, and how long a failing model rests (`interlingua.fallback`).
        concurrency: most requests under way at each model; further ones wait, in the order of their calls.
        requests_per_minute: most requests a minute at each model, sent evenly.
        tokens_per_minute: input and output, at each model. With any of these limits, nothing more is sent to a
            service whose headers report a limit as used up, until its reset.
        uploads: an `Uploads` of the extra `uploads`: large media are uploaded once and referred to.

    Raises:
        CallerError: a setting is unknown, or `api_key` or `base_url` comes without `model`.
        UnknownProviderError: the provider of `model` is not installed.
    """

    _blocking = True

    @overload
    def send(self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]) -> Message: ...
    @overload
    def send(
        self, messages: MessagesInput, *, output: TypeForm[_S], output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Answer[_S]: ...  # fmt: skip
    @overload
    def send(
        self, messages: MessagesInput, *, output: _Form[_S], output_retries: int = ..., **options: Unpack[RequestKwargs]
    ) -> Answer[_S]: ...
    def send(
        self, messages: MessagesInput, *, output: Any = None, output_retries: int = 1, **options: Unpack[RequestKwargs]
    ) -> Message | Answer[Any]:
        """Send a conversation and return the assistant's message.

        Args:
            messages: a conversation, one message, or a string, which becomes a user message.
            output: a type, or an `Output`; an `Answer` with a value of that type is returned.
            output_retries: how often an answer that does not fit is asked for again, with the problems found.
            **options: those of `RequestKwargs`.

        Raises:
            CallerError: a local mistake; nothing was sent.
            InvalidOutputError: no answer fits `output`.
            ProviderError: the service answered with a failure.
            WireError: no answer arrived, or it could not be read.
        """
        return run_without_waiting(self._send(messages, output, output_retries, options))

    @overload
    def map(
        self, requests: Iterable[MessagesInput], *, output: None = None, concurrency: int | None = ...,
        progress: bool | Callable[[MapProgress], object] = ..., **options: Unpack[RequestKwargs],
    ) -> list[Message | InterlinguaError]: ...  # fmt: skip
    @overload
    def map(
        self, requests: Iterable[MessagesInput], *, output: TypeForm[_S], output_retries: int = ...,
        concurrency: int | None = ..., progress: bool | Callable[[MapProgress], object] = ...,
        **options: Unpack[RequestKwargs],
    ) -> list[Answer[_S] | InterlinguaError]: ...  # fmt: skip
    @overload
    def map(
        self, requests: Iterable[MessagesInput], *, output: _Form[_S], output_retries: int = ...,
        concurrency: int | None = ..., progress: bool | Callable[[MapProgress], object] = ...,
        **options: Unpack[RequestKwargs],
    ) -> list[Answer[_S] | InterlinguaError]: ...  # fmt: skip
    def map(
        self, requests: Iterable[MessagesInput], *, output: Any = None, output_retries: int = 1,
        concurrency: int | None = None, progress: bool | Callable[[MapProgress], object] = False,
        **options: Unpack[RequestKwargs],
    ) -> list[Any]:  # fmt: skip
        """Send many requests, several at once, and return their answers in the same order.

        The result of a request that fails is its error. After Ctrl-C, requests under way are completed,
        no other is sent, and KeyboardInterrupt is raised.

        Args:
            requests: the first argument of `send`, each.
            output: as for `send`; the answers are then of the class `Answer`.
            output_retries: as for `send`.
            concurrency: most requests at once; None takes the client's limit, or 8.
            progress: True shows a line on stderr; or a function, called after each request.
            **options: options of every request.
        """
        return run_without_waiting(self._map(requests, concurrency, progress, output, output_retries, options))

    def decide(
        self, messages: MessagesInput, questions: OutputFormat[_S], **options: Unpack[RequestKwargs]
    ) -> Answer[_S]:
        """Ask `Questions` of the extra `decisions` about a conversation; options and errors as for `send`."""
        return self.send(messages, output=questions, **options)

    def start(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> Message:
        """Send a conversation to a service that answers later, and return without waiting for the answer.

        Store the message and pass it to `resume`, in this process or another; arguments and errors as for `send`.

        Returns:
            A PARTIAL message that holds what `resume` needs; the answer itself if the service has answered.
        """
        return run_without_waiting(self._start(messages, options))

    @explain_arguments("pass it to client.start(…, {}=…)")
    def resume(self, message: Message) -> Message:
        """Wait for the answer that an incomplete message belongs to, and return it; nothing is generated again.

        Args:
            message: the result of `start`, `stream.partial`, or `error.partial` of a call that failed.

        Raises:
            CallerError: nothing follows this message.
            ProviderError: the service answered with a failure.
            WireError: no answer arrived, or it could not be read.
        """
        return run_without_waiting(self._resume(message))

    def prepare(self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]) -> Exchange:
        """Build the request that `send` would make, without sending it, for callers that schedule sending themselves.

        Takes the arguments of `send` and raises its errors; `output` may also be a plan of `plan_output`.
        """
        return run_without_waiting(self._prepare(messages, output, options))

    def attempt(self, exchange: Exchange) -> Message:
        """Send a prepared request once and return its answer; `exchange.retry_delay` tells when to try again."""
        return run_without_waiting(self._attempt(exchange))

    @overload
    def stream(
        self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]
    ) -> MessageStream: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: TypeForm[_S], **options: Unpack[RequestKwargs]
    ) -> OutputStream[_S]: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: _Form[_S], **options: Unpack[RequestKwargs]
    ) -> OutputStream[_S]: ...
    def stream(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> MessageStream | OutputStream[Any]:
        """Return the answer as a stream, which a `with` statement opens; arguments as for `send`."""
        from interlingua._http import streams  # noqa: PLC0415  `send` needs none

        exchange = Exchange(self._shared, messages, options, stream=True, output=output)
        exchange = run_without_waiting(exchange.build_first(self._io))
        return (streams.MessageStream if output is None else streams.OutputStream)(exchange, self._io)

    def build_request(
        self, messages: MessagesInput, *, stream: bool = False, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, with its ledger, without auth.

        Nothing is sent and nothing is fetched: an image that would be fetched first appears as its URL, and the ledger
        has a line for it.
        """
        return self._preview(messages, stream, output, options)

    def list_models(self, provider: str | None = None) -> list[str]:
        """Ask a service which models it has, and return their names without the provider key.

        Args:
            provider: a provider's key; None means the default model's.

        Raises:
            CapabilityError: the provider offers no such list.
            ProviderError: the service answered with a failure.
        """
        return list(self.auxiliary(provider, "models"))

    def auxiliary(self, provider: str | None, kind: str, **arguments: Any) -> Any:
        """Ask a service for something that only it offers, such as the reported cost of an answer.

        Args:
            provider: a provider's key; None means the default model's.
            kind: the kind of request; the provider's README lists kinds and arguments. `batch_results` of an
                `AsyncClient` with `lines=True` may be a body of JSON Lines: iterate over its bytes, then close it.
            **arguments: the arguments of this kind.

        Raises:
            CapabilityError: the provider does not offer it.
            ProviderError: the service answered with a failure.
        """
        return run_without_waiting(self._auxiliary(provider, kind, arguments))

    def open_request(self, provider: str, request: WireRequest) -> Reply:
        """Send a request of any kind to a service, signed; return its reply, of any status, with the body unread.

        Args:
            provider: the provider's key.
            request: the request; its path follows the address of the service.
        """
        return cast("Reply", run_without_waiting(self._open_request(provider, request)))

    def count_tokens(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> int:
        """Ask the service how many input tokens a request has; arguments as for `send`.

        Raises:
            CapabilityError: the provider offers no count; `Provider.estimate_input_tokens` estimates one.
            ProviderError: the service answered with a failure.
        """
        return run_without_waiting(self._count_tokens(messages, options))

    def close(self) -> None:
        """Close the connections, unless the transport or HTTP client is the caller's, and forget the conversations."""
        self.forget()
        run_without_waiting(self._io.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class AsyncClient(BaseClient[AsyncTransport]):
    """As `Client`, with `await`, on asyncio or trio; one client may serve several event loops, also at the same time.

    Modules, certificates and catalogues that the first request of a kind needs are loaded in a thread, so plugins'
    hooks are called there once. Connections belong to the event loop that opened them; `close` closes them, and so does
    the loop when it shuts down its asynchronous generators, as `asyncio.run` and `trio.run` do. Arguments and errors
    are the same as for `Client`, but a `transport=` object must be an `AsyncTransport`.
    """

    _blocking = False

    @overload
    async def send(
        self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]
    ) -> Message: ...
    @overload
    async def send(
        self, messages: MessagesInput, *, output: TypeForm[_S], output_retries: int = ...,
        **options: Unpack[RequestKwargs],
    ) -> Answer[_S]: ...  # fmt: skip
    @overload
    async def send(
        self, messages: MessagesInput, *, output: _Form[_S], output_retries: int = ..., **options: Unpack[RequestKwargs]
    ) -> Answer[_S]: ...
    async def send(
        self, messages: MessagesInput, *, output: Any = None, output_retries: int = 1, **options: Unpack[RequestKwargs]
    ) -> Message | Answer[Any]:
        """Send a conversation and return the assistant's message; arguments and errors as for `Client.send`."""
        return await self._send(messages, output, output_retries, options)

    @overload
    async def map(
        self, requests: Iterable[MessagesInput], *, output: None = None, concurrency: int | None = ...,
        progress: bool | Callable[[MapProgress], object] = ..., **options: Unpack[RequestKwargs],
    ) -> list[Message | InterlinguaError]: ...  # fmt: skip
    @overload
    async def map(
        self, requests: Iterable[MessagesInput], *, output: TypeForm[_S], output_retries: int = ...,
        concurrency: int | None = ..., progress: bool | Callable[[MapProgress], object] = ...,
        **options: Unpack[RequestKwargs],
    ) -> list[Answer[_S] | InterlinguaError]: ...  # fmt: skip
    @overload
    async def map(
        self, requests: Iterable[MessagesInput], *, output: _Form[_S], output_retries: int = ...,
        concurrency: int | None = ..., progress: bool | Callable[[MapProgress], object] = ...,
        **options: Unpack[RequestKwargs],
    ) -> list[Answer[_S] | InterlinguaError]: ...  # fmt: skip
    async def map(
        self, requests: Iterable[MessagesInput], *, output: Any = None, output_retries: int = 1,
        concurrency: int | None = None, progress: bool | Callable[[MapProgress], object] = False,
        **options: Unpack[RequestKwargs],
    ) -> list[Any]:  # fmt: skip
        """Send many requests, several at once, and return their answers in the same order, as `Client.map` does."""
        return await self._map(requests, concurrency, progress, output, output_retries, options)

    async def decide(
        self, messages: MessagesInput, questions: OutputFormat[_S], **options: Unpack[RequestKwargs]
    ) -> Answer[_S]:
        """Ask `Questions` of the extra `decisions` about a conversation, as `Client.decide` does."""
        return await self.send(messages, output=questions, **options)

    async def start(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> Message:
        """Send a conversation without waiting for the answer, as `Client.start` does."""
        return await self._start(messages, options)

    @explain_arguments("pass it to client.start(…, {}=…)")
    async def resume(self, message: Message) -> Message:
        """Wait for the answer that an incomplete message belongs to, as `Client.resume` does."""
        return await self._resume(message)

    async def prepare(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> Exchange:
        """Build the request that `send` would make, as `Client.prepare` does."""
        return await self._prepare(messages, output, options)

    async def attempt(self, exchange: Exchange) -> Message:
        """Send a prepared request once and return its answer; `exchange.retry_delay` tells when to try again."""
        return await self._attempt(exchange)

    @overload
    def stream(
        self, messages: MessagesInput, *, output: None = None, **options: Unpack[RequestKwargs]
    ) -> AsyncMessageStream: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: TypeForm[_S], **options: Unpack[RequestKwargs]
    ) -> AsyncOutputStream[_S]: ...
    @overload
    def stream(
        self, messages: MessagesInput, *, output: _Form[_S], **options: Unpack[RequestKwargs]
    ) -> AsyncOutputStream[_S]: ...
    def stream(
        self, messages: MessagesInput, *, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> AsyncMessageStream | AsyncOutputStream[Any]:
        """Return the answer as a stream, which an `async with` statement opens; arguments as for `send`."""
        from interlingua._http import streams  # noqa: PLC0415  `send` needs none

        exchange = Exchange(self._shared, messages, options, stream=True, output=output)
        return (streams.AsyncMessageStream if output is None else streams.AsyncOutputStream)(exchange, self._io)

    async def build_request(
        self, messages: MessagesInput, *, stream: bool = False, output: Any = None, **options: Unpack[RequestKwargs]
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, as `Client.build_request` does."""
        return self._preview(messages, stream, output, options)

    async def list_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has, as `Client.list_models` does."""
        return list(await self.auxiliary(provider, "models"))

    async def auxiliary(self, provider: str | None, kind: str, **arguments: Any) -> Any:
        """Ask a service for something that only it offers, as `Client.auxiliary` does."""
        return await self._auxiliary(provider, kind, arguments)

    async def open_request(self, provider: str, request: WireRequest) -> AsyncReply:
        """Send a request of any kind to a service, as `Client.open_request` does."""
        return cast("AsyncReply", await self._open_request(provider, request))

    async def count_tokens(self, messages: MessagesInput, **options: Unpack[RequestKwargs]) -> int:
        """Ask the service how many input tokens a request has, as `Client.count_tokens` does."""
        return await self._count_tokens(messages, options)

    async def close(self) -> None:
        """Close the running loop's connections, as `Client.close` does, and forget the conversations."""
        self.forget()
        await self._io.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

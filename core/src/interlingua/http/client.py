"""The blocking client and its stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from interlingua.errors import APIConnectionError, CallerError, InterlinguaError
from interlingua.http.limits import Deadline, Retry, Timeout
from interlingua.http.shared import SharedState
from interlingua.http.transport import Answer, Outgoing, SyncTransport
from interlingua.plugins.registry import Registry
from interlingua.plugins.wire import WireRequest
from interlingua.request.prepare import FAILED, Exchange
from interlingua.response.stream import StreamReader, StreamState
from interlingua.types.events import ErrorEvent, StreamEvent, TextDelta
from interlingua.types.messages import Message

if TYPE_CHECKING:
    from interlingua.catalogue import ModelInfo
    from interlingua.plugins.provider import Provider
    from interlingua.request.media import Fetched
    from interlingua.types.messages import RoutingDecisionRecord
    from interlingua.types.tools import ToolDefinition


class MessageStream:
    """A streamed answer; use it in a `with` statement and iterate over its events.

    Entering sends the request and waits for the first event: what fails before that is tried again as the client's
    `Retry` says, and raised from here. A failure later comes as a terminal `ErrorEvent`, then is raised with
    `.partial`. Leaving early, `cancel` and Ctrl-C keep what was received as a CANCELLED message.
    """

    def __init__(self, exchange: Exchange, transport: SyncTransport, sleep: Callable[[float], None]) -> None:
        self._outcome = StreamState(exchange)
        self._transport = transport
        self._sleep = sleep
        self._answer: Answer | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._begun: list[StreamEvent] = []
        self._events: Iterator[StreamEvent] | None = None

    def __enter__(self) -> MessageStream:
        exchange = self._outcome.exchange
        try:
            while self._events is None:
                try:
                    self._begun = self._open(exchange)
                    self._events = self._run()
                except InterlinguaError as error:
                    self._close()
                    self._sleep(exchange.pause(error))
        except InterlinguaError as error:
            self._outcome.fail(error)
            raise
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def __iter__(self) -> Iterator[StreamEvent]:
        if self._events is None:
            raise CallerError("the stream is not open: use it in a with statement")
        return self._events

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
        if not self._outcome.settled:
            for _ in self:
                pass
        return self._outcome.result()

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

    def _open(self, exchange: Exchange) -> list[StreamEvent]:
        answer = self._answer = self._transport.open(exchange.outgoing(), exchange.limits)
        if answer.status >= FAILED:
            exchange.read(answer.status, answer.headers, answer.read())
        reading = self._outcome.begin(StreamReader(exchange, answer.status, answer.headers))
        self._chunks = answer.chunks()
        try:
            for raw in self._chunks:
                events = reading.feed(raw)
                if events:
                    return self._outcome.begun(events)
        except APIConnectionError as error:
            return self._outcome.begun(reading.end(error))
        return self._outcome.begun(reading.end())

    def _run(self) -> Iterator[StreamEvent]:
        outcome, reading = self._outcome, self._outcome.reading
        assert reading is not None  # noqa: S101
        broken: InterlinguaError | None = None
        events, feed = self._begun, reading.feed
        try:
            try:
                for raw in chain((b"",), self._chunks):  # the first events are there already
                    if raw:
                        events = feed(raw)
                    for event in events:
                        if outcome.stopped:
                            break
                        yield event
                    if outcome.stopped or (events and type(events[-1]) is ErrorEvent):
                        break
            except APIConnectionError as error:
                broken = error
            if outcome.stopped:
                outcome.cancel()
                return
            yield from reading.end(broken)
            outcome.settle()
        except InterlinguaError as error:
            outcome.fail(error)
            raise
        except BaseException:  # Ctrl-C while waiting, or the stream was left
            outcome.cancel()
            raise
        finally:
            self._close()

    def _close(self) -> None:
        if self._answer is not None:
            self._answer.close()

    def _leave(self) -> None:
        self._outcome.cancel()
        self._close()


class Client:
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
        headers: further request headers, for every request.
        workspace: the folder that `file_ref` media are read from.
        environ: environment variables; None takes the process's.

    Raises:
        CallerError: a setting is unknown, or `api_key` or `base_url` comes without `model`.
        UnknownProviderError: the provider of `model` is not installed.
    """

    _sleep = staticmethod(time.sleep)

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
        self._core = SharedState(
            model, api_key=api_key, base_url=base_url, registry=registry, settings=settings, timeout=timeout,
            retry=retry, headers=headers, workspace=workspace, environ=environ,
        )  # fmt: skip
        self._transport = SyncTransport(http_client)
        self._core.leave_limits(given_client_has_own=self._transport.own_limits)

    @property
    def registry(self) -> Registry:
        """The providers this client can use."""
        return self._core.registry

    @property
    def model(self) -> str | None:
        """The default model, as it was given."""
        return self._core.model

    def send(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        routing: RoutingDecisionRecord | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Message:
        """Send a conversation and return the assistant's message.

        Args:
            messages: the conversation, one message, or the text of one user message.
            model: instead of the client's default.
            tools: what the model may call.
            routing: why this model, where a router chose it.
            user_id: stable pseudonymous id of the end user.
            **options: fields of `AdapterOptions` by name.

        Raises:
            CallerError: a local mistake; nothing was sent.
            ProviderError: the service answered with a failure.
            WireError: the answer could not be had, or not read.
        """
        exchange = self._exchange(messages, model, tools, routing, user_id, options, stream=False)
        while True:
            try:
                return self._attempt(exchange)
            except InterlinguaError as error:
                self._sleep(exchange.pause(error))

    def stream(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        routing: RoutingDecisionRecord | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> MessageStream:
        """Return the answer as a stream, to be used in a `with` statement; arguments as for `send`."""
        pass

        exchange = self._exchange(messages, model, tools, routing, user_id, options, stream=True)
        return MessageStream(exchange, self._transport, self._sleep)

    def to_wire(
        self,
        messages: str | Message | Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolDefinition] = (),
        stream: bool = False,
        **options: Any,
    ) -> WireRequest:
        """Return the request that `send` (or `stream`) would make, with its ledger, without auth; nothing is sent."""
        return self._exchange(messages, model, tools, None, options.pop("user_id", None), options, stream=stream).wire

    def models(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return the catalogue of a provider: the one named, else the default model's."""
        return self._core.models(provider)

    def live_models(self, provider: str | None = None) -> list[str]:
        """Ask the service which models it has: names without provider key, of the provider named or the default's.

        Raises:
            CapabilityError: the provider offers no such list.
            ProviderError: the service answered with a failure.
        """
        known = self.registry.provider(provider) if provider is not None else self._core.known(None).provider
        found: list[str] = self._asked(known, "models", {})
        return found

    def ask(self, provider: str, kind: str, **arguments: Any) -> Any:
        """Ask a provider for what only it offers, such as what an answer cost; its README lists kinds and arguments.

        Raises:
            CapabilityError: the provider offers no such thing.
            ProviderError: the service answered with a failure.
        """
        return self._asked(self.registry.provider(provider), kind, arguments)

    def count_tokens(
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
        exchange = self._exchange(messages, model, tools, None, user_id, options, stream=False)
        found: int = self._asked(exchange.provider, "count_tokens", {"request": exchange.wire})
        return found

    def close(self) -> None:
        """Close the connections, unless the HTTP client is the caller's."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

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
        exchange = self._core.begin(
            self._core,
            messages,
            model=model,
            tools=tools,
            routing=routing,
            user_id=user_id,
            options=options,
            stream=stream,
        )
        return exchange.write({url: self._fetch(url) for url in exchange.urls})

    def _asked(self, provider: Provider, kind: str, arguments: Mapping[str, Any]) -> Any:
        from interlingua.http.shared import Auxiliary  # noqa: PLC0415  few clients ask for anything

        auxiliary = Auxiliary(self._core, provider, kind, arguments)
        answer = self._transport.open(auxiliary.outgoing(), auxiliary.limits)
        try:
            body = answer.read()
        finally:
            answer.close()
        return auxiliary.read(answer.status, answer.headers, body)

    def _attempt(self, exchange: Exchange) -> Message:
        answer = self._transport.open(exchange.outgoing(), exchange.limits)
        try:
            body = answer.read()
        finally:
            answer.close()
        return exchange.read(answer.status, answer.headers, body)

    def _fetch(self, url: str) -> Fetched:
        from interlingua.request.media import SIZE_LIMIT, Fetched  # noqa: PLC0415  the same
        from interlingua.request.prepare import FAILED  # noqa: PLC0415  with the request that asks for it

        answer = self._transport.open(Outgoing("GET", url, {}, b""), Deadline(self._core.timeout))
        try:
            if answer.status >= FAILED:
                raise CallerError(f"the image {url} cannot be fetched: HTTP {answer.status}")
            data = bytearray()
            for chunk in answer.chunks():
                data += chunk
                if len(data) > SIZE_LIMIT:
                    raise CallerError(f"the image {url} is larger than {SIZE_LIMIT} bytes")
            return Fetched(bytes(data), answer.headers.get("content-type", "").partition(";")[0])
        finally:
            answer.close()

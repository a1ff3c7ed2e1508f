"""Tests of applications and plugins without network or keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from interlingua._http import io
from interlingua._response.stream import message_to_events
from interlingua.errors import InterlinguaError, ProviderError, WireError
from interlingua.plugins import (
    Connection,
    Registry,
    RequestContext,
    WireChunk,
    WireRequest,
    WireResponse,
    dumps,
    hookimpl,
    loads,
)
from interlingua.transport import HttpRequest, TimeLimits
from interlingua.types import (
    Message,
    ModelCapabilities,
    RequestOptions,
    StopReason,
    StreamEvent,
    TextBlock,
    TextDelta,
    ToolDefinition,
    ToolUseBlock,
    Usage,
    replace,
)

if TYPE_CHECKING:
    from interlingua import AsyncClient, Client

__all__ = [
    "AsyncMemoryTransport",
    "MemoryReply",
    "MemoryTransport",
    "ScriptedModel",
    "SentRequest",
    "call",
    "no_network",
]

_JSON: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})


class MemoryReply:
    """The reply of a `MemoryTransport`.

    Args:
        body: bytes of the body, or an iterable of pieces; an error raised by it simulates a broken connection.
        status: HTTP status.
        headers: response headers; `content-type` is `application/json` unless set here.
    """

    def __init__(
        self, body: bytes | Iterable[bytes] = b"", *, status: int = 200, headers: Mapping[str, str] = _JSON
    ) -> None:
        self.status = status
        self.headers = {**_JSON, **{name.lower(): value for name, value in headers.items()}}
        self._pieces = iter((body,) if isinstance(body, bytes) else body)
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._closed:
            raise StopIteration
        return next(self._pieces)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for piece in self:
            return piece
        raise StopAsyncIteration

    def close(self) -> None:
        """End the body."""
        self._closed = True

    abort = close

    async def aclose(self) -> None:
        """End the body."""
        self.close()


class MemoryTransport:
    """A transport for `Client(transport=…)` that answers by a function.

    Args:
        answer: takes a request and returns the reply or the bytes of a JSON body; may raise an error of a transport.

    Attributes:
        requests: the requests sent.
    """

    def __init__(self, answer: Callable[[HttpRequest], MemoryReply | bytes]) -> None:
        self._answer = answer
        self.requests: list[HttpRequest] = []

    def open(self, request: HttpRequest, limits: TimeLimits) -> MemoryReply:
        """Return the reply to a request."""
        self.requests.append(request)
        answer = self._answer(request)
        return MemoryReply(answer) if isinstance(answer, bytes) else answer

    def close(self) -> None:
        """Do nothing."""


class AsyncMemoryTransport:
    """As `MemoryTransport`, for `AsyncClient(transport=…)`."""

    def __init__(self, answer: Callable[[HttpRequest], MemoryReply | bytes]) -> None:
        self._memory = MemoryTransport(answer)
        self.requests = self._memory.requests

    async def open(self, request: HttpRequest, limits: TimeLimits) -> MemoryReply:
        """Return the reply to a request."""
        return self._memory.open(request, limits)

    async def aclose(self) -> None:
        """Do nothing."""


Script: TypeAlias = str | ToolUseBlock | Message | InterlinguaError | Sequence[str | ToolUseBlock]
"""One scripted answer: text, a tool call, several of them, a complete message, or an error."""

_API = "scripted"
_MODEL = "scripted:model"
_CAPABILITIES: dict[str, Any] = {
    "api": _API,
    "supports_tools": True,
    "supports_parallel_tool_calls": True,
    "supports_tool_choice": True,
    "supports_named_tool_choice": True,
    "supports_system_prompt": True,
    "supports_streaming": True,
    "supports_images": True,
    "supports_image_urls": True,
    "supports_structured_output": True,
    "structured_output_streams": True,
    "structured_output_with_tools": True,
    "schema_open_maps": True,
}


@attrs.frozen(kw_only=True)
class SentRequest:
    """A request that an application sent to a `ScriptedModel`.

    Attributes:
        messages: the conversation, as a provider plugin receives it.
        tools: the tools offered to the model.
        options: the options of the request.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    options: RequestOptions


def call(name: str, **arguments: Any) -> ToolUseBlock:
    """Return a tool call for a scripted answer; the client assigns it a unique id."""
    return ToolUseBlock(id=f"tu_{name}", name=name, input=arguments)


class ScriptedModel:
    """A model whose answers are scripted, for tests of applications.

    It is a provider plugin with a transport in memory, so a request runs through everything but the network: checks,
    projection, retries, streams, cost, typed answers, agents and sessions.

    Example::

        model = ScriptedModel([call("add", a=1, b=2), "It is 3."])
        client = model.client()

    Args:
        answers: the answers in order, or a function from a `SentRequest` to its answer. Streams deliver text word by
            word. An error is raised as if the service had answered with it, so that retryable ones are retried.
        **capabilities: fields of `ModelCapabilities` to change, such as `supports_images=False`.

    Attributes:
        requests: every request sent, including retries.
    """

    def __init__(self, answers: Iterable[Script] | Callable[[SentRequest], Script], **capabilities: Any) -> None:
        self._next = answers if callable(answers) else iter(list(answers))
        self._capabilities = ModelCapabilities(**{**_CAPABILITIES, **capabilities})
        self._written: list[SentRequest] = []
        self._answers: dict[int, Any] = {}  # by number of the request written
        self.requests: list[SentRequest] = []

    def client(self, **settings: Any) -> Client:
        """Return a client of this model; `settings` are further arguments of `Client`."""
        from interlingua import Client  # noqa: PLC0415  plugins use MemoryTransport without a client

        return Client(_MODEL, registry=self.registry(), environ={}, transport=MemoryTransport(self._answer), **settings)

    def async_client(self, **settings: Any) -> AsyncClient:
        """Return an asynchronous client of this model; `settings` are further arguments of `AsyncClient`."""
        from interlingua import AsyncClient  # noqa: PLC0415  plugins use MemoryTransport without a client

        transport = AsyncMemoryTransport(self._answer)
        return AsyncClient(_MODEL, registry=self.registry(), environ={}, transport=transport, **settings)

    def registry(self) -> Registry:
        """Return a registry that holds this model as `scripted:model` and no installed plugin."""
        return Registry(providers={"scripted": self}, entry_points=())

    def _answer(self, request: HttpRequest) -> MemoryReply:
        """Take the next answer of the script; requests and replies hold the request's number only."""
        number = loads(request.body)
        sent = self._written[number]
        self.requests.append(sent)
        answer = self._next(sent) if callable(self._next) else next(self._next, None)
        if answer is None:
            raise AssertionError(f"request {len(self.requests)} has no scripted answer")
        if isinstance(answer, WireError):
            raise answer
        self._answers[number] = answer
        if isinstance(answer, InterlinguaError):
            return MemoryReply(request.body, status=answer.status or 500)
        if sent.options.stream:
            return MemoryReply(b"data: %b\n\n" % request.body, headers={"content-type": "text/event-stream"})
        return MemoryReply(request.body)

    @hookimpl
    def capabilities(self) -> ModelCapabilities:
        """Return the capabilities."""
        return self._capabilities

    @hookimpl
    def connection(self) -> Connection:
        """Return a connection to a host that does not exist."""
        return Connection(base_url="http://scripted.invalid")

    @hookimpl
    def models(self) -> tuple[()]:
        """Return an empty catalogue."""
        return ()

    @hookimpl
    def estimate_input_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of words."""
        return sum(_count_words(message) for message in messages)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Note the request."""
        self._written.append(SentRequest(messages=tuple(messages), tools=tuple(tools), options=options))
        return WireRequest(api=_API, path="/answer", body=dumps(len(self._written) - 1), stream=options.stream)

    @hookimpl
    def from_wire_error(self, response: WireResponse) -> ProviderError:
        """Return the scripted error."""
        error: ProviderError = self._answers[loads(response.body)]
        return error

    @hookimpl
    def from_wire_response(self, response: WireResponse, context: RequestContext) -> Message:
        """Return the scripted answer."""
        return self._message(response.body, context)

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of the scripted answer, text word by word."""
        async for chunk in response_stream:
            for event in message_to_events(self._message(chunk.data, context)):
                if not isinstance(event, TextDelta):
                    yield event
                    continue
                for place, word in enumerate(event.text.split(" ")):
                    yield TextDelta(index=event.index, text=f" {word}" if place else word)

    def _message(self, body: bytes, context: RequestContext) -> Message:
        answer = self._answers[loads(body)]
        if isinstance(answer, Message):
            return answer
        parts = [answer] if isinstance(answer, (str, ToolUseBlock)) else list(answer)
        blocks = [
            TextBlock(text=part) if isinstance(part, str) else replace(part, id=context.mint_tool_use_id())
            for part in parts
        ]
        called = any(isinstance(block, ToolUseBlock) for block in blocks)
        message = context.message(blocks, stop_reason=StopReason.TOOL_USE if called else StopReason.END_TURN)
        sent = self.requests[-1].messages
        usage = Usage(input_tokens=sum(map(_count_words, sent)), output_tokens=_count_words(message))
        return replace(message, metadata=replace(message.metadata, usage=usage))


def _count_words(message: Message) -> int:
    return len(message.text.split()) + len(message.tool_calls) + len(message.tool_results)


@contextmanager
def no_network() -> Iterator[None]:
    """Fail every request with an AssertionError that contains its URL, unless a transport in memory answers it."""

    def refuse(transport: object, url: str) -> None:
        if not isinstance(transport, (MemoryTransport, AsyncMemoryTransport)):
            raise AssertionError(f"a request to {url.partition('?')[0]} inside no_network()")

    before, io.network_guard = io.network_guard, refuse
    try:
        yield
    finally:
        io.network_guard = before

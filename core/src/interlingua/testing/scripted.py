"""A model whose answers are scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from interlingua._plugins.registry import OUTPUTS
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
    explain_arguments,
    hookimpl,
    loads,
    unknown_argument,
)
from interlingua.testing.memory import AsyncMemoryTransport, MemoryReply, MemoryTransport
from interlingua.transport import HttpRequest, connection_failed
from interlingua.types import (
    Message,
    ModelCapabilities,
    RequestKwargs,
    RequestOptions,
    Role,
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

Script: TypeAlias = "str | ToolUseBlock | Message | InterlinguaError | ScriptedReply | Sequence[str | ToolUseBlock]"
"""One scripted answer: text, a tool call, several of them, a complete message, an error, or one with a fault."""

_API = "scripted"
_MODEL = "scripted:model"
_CAPABILITIES: dict[str, Any] = {"api": _API} | dict.fromkeys(
    (
        "supports_tools", "supports_parallel_tool_calls", "supports_tool_choice", "supports_named_tool_choice",
        "supports_system_prompt", "supports_streaming", "supports_images", "supports_image_urls", "schema_open_maps",
        "supports_structured_output", "structured_output_streams", "structured_output_with_tools",
    ), True,
)  # fmt: skip


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

    @property
    def text(self) -> str:
        """The text of the newest user message; an empty string without one."""
        return next((message.text for message in reversed(self.messages) if message.role is Role.USER), "")

    @property
    def instructions(self) -> str:
        """The text of the system messages."""
        return "\n\n".join(message.text for message in self.messages if message.role is Role.SYSTEM)

    @property
    def results(self) -> dict[str, str]:
        """The text of each tool result, by the id of its call."""
        return {
            result.tool_use_id: "".join(part.text for part in result.content if isinstance(part, TextBlock))
            for message in self.messages
            for result in message.tool_results
        }


@explain_arguments()
@attrs.frozen(kw_only=True)
class ScriptedReply:
    """A scripted answer that arrives late, slowly or not to its end.

    Attributes:
        answer: the answer.
        delay: seconds until it begins. The client's time limits apply, to it and to `pause`.
        pause: seconds before each word of a stream.
        breaks_after: number of words of a stream after which the connection breaks; 0 breaks it before the answer. An
            answer that is not streamed breaks in either case.
    """

    answer: Script = ""
    delay: float = 0.0
    pause: float = 0.0
    breaks_after: int | None = None


def call(name: str, /, **arguments: Any) -> ToolUseBlock:
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
        known = attrs.fields_dict(ModelCapabilities)
        if unknown := [name for name in capabilities if name not in known]:
            where = dict.fromkeys(RequestKwargs.__optional_keys__, "pass it to a call: client.send(…, {}=…)")
            where |= dict.fromkeys(("delay", "pause", "breaks_after"), "pass it to a ScriptedReply(…, {}=…)")
            raise unknown_argument("ScriptedModel", known, unknown[0], where)
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
        """Return a registry that holds this model as `scripted:model`, and the installed readers of types."""
        return Registry(providers={"scripted": self}, entry_points=entry_points(group=OUTPUTS))

    def _answer(self, request: HttpRequest) -> MemoryReply:
        """Take the next answer of the script; requests and replies hold the request's number only."""
        number = loads(request.body)
        sent = self._written[number]
        self.requests.append(sent)
        answer = self._next(sent) if callable(self._next) else next(self._next, None)
        if answer is None:
            raise AssertionError(f"request {len(self.requests)} has no scripted answer")
        reply = answer if isinstance(answer, ScriptedReply) else ScriptedReply(answer=answer)
        answer = reply.answer
        if isinstance(answer, WireError):
            raise answer
        if reply.breaks_after == 0:
            raise connection_failed(ConnectionResetError("scripted"), request.url)
        self._answers[number] = answer
        times: dict[str, Any] = {"delay": reply.delay, "pause": reply.pause}
        if isinstance(answer, InterlinguaError):
            return MemoryReply(request.body, status=answer.status or 500, **times)
        pieces = _pieces(number, answer, reply, streamed=sent.options.stream)
        kind = "text/event-stream" if sent.options.stream else "application/json"
        return MemoryReply(pieces, headers={"content-type": kind}, **times)

    @property
    def last(self) -> SentRequest:
        """The newest request.

        Raises:
            AssertionError: nothing was sent.
        """
        if not self.requests:
            raise AssertionError("the application sent no request")
        return self.requests[-1]

    def assert_done(self) -> None:
        """Raise an AssertionError if answers of the script are left."""
        left = [] if callable(self._next) else list(self._next)
        if left:
            self._next = iter(left)
            text = f"{len(left)} scripted answers were not asked for, after {len(self.requests)} requests"
            raise AssertionError(text)

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
        return self._message(loads(response.body), context)

    @hookimpl
    async def stream_response(
        self, response_stream: AsyncIterator[WireChunk], context: RequestContext
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of the scripted answer, text word by word."""
        events: Iterator[StreamEvent] = iter(())
        async for chunk in response_stream:
            number, place, is_last = loads(chunk.data)
            if place == 0:
                events = _word_by_word(self._message(number, context))
            for event in events:
                yield event
                if isinstance(event, TextDelta) and not is_last:
                    break

    def _message(self, number: int, context: RequestContext) -> Message:
        answer = self._answers[number]
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


def _word_by_word(message: Message) -> Iterator[StreamEvent]:
    for event in message_to_events(message):
        if not isinstance(event, TextDelta):
            yield event
            continue
        for place, word in enumerate(event.text.split(" ")):
            yield TextDelta(index=event.index, text=f" {word}" if place else word)


def _pieces(number: int, answer: Any, reply: ScriptedReply, *, streamed: bool) -> Iterator[bytes]:
    """Yield a body with the number of the answer: once, or in one event for each word if words take time."""
    if not streamed:
        if reply.breaks_after is None:
            yield dumps(number)
    elif reply.pause or reply.breaks_after is not None:
        parts = answer.content if isinstance(answer, Message) else [answer] if isinstance(answer, str) else answer
        parts = [parts] if isinstance(parts, ToolUseBlock) else parts
        texts = [part if isinstance(part, str) else part.text for part in parts if isinstance(part, str | TextBlock)]
        words = max(sum(len(text.split(" ")) for text in texts), 1)
        for place in range(words):
            if place == reply.breaks_after:
                break
            yield b"data: %b\n\n" % dumps([number, place, place + 1 == words])
    else:
        yield b"data: %b\n\n" % dumps([number, 0, True])
    if reply.breaks_after is not None:
        raise connection_failed(ConnectionResetError("scripted"))


def _count_words(message: Message) -> int:
    return len(message.text.split()) + len(message.tool_calls) + len(message.tool_results)

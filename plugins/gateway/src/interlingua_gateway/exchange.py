"""One request: read in the caller's API, answered by a model of any provider, written in the caller's API."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl, urlencode

import attrs

from interlingua._pricing import cost_of
from interlingua.errors import (
    AuthenticationError,
    CallerError,
    CapabilityError,
    InterlinguaError,
    ModelNotFoundError,
    PermissionDeniedError,
    PluginError,
    ServerError,
)
from interlingua.plugins import Loss, Provider, Registry, WireRequest, WireResponse, estimate_tokens
from interlingua.types import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageComplete,
    MessageStatus,
    Origin,
    RequestOptions,
    Role,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from interlingua_gateway.access import NOBODY
from interlingua_serving import (
    InboundRequest,
    ServeContext,
    from_wire_request,
    stream_to_wire,
    to_wire_auxiliary,
    to_wire_error,
    to_wire_response,
)

if TYPE_CHECKING:
    from interlingua import AsyncClient
    from interlingua._http.streams import AsyncMessageStream
    from interlingua_gateway.access import Admission
    from interlingua_gateway.gateway import Gateway

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"})
_HEADER_LIMIT = 4_000  # bytes of the ledger in a header: servers and proxies allow 8,000 for all
_OPTIONS = tuple(attrs.fields_dict(RequestOptions).keys() - {"model", "stream", "connection"})


# what a request may name that only the service of its API keeps: no other can answer without it
_REFERENCES = {
    "messages": ("container",),
    "responses": ("previous_response_id", "conversation", "prompt"),
    "generate": ("cachedContent",),
}


class BodyTooLargeError(CallerError):
    """A request whose body is larger than the gateway takes: status 413."""


class UpstreamKeyError(ServerError):
    """The gateway has no key for a model's service, or one that is refused: status 503, and no use to try again."""


class ServedApi:
    """The requests of one API: an ASGI application for one of its paths.

    Args:
        gateway: what it belongs to.
        provider: key of the provider whose API it is.
        api: which of that provider's APIs.
        kind: `send` for a conversation, else a kind of `to_wire_auxiliary`.
        path: the path, as a pattern.
    """

    def __init__(self, gateway: Gateway, provider: str, api: str, kind: str, path: str) -> None:
        self.gateway, self.key, self.api, self.kind, self.path = gateway, provider, api, kind, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what goes wrong is answered as this API's errors are."""
        provider = self.gateway.registry.provider(self.key)
        request = _Request(self, provider, scope, receive, send)
        activity = self.gateway.registry.instrument("serve_request", request.facts())
        with activity or nullcontext():
            try:
                await request.answer()
            except InterlinguaError as error:
                await request.fail(error)
            except Exception as error:
                self.gateway.log.exception("request %s failed", request.id)
                request.failure = error
                if request.status is not None:
                    raise
                await request.fail(ServerError(f"the gateway failed; its log has more under {request.id}"), cause=error)
            finally:
                if activity is not None:
                    activity.end(None, request.failure, {"status": request.status})


class _Request:
    """The state of one request."""

    def __init__(self, api: ServedApi, provider: Provider, scope: Scope, receive: Receive, send: Send) -> None:
        self._api, self._gateway, self._provider = api, api.gateway, provider
        self._scope, self._receive, self._send = scope, receive, send
        self._context = ServeContext(provider=api.key, api=api.api)
        self._started = time.perf_counter()
        self._admission: Admission | None = None
        self._asked: _Target | None = None
        self._inbound: InboundRequest
        self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.id = self._context.answer_id
        self.status: int | None = None  # as soon as the answer has begun
        self.failure: BaseException | None = None
        self._last = b""  # the end of a streamed answer, until its state is kept

    def facts(self) -> dict[str, Any]:
        """Return what plugins are told of the request: nothing that holds a key."""
        scope = self._scope
        return {
            "method": scope["method"], "scheme": scope.get("scheme", "http"), "path": scope["path"],
            "route": self._api.path, "http_version": scope.get("http_version", "1.1"), "client": scope.get("client"),
            "headers": {name: value for name, value in self._headers.items() if name not in _SECRETS},
        }  # fmt: skip

    async def answer(self) -> None:
        """Read the request, have it answered, write the answer.

        Raises:
            InterlinguaError: it cannot be read or is not let in, or no model answers.
        """
        gateway, context = self._gateway, self._context
        headers = self._headers
        query = parse_qsl(self._scope["query_string"].decode("latin-1"), keep_blank_values=True)
        key = await gateway.access.authenticate(headers, dict(query).get("key"))
        self._context = context = gateway.context(context, NOBODY if key is None else key.id)
        body = await self._read_body(headers)
        path = self._scope["path"]
        if plain := urlencode([(name, value) for name, value in query if name != "key"]):
            path += f"?{plain}"
        kept = {name: value for name, value in headers.items() if name not in _SECRETS}
        wire = WireRequest(method=self._scope["method"], path=path, headers=kept, body=body, api=self._api.api)
        inbound = from_wire_request(self._provider, wire, context)
        self._context = context = attrs.evolve(context, model=inbound.options.model, echo=inbound.echo)
        self._admission = await gateway.access.admit(key, inbound.options.model, self._api.key)
        if gateway.recall is not None:
            inbound = await gateway.recall.restore(self._admission.tenant, inbound)
        self._inbound = inbound
        if self._api.kind != "send":
            await self._first_that_answers(inbound, self._count)
        elif inbound.options.stream:
            await self._first_that_answers(inbound, self._stream)
        else:
            await self._first_that_answers(inbound, self._whole)

    async def fail(self, error: InterlinguaError, cause: BaseException | None = None) -> None:
        """Write an error, unless an answer has begun: a stream says itself how it ended."""
        self.failure = cause or error
        if self._admission is not None:
            await self._settle(error.partial, cause or error)
        else:
            self._gateway.access.count_refusal(self._api.key, error)
        if self.status is None:
            response = to_wire_error(self._provider, error, self._context)
            extra = {"x-interlingua-request-id": self.id}
            if isinstance(error, BodyTooLargeError):
                response = attrs.evolve(response, status=413)
            elif isinstance(error, UpstreamKeyError):
                response = attrs.evolve(response, status=503)
                extra["x-should-retry"] = "false"  # the SDKs of Anthropic and OpenAI read it
            if (seconds := getattr(error, "retry_after", None)) is not None:
                extra["retry-after"] = str(max(1, round(seconds)))
            await self._respond(response, extra)

    async def _first_that_answers(
        self, inbound: InboundRequest, ask: Callable[[AsyncClient, _Target], Awaitable[None]]
    ) -> None:
        """Ask the models of the route in order, until one has begun to answer."""
        route = self._gateway.config.route(inbound.options.model, self._api.key)
        targets = route.targets(inbound.options.model)
        client = self._gateway.client(route)
        for place, name in enumerate(targets, 1):
            try:
                target = self._target(inbound, name, route.max_tokens)
                self._asked = target
                if self._admission is not None:
                    self._admission.target = target.name
                await ask(client, target)
            except InterlinguaError as error:
                if self.status is not None or place == len(targets) or isinstance(error, CallerError):
                    raise self._without_upstreams_key(error) from error
                self._gateway.log.warning("request %s: %s did not answer: %s", self.id, name, type(error).__name__)
            else:
                return

    def _target(self, inbound: InboundRequest, name: str, most: int | None) -> _Target:
        try:
            model = self._gateway.registry.resolve(name)
            provider = self._gateway.registry.provider(model.provider)
        except (CallerError, PluginError) as error:  # its text is for who runs the gateway: it lists what is installed
            self._gateway.log.warning("request %s: no model %r: %s", self.id, name, error)
            raise ModelNotFoundError(f"the model {inbound.options.model!r} does not exist") from None
        can = provider.capabilities(model.name)
        if (model.provider, can.api) != (self._api.key, self._api.api):
            _refuse_references(inbound, _REFERENCES.get(self._api.api, ()), str(model))
        messages, options, losses = inbound.for_upstream(model.provider, can.api, model.name)
        if not self._gateway.config.fetch_urls and not can.supports_image_urls:
            _refuse_urls(messages, str(model))
        if most is not None and (options.max_tokens or 0) > most:
            reason = f"the gateway allows {most} tokens"
            losses += (Loss(path="options.max_tokens", block_type="option", verdict="rewritten", reason=reason),)
            options = attrs.evolve(options, max_tokens=most)
        origin = Origin(model.provider, can.api, model.name)
        return _Target(str(model), origin, messages, inbound.tools, options, losses)

    def _without_upstreams_key(self, error: InterlinguaError) -> InterlinguaError:
        """Return an error for the caller; that the gateway's own key is wanting or refused is no fault of his."""
        if not isinstance(error, AuthenticationError | PermissionDeniedError):
            return error
        text = "the service of this model does not accept the gateway's key"
        if error.provider and (names := self._gateway.missing_key(error.provider)):
            text = f"the gateway has no key for {error.provider}"
            if self._gateway.config.auth == "none":  # who asks is who runs it
                text += f": set {names} where it runs"
        self._gateway.log.warning("request %s: %s", self.id, text)
        failure = UpstreamKeyError(text, provider=error.provider, status=503)
        failure.partial = error.partial
        return failure

    # -- whole ---------------------------------------------------------------------------------------------------

    async def _whole(self, client: AsyncClient, target: _Target) -> None:
        asking = asyncio.ensure_future(self._ask(client, target))
        gone = asyncio.ensure_future(self._wait_until_gone())
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if left := not asking.done():
                asking.cancel()
                with suppress(asyncio.CancelledError, InterlinguaError):
                    await asking
                await self._settle(None, None)
        if left:
            return
        message, losses = asking.result()
        context = attrs.evolve(self._context, origin=message.metadata.origin or target.origin)
        response = to_wire_response(self._provider, message, context)
        self._gateway.access.count_losses(self._api.key, target.name, [*losses, *response.losses])
        await self._keep(message)
        await self._respond(response, self._facts(target, [*losses, *response.losses]))
        await self._settle(message, None)

    async def _ask(self, client: AsyncClient, target: _Target) -> tuple[Message, Sequence[Loss]]:
        exchange = await client.prepare(target.messages, model=target.name, tools=target.tools, **target.given)
        while True:
            try:
                return await client.attempt(exchange), [*target.losses, *exchange.request.wire.losses]
            except InterlinguaError as error:
                await asyncio.sleep(exchange.retry_delay(error))

    # -- streamed ------------------------------------------------------------------------------------------------

    async def _stream(self, client: AsyncClient, target: _Target) -> None:
        async with client.stream(target.messages, model=target.name, tools=target.tools, **target.given) as stream:
            context = attrs.evolve(self._context, origin=target.origin)
            writer = stream_to_wire(self._provider, context)
            losses = [*target.losses, *stream.request.losses]
            facts = self._facts(target, losses)
            await self._begin(200, {"content-type": writer.content_type, "cache-control": "no-cache", **facts})
            pump = asyncio.ensure_future(self._pump(stream, writer))
            gone = asyncio.ensure_future(self._wait_until_gone())
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:  # the gateway stops and gives no more time
                if pump.cancel():
                    end = self._last + writer.end()
                    await self._send({"type": "http.response.body", "body": end, "more_body": False})
                raise
            finally:
                gone.cancel()
                pump.cancel()
                await asyncio.wait({pump})
                if writer.losses:  # the headers are gone: what a stream loses shows later
                    self._gateway.log.warning("request %s: the answer lost %s", self.id, _ledger(writer.losses))
                self._gateway.access.count_losses(self._api.key, target.name, [*losses, *writer.losses])
                self.failure = None if pump.cancelled() else pump.exception() or pump.result()
                await self._settle(stream.partial, self.failure)
            if not pump.cancelled():
                pump.result()  # raises what is the gateway's own fault

    async def _pump(self, stream: AsyncMessageStream, writer: Any) -> BaseException | None:
        """Write what one upstream read brought in one write; return what ended the answer badly."""
        failure: BaseException | None = None
        try:
            async for events in stream.batches():
                data = writer.feed(events)
                if events and isinstance(events[-1], MessageComplete):
                    self._last = data
                elif data:
                    await self._send({"type": "http.response.body", "body": data, "more_body": True})
            await self._keep(stream.partial)
        except InterlinguaError as error:  # the writer has said so
            failure = error
        await self._send({"type": "http.response.body", "body": self._last + writer.end(), "more_body": False})
        return failure

    async def _wait_until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # -- other requests ------------------------------------------------------------------------------------------

    async def _count(self, client: AsyncClient, target: _Target) -> None:
        """Count a request's tokens by its model's service, or estimate them where it does not count."""
        try:
            tokens = await client.count_tokens(target.messages, model=target.name, tools=target.tools, **target.given)
        except CapabilityError:
            provider = self._gateway.registry.provider(target.origin.provider)
            tokens = provider.estimate_input_tokens(target.messages, target.tools, target.options) or 0
        await self._settle(None, None)
        response = to_wire_auxiliary(self._provider, self._api.kind, tokens, self._context)
        await self._respond(response, self._facts(target, target.losses))

    # -- inside --------------------------------------------------------------------------------------------------

    async def _settle(self, message: Message | None, error: BaseException | None) -> None:
        if self._admission is not None:
            admission, self._admission = self._admission, None
            if message is not None and message.metadata.status is not MessageStatus.COMPLETE and self._asked:
                message = self._asked.with_estimate(message, self._gateway.registry)
            await self._gateway.access.settle(admission, message, error)
            if (record := self._gateway.record) is not None and message is not None and self._asked is not None:
                asked = (admission.tenant, self._asked.name, self._inbound, message)
                if not await record.append(*asked):
                    self._gateway.access.count_unrecorded(self._api.key)

    async def _keep(self, message: Message) -> None:
        """Keep what the caller's API does not carry, before the answer ends: a request may follow at once."""
        recall, own = self._gateway.recall, (self._api.key, self._api.api)
        if recall is not None and self._admission is not None and (message.metadata.origin or own)[:2] != own:
            await recall.keep(self._admission.tenant, self._inbound, message)

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        limit = self._gateway.config.body_limit
        text = headers.get("content-length", "0")
        if text.isdecimal() and int(text) > limit:
            raise BodyTooLargeError(f"the body has {text} bytes; the gateway takes {limit}")
        parts: list[bytes] = []
        size = 0
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise CallerError("the caller went away")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise BodyTooLargeError(f"the body has more than {limit} bytes, which is what the gateway takes")
            if not event.get("more_body"):
                return b"".join(parts)

    def _facts(self, target: _Target, losses: Sequence[Loss]) -> dict[str, str]:
        """Return the headers that say who answered and what was lost on the way to it."""
        return {
            "x-interlingua-request-id": self.id,
            "x-interlingua-model": target.name,
            "x-interlingua-losses": _ledger(losses),
        }

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def _respond(self, response: WireResponse, facts: Mapping[str, str]) -> None:
        length = {"content-length": str(len(response.body))}
        await self._begin(response.status, {**response.headers, **length, **facts})
        await self._send({"type": "http.response.body", "body": response.body, "more_body": False})


@attrs.frozen
class _Target:
    """What is sent to one model: its id, its origin, the conversation, tools, options, and what was lost so far."""

    name: str
    origin: Origin
    messages: tuple[Message, ...]
    tools: Sequence[Any]
    options: RequestOptions
    losses: tuple[Loss, ...]

    @property
    def given(self) -> dict[str, Any]:
        """The options as the client takes them."""
        found = {name: getattr(self.options, name) for name in _OPTIONS}
        return {name: value for name, value in found.items() if value is not None}

    def with_estimate(self, message: Message, registry: Registry) -> Message:
        """Return a cut answer with an estimate of its use: services report it at the end, which never came."""
        provider = registry.provider(self.origin.provider)
        options = attrs.evolve(self.options, model=self.origin.model)
        usage = message.metadata.usage or Usage()
        given = usage.input_tokens
        if given is None:
            given = estimate_tokens(provider, self.messages, self.tools, options)
        said = Message(role=Role.USER, content="".join(map(_text_of, message.content)))
        made = max(usage.output_tokens or 0, estimate_tokens(provider, [said], (), options))
        usage = attrs.evolve(usage, input_tokens=given, output_tokens=made)
        usage = cost_of(usage, provider.model(self.origin.model), message.created_at)
        return attrs.evolve(message, metadata=attrs.evolve(message.metadata, usage=usage))


def _text_of(block: ContentBlock) -> str:
    if isinstance(block, ToolUseBlock):
        return block.input_json
    text = getattr(block, "text", "")
    return text if isinstance(text, str) else ""


def _refuse_references(inbound: InboundRequest, names: Sequence[str], model: str) -> None:
    for name in names:
        if inbound.extra.get(name) is not None:
            text = f"{name} names what only this API's own service keeps, and {model} answers"
            raise CapabilityError(f"{text}; send the whole conversation in the request")


def _refuse_urls(messages: Sequence[Message], model: str) -> None:
    for at, message in enumerate(messages):
        for block in message.content:
            inner = block.content if isinstance(block, ToolResultBlock) else (block,)
            for part in inner:
                if isinstance(part, ImageBlock | DocumentBlock | AudioBlock) and part.source.kind == "url":
                    text = f"message {at}: {model} takes no addresses of media, and the gateway fetches none"
                    raise CapabilityError(f"{text}; send the data itself")


def _ledger(losses: Sequence[Loss]) -> str:
    """Return the rows as ASCII JSON; those that do not fit are counted by the last one."""
    rows: list[dict[str, Any]] = [{"path": row.path, "verdict": row.verdict, "reason": row.reason} for row in losses]
    text = ""
    for kept in range(min(len(rows), 100), -1, -1):
        more: list[dict[str, Any]] = [{"more": len(rows) - kept}] if kept < len(rows) else []
        text = json.dumps(rows[:kept] + more, separators=(",", ":"))
        if len(text) <= _HEADER_LIMIT:
            break
    return text

"""Answer one request: read it in the caller's API, ask a model of any provider, write its answer in that API."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import attrs

from interlingua import Retry
from interlingua.errors import (
    CallerError,
    CapabilityError,
    InterlinguaError,
    ModelNotFoundError,
    OverloadedError,
    ServerError,
)
from interlingua.fallback import may_be_paid
from interlingua.plugins import Loss, WireRequest, WireResponse, estimate_tokens
from interlingua.types import ErrorEvent, Message, MessageComplete, Role, Usage
from interlingua_gateway.access import NOBODY, Admission
from interlingua_gateway.activity import Activity
from interlingua_gateway.body import (
    FINISH,
    BodyTooLargeError,
    Receive,
    Scope,
    Send,
    check_values,
    read_body,
    wait_until_gone,
    write_body,
)
from interlingua_gateway.errors import error_for_caller, hide_addresses, write_error
from interlingua_gateway.guards import Caller
from interlingua_gateway.kept import AnswerNotFoundError
from interlingua_gateway.local_requests import check_local_request
from interlingua_gateway.models import ModelChoice, RoutedModel, choose_models
from interlingua_gateway.recall import shown
from interlingua_gateway.services import Services
from interlingua_gateway.store import Key, Use, ask_store
from interlingua_gateway.upstream_request import (
    AnswerSize,
    UpstreamRequest,
    check_members,
    further_cost,
    header_value,
    ledger_text,
    needs_estimate,
    upstream_request,
)
from interlingua_serving import (
    InboundRequest,
    ServeContext,
    ServedApi,
    ServedModel,
    ServedRoute,
    ServingPlugin,
    answer_events,
)

if TYPE_CHECKING:
    from interlingua import AsyncClient, AsyncMessageStream

_UNKNOWN_OUTPUT = 32_000  # tokens that are reserved for an answer of a model without a known limit
_LEAST_OUTPUT = 1_024  # fewest tokens to which an answer is limited if the budget has no more left
_NO_MORE = "the budget of the key, or its tokens for this minute, have no more left"
_MARGIN = 1.5  # how many times the estimated input is reserved
_T = TypeVar("_T")


class ApiEndpoint:
    """An ASGI application for one path of one API.

    Args:
        services: the services that all requests share.
        plugin: the serving plugin of the API.
        api: the API.
        route: the path.
    """

    def __init__(self, services: Services, plugin: ServingPlugin, api: ServedApi, route: ServedRoute) -> None:
        self.services, self.plugin, self.api, self.route = services, plugin, api, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; failures are written as this API's errors."""
        request = _Request(self, scope, receive, send)
        activity = self.services.registry.instrument("serve_request", request.facts())
        with activity or nullcontext():
            try:
                await request.answer()
            except InterlinguaError as error:
                await request.fail(error)
            except Exception as error:
                self.services.log.exception("request %s failed", request.id)
                request.failure = error
                if request.status is not None:
                    raise
                text = f"the gateway failed; its log has the details of request {request.id}"
                await request.fail(ServerError(text), cause=error)
            finally:
                self.services.end_request(request.held)
                if activity is not None:
                    activity.end(None, request.failure, {"status": request.status})
                if request.failure is not None:
                    await request.note_failure(request.failure)


class _Request:
    """The state of one request."""

    def __init__(self, endpoint: ApiEndpoint, scope: Scope, receive: Receive, send: Send) -> None:
        self._services, self._plugin = endpoint.services, endpoint.plugin
        self._api, self._route = endpoint.api, endpoint.route
        self._scope, self._receive, self._send = scope, receive, send
        self._context = ServeContext(provider=self._plugin.key, api=self._api.name)
        self._started = time.perf_counter()
        self._key: Key | None = None
        self._admission: Admission | None = None
        self._asked: UpstreamRequest | None = None
        self._work: Callable[..., Awaitable[Any]] = partial(endpoint.services.work, 0)  # of a body of no bytes
        self._wire: WireRequest | None = None  # with the conversation that it continues
        self._has_left = False  # the caller, before a whole answer
        self._is_settled = False
        self._repeated_as: str | None = None  # the name under which the answer is kept for a repeated request
        self._choice: ModelChoice
        self._model: RoutedModel  # that is asked
        self._sent: InboundRequest  # as the caller sent it
        self._inbound: InboundRequest  # with the state that the gateway kept
        self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.id = self._context.answer_id
        self.held = 0  # bytes of its body
        self.status: int | None = None  # set when the answer starts
        self.failure: BaseException | None = None
        self._last = b""  # the end of a streamed answer, sent after its state is stored

    def facts(self) -> dict[str, Any]:
        """Return the facts for plugins, without headers that may hold a key."""
        scope, secret = self._scope, self._services.secret_headers
        return {
            "method": scope["method"], "scheme": scope.get("scheme", "http"), "path": scope["path"],
            "route": self._route.path, "http_version": scope.get("http_version", "1.1"), "client": scope.get("client"),
            "headers": {name: value for name, value in self._headers.items() if name not in secret},
        }  # fmt: skip

    async def answer(self) -> None:
        """Read the request, let a model answer, and write the answer.

        Raises:
            InterlinguaError: the request is invalid or not admitted, or no model answers.
        """
        services, context, headers = self._services, self._context, self._headers
        check_local_request(self._scope, services.config)
        query = parse_qsl(self._scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self._key = key = await services.access.authenticate(headers, dict(query))
        if await self._answer_without_body():
            return
        self._context = context = services.context(context, NOBODY if key is None else key.id)
        body = await read_body(self._receive, headers, services.config.body_limit)
        self.held = len(body)
        services.held += self.held
        self._work = partial(services.work, self.held)
        path = self._scope["path"]
        if plain := urlencode([(name, value) for name, value in query if name not in services.key_parameters]):
            path += f"?{plain}"
        kept = {name: value for name, value in headers.items() if name not in self._services.secret_headers}
        wire = WireRequest(method=self._scope["method"], path=path, headers=kept, body=body, api=self._api.name)
        self._sent = inbound = await self._read_whole(wire, context)
        asked = inbound.options.model
        if self._route.kind == "model":
            await self._describe(asked)
            return
        self._choice = choose_models(services.config, services.registry, asked, self._plugin.key)
        self._context = attrs.evolve(context, model=asked, echo=inbound.echo)
        check_members(inbound, self._api, limited=services.config.routes_only or (key is not None and key.is_limited))
        self._admission = await services.access.admit(key, self._choice, self._plugin.key)
        if services.recall is not None:
            gaps = await self._work(services.recall.find_gaps, inbound)
            inbound = await services.recall.restore(self._admission.tenant, inbound, gaps)
        if services.guards:
            inbound = await services.guards.check_request(inbound, self._caller())
        self._inbound = inbound
        if self._route.kind != "send":
            await self._first_that_answers(inbound, self._count)
        elif await self._answer_again(path, body):
            return
        elif inbound.options.stream and not services.guards.read_answers:
            await self._first_that_answers(inbound, self._stream)
        else:
            await self._first_that_answers(inbound, self._whole)

    def _caller(self) -> Caller:
        key = self._key
        asked = self._choice.asked, self._api.name
        return Caller(NOBODY, "", *asked) if key is None else Caller(key.id, key.team, *asked)

    async def _answer_again(self, path: str, body: bytes) -> bool:
        """Answer with a kept answer to exactly the same request; return False without one."""
        cache, admission, seconds = self._services.cache, self._admission, self._choice.route.cache_seconds
        if cache is None or admission is None or not seconds:
            return False
        models = [model.label for model in self._choice.models]
        self._repeated_as = name = await self._work(cache.name_of, path, body, self._sent, models)
        message = await cache.find(admission.tenant, name)
        if message is None or message.metadata.origin is None:
            return False
        self._services.access.count_cached(self._plugin.key)
        self._weigh(message)
        context = attrs.evolve(self._context, origin=message.metadata.origin)
        response = await self._work(self._written, message, context)
        self._repeated_as = None
        await self._keep(message, response)
        facts = {"x-interlingua-request-id": self.id, "x-interlingua-cache": "hit"}
        await self._respond(response, {**facts, "x-interlingua-model": message.metadata.model or ""})
        await self._settle(None, None)
        return True

    def _written(self, message: Message, context: ServeContext) -> WireResponse:
        """Write a whole answer, as a stream if the caller asked for one."""
        if not self._sent.options.stream:
            return self._plugin.to_wire_response(message, context)
        writer = self._plugin.stream_to_wire(context)
        body = writer.feed(answer_events(message, pieces=1)) + writer.end()
        headers = {"content-type": writer.content_type, "cache-control": "no-cache"}
        return WireResponse(headers=headers, body=body, losses=tuple(writer.losses))

    async def _check_answer(self, message: Message) -> Message:
        """Return the answer that the guards let pass; one that they refuse is paid nevertheless."""
        if not self._services.guards.read_answers:
            return message
        try:
            return await self._services.guards.check_answer(message, self._caller())
        except Exception as error:
            await self._settle(message, error)
            raise

    async def _answer_without_body(self) -> bool:
        """Answer a request that has no body, about models, the version or a kept answer; return False for others."""
        services, context, key, kind = self._services, self._context, self._key, self._route.kind
        parameters = self._scope["path_params"]
        if kind == "models":
            names = services.model_names(() if key is None else key.models)
            await self._respond(self._plugin.to_wire_auxiliary("models", names, context), {})
        elif kind == "version":
            await self._respond(self._plugin.to_wire_auxiliary("version", None, context), {})
        elif kind == "model" and parameters.get("model") is not None:
            await self._describe(parameters["model"])
        elif kind in ("answer", "cancel", "delete"):
            if key is None or services.kept is None or not key.keep_answers:
                raise AnswerNotFoundError("this key keeps no answers (keys add NAME --keep-answers)")
            written = await services.kept.respond(self._plugin, kind, key.id, parameters["answer"], context)
            await self._respond(written, {})
        else:
            return False
        return True

    async def _read_whole(self, wire: WireRequest, context: ServeContext) -> InboundRequest:
        """Read a request, with the conversation that it continues if its key keeps answers."""
        inbound: InboundRequest = await self._work(self._read, wire, context)
        kept, key = self._services.kept, self._key
        if kept is None or key is None or not key.keep_answers:
            return inbound
        if inbound.continues is not None and kept.may_have(inbound.continues):
            found = await kept.find(key.id, self._api.name, inbound.continues)
            self._work = partial(self._services.work, len(wire.body) + len(found.request))
            wire = await self._work(self._plugin.continue_request, wire, found.request, found.answer, context)
            inbound = attrs.evolve(await self._work(self._read, wire, context), echo=inbound.echo)
        self._wire = wire if inbound.stored else None
        return inbound

    def _read(self, wire: WireRequest, context: ServeContext) -> InboundRequest:
        config = self._services.config
        check_values(wire.body, config.value_limit)
        try:
            inbound = self._plugin.from_wire_request(wire, context)
        except RecursionError:
            raise CallerError("the request is nested too deeply") from None
        if len(inbound.messages) > config.message_limit:
            raise BodyTooLargeError(f"a request may have {config.message_limit} messages here")
        if len(inbound.tools) > config.tool_limit:
            raise BodyTooLargeError(f"a request may have {config.tool_limit} tools here")
        return inbound

    async def fail(self, error: InterlinguaError, cause: BaseException | None = None) -> None:
        """Write an error, unless an answer has started: a stream reports its own end."""
        self.failure = cause or error
        if self._admission is not None:
            await self._settle(error.partial, cause or error)
        elif not self._is_settled:
            self._services.access.count_refusal(self._plugin.key, error)
        if self.status is None:
            shown = self._without_addresses(error)
            await self._respond(write_error(self._plugin, shown, self._context, self._route), {})

    async def note_failure(self, failure: BaseException) -> None:
        """Store the class of a failure for operators, without its text, which may quote the conversation."""
        store, key = self._services.store, self._key
        if store is not None and key is not None:
            model = "" if self._asked is None else self._asked.name
            facts = (self.id, key.id, self._plugin.key, model, type(failure).__name__, self.status)
            with suppress(OverloadedError):
                await ask_store(Activity(store.database).add_failure, *facts)

    def _without_addresses(self, error: InterlinguaError) -> InterlinguaError:
        """Return an error without addresses of services; the log keeps them."""
        place = self._services.base_url(self._model) if self._asked is not None else None
        before = error.message
        if hide_addresses(error, place).message != before:
            self._services.log.info("request %s: %s", self.id, before)
        return error

    async def _first_that_answers(
        self, inbound: InboundRequest, ask: Callable[[AsyncClient, UpstreamRequest], Awaitable[None]]
    ) -> None:
        """Ask the models of the route in order, until one has started to answer."""
        choice, health = self._choice, self._services.health
        balance = choice.route.balance
        models = health.ordered(choice.models, balance, "" if balance == "order" else self._identity())
        all_rest = health.rests(models[0])
        for model in models:
            last = model is models[-1]
            if not health.claim(model) and not (last or all_rest):  # it failed since they were ordered
                continue
            try:
                with health.asking(model):
                    await self._ask_model(inbound, model, ask, last=last)
            except InterlinguaError as error:
                if self.status is not None or self._has_left or last or not isinstance(error, health.policy.on):
                    raise error_for_caller(error, self._services, self.id, model) from error
                name = type(error).__name__
                self._services.log.info("request %s: %s did not answer: %s", self.id, model.label, name)
                if self._admission is not None:
                    await self._services.access.settle_attempt(self._admission, self._use_of_failure(error))
            else:
                return

    def _identity(self) -> str:
        """Return a string that all requests of a conversation share: the tenant and the first message of the user."""
        asked = next((shown(each) for each in self._inbound.messages if each.role is Role.USER), None)
        return f"{self._admission.tenant if self._admission else ''} {asked}"

    async def _ask_model(
        self,
        inbound: InboundRequest,
        model: RoutedModel,
        ask: Callable[[AsyncClient, UpstreamRequest], Awaitable[None]],
        *,
        last: bool,
    ) -> None:
        """Ask a model, again after failures unless it rests and is not the last one that can be asked."""
        services, health = self._services, self._services.health
        self._model = model
        route = self._choice.route
        given = services, self._plugin.key, self._api, route, inbound, model
        target: UpstreamRequest = await self._work(upstream_request, *given)
        client = self._services.client(route, model)
        retry, end = Retry(max_attempts=route.retries + 1), time.monotonic() + (route.total or float("inf"))
        for attempt in itertools.count(1):
            self._asked = target
            if self._admission is not None:
                self._admission.target = target.name
                if self._route.kind == "send":
                    self._asked = await self._reserve(self._admission, target)
            try:
                await ask(client, self._asked)
            except InterlinguaError as error:
                health.note(model, error)
                delay = retry.delay(error, attempt)
                if delay is None or time.monotonic() + delay >= end or self.status is not None or self._has_left:
                    raise
                if not last and health.rests(model):
                    raise
                if self._admission is not None:
                    await self._services.access.settle_attempt(self._admission, self._use_of_failure(error))
                await asyncio.sleep(delay)
            else:
                health.note(model, self.failure)
                return

    async def _reserve(self, admission: Admission, target: UpstreamRequest) -> UpstreamRequest:
        """Reserve the most that a request to a model may cost; limit its output to what the budget pays for."""
        access = self._services.access
        if admission.key is None or access.spending is None:
            return target
        provider = self._services.registry.provider(target.origin.provider)
        options = attrs.evolve(target.options, model=target.origin.model)
        estimate = await self._work(estimate_tokens, provider, target.messages, target.tools, options)
        limit = options.max_tokens or provider.capabilities(options.model).max_output_tokens or _UNKNOWN_OUTPUT
        least = limit if options.max_tokens else min(_LEAST_OUTPUT, limit)
        info = self._services.model_info(target.origin)
        cost = further_cost(target, self._api, self._choice.route)
        most = await access.reserve(admission, target.name, info, int(estimate * _MARGIN), limit, least, cost)
        target = target.with_tool_limits(self._api) if admission.has_budget else target
        return target if most >= limit else target.with_limit(most, _NO_MORE)

    def _use_of_failure(self, error: InterlinguaError) -> Use:
        """Return what an attempt that failed used: its partial answer, or the most if an answer may have been lost."""
        admission = self._admission
        if error.partial is not None and error.partial.content and self._asked is not None:
            usage = self._asked.with_estimate(error.partial, self._services).metadata.usage or Usage()
            given, made = usage.input_tokens or 0, usage.output_tokens or 0
            cost = (usage.cost_usd or Decimal(0)) + (admission.beside(error.partial) if admission else 0)
            return Use(input_tokens=given, output_tokens=made, cost_usd=cost, requests=0)
        if admission is not None and may_be_paid(error):
            return attrs.evolve(admission.most, requests=0)
        return Use(requests=0)

    # -- whole ---------------------------------------------------------------------------------------------------

    async def _whole(self, client: AsyncClient, target: UpstreamRequest) -> None:
        limit = asyncio.timeout(None)
        gone = asyncio.ensure_future(self._end_when_gone(limit))
        try:
            async with limit:
                message, losses = await asyncio.ensure_future(self._ask(client, target))
        except (TimeoutError, asyncio.CancelledError):
            await self._settle(None, None, unknown=True)
            if not limit.expired():
                raise
            return
        finally:
            gone.cancel()
        if self._has_left:
            await self._settle(message, None)
            return
        self._weigh(message)
        message = await self._check_answer(message)
        context = attrs.evolve(self._context, origin=message.metadata.origin or target.origin)
        response = await self._work(self._written, message, context)
        self._services.access.count_losses(self._plugin.key, target.name, [*losses, *response.losses])
        await self._keep(message, response)
        await self._respond(response, self._facts(target, [*losses, *response.losses]))
        await self._settle(message, None)

    async def _ask(self, client: AsyncClient, target: UpstreamRequest) -> tuple[Message, Sequence[Loss]]:
        exchange = await client.prepare(target.messages, model=target.name, tools=target.tools, **target.given)
        while True:
            try:
                return await client.attempt(exchange), [*target.losses, *exchange.request.wire.losses]
            except InterlinguaError as error:  # rejected credentials are replaced; nothing else is tried again here
                await asyncio.sleep(exchange.retry_delay(error))

    # -- streamed ------------------------------------------------------------------------------------------------

    async def _stream(self, client: AsyncClient, target: UpstreamRequest) -> None:
        ask = partial(client.stream, target.messages, model=target.name, tools=target.tools, **target.given)
        async with await self._work(ask) as stream:
            context = attrs.evolve(self._context, origin=target.origin)
            writer = self._plugin.stream_to_wire(context)
            losses = [*target.losses, *stream.request.losses]
            facts = self._facts(target, losses)
            await self._begin(200, {"content-type": writer.content_type, "cache-control": "no-cache", **facts})
            pump = asyncio.ensure_future(self._pump(stream, writer))
            gone = asyncio.ensure_future(wait_until_gone(self._receive))
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:  # the gateway stops, and the time to finish is over
                if pump.cancel():
                    end = self._last + writer.end()
                    await write_body(self._send, end)
                raise
            finally:
                gone.cancel()
                pump.cancel()
                await asyncio.wait({pump})
                if writer.losses:  # the headers are sent before a stream loses anything
                    self._services.log.warning(
                        "request %s: losses of the answer: %s", self.id, ledger_text(writer.losses)
                    )
                self._services.access.count_losses(self._plugin.key, target.name, [*losses, *writer.losses])
                self.failure = None if pump.cancelled() else pump.exception() or pump.result()
                await self._settle(stream.partial, self.failure)
            if not pump.cancelled():
                pump.result()  # raises an internal error

    async def _pump(self, stream: AsyncMessageStream, writer: Any) -> BaseException | None:
        """Write the events of each upstream read in one write; return the failure that ended the answer."""
        failure, size = None, AnswerSize()
        try:
            async for events in stream.batches():
                if events and isinstance(events[-1], ErrorEvent):
                    self._without_addresses(events[-1].error)
                data = await self._services.work(size.add(events), writer.feed, events)
                if events and isinstance(events[-1], MessageComplete):
                    self._last = data
                elif data:
                    await write_body(self._send, data, more=True)
            self._weigh(stream.partial)
            await self._keep(stream.partial)
        except InterlinguaError as error:  # the writer has reported it
            failure = error
        await write_body(self._send, self._last + writer.end())
        return failure

    async def _end_when_gone(self, limit: asyncio.Timeout) -> None:
        """End the wait for a whole answer when the caller leaves; later if the service charges for the answer."""
        await wait_until_gone(self._receive)
        self._has_left = True
        is_paid = self._admission is not None and self._admission.reservation is not None
        limit.reschedule(asyncio.get_running_loop().time() + (FINISH if is_paid else 0))

    # -- other requests ------------------------------------------------------------------------------------------

    async def _count(self, client: AsyncClient, target: UpstreamRequest) -> None:
        """Count a request's tokens by its model's service, or estimate them if the service cannot count."""
        try:
            tokens = await client.count_tokens(target.messages, model=target.name, tools=target.tools, **target.given)
        except CapabilityError:
            provider = self._services.registry.provider(target.origin.provider)
            tokens = provider.estimate_input_tokens(target.messages, target.tools, target.options) or 0
        await self._settle(None, None)
        response = self._plugin.to_wire_auxiliary(self._route.kind, tokens, self._context)
        await self._respond(response, self._facts(target, target.losses))

    async def _describe(self, name: str) -> None:
        """Answer with the facts of the model behind a name."""
        services = self._services
        choice = choose_models(services.config, services.registry, name, self._plugin.key)
        exists = choice.configured or any(model.info is not None or not model.listed for model in choice.models)
        if not exists or (self._key is not None and not choice.is_allowed(self._key.models)):
            raise ModelNotFoundError(f"the model {name!r} does not exist")
        first = choice.models[0]
        facts = ServedModel(name, services.registry.provider(first.provider).capabilities(first.name))
        await self._respond(self._plugin.to_wire_auxiliary("model", facts, self._context), {})

    # -- inside --------------------------------------------------------------------------------------------------

    def _weigh(self, answer: Message) -> None:
        """Have what follows an answer done in a thread if the request or the answer is large."""
        self._work = partial(self._services.work, self.held + AnswerSize().add(answer.content))

    async def _settle(self, message: Message | None, error: BaseException | None, *, unknown: bool = False) -> None:
        if self._admission is None:
            return
        admission, self._admission, self._is_settled = self._admission, None, True
        if error is not None and message is not None and not message.content:
            message = None
        if message is not None and self._asked is not None and needs_estimate(message):
            self._weigh(message)
            message = await self._work(self._asked.with_estimate, message, self._services)
        limited = message is not None and self._model.deployment is not None
        if message is not None and limited and (usage := message.metadata.usage) is not None:
            tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            self._services.health.count_tokens(self._model, tokens)
        unknown = unknown or (error is not None and may_be_paid(error))
        await self._services.access.settle(admission, message, error, unknown=unknown)
        if (record := self._services.recorder) is not None and message is not None and self._asked is not None:
            asked = (admission.tenant, self._asked.name, self._inbound, message)
            if not await record.append(*asked):
                self._services.access.count_unrecorded(self._plugin.key)

    async def _keep(self, message: Message, written: WireResponse | None = None) -> None:
        """Store the state that the caller's API cannot carry, before the answer ends and a new request can follow.

        An answer whose request may be repeated is kept, too, and one that the caller may continue.
        """
        kept = self._services.kept
        if kept is not None and self._wire is not None and self._admission is not None:
            if written is None or self._sent.options.stream:
                context = attrs.evolve(self._context, origin=message.metadata.origin)
                written = await self._work(self._plugin.to_wire_response, message, context)
            await kept.keep(self._admission.tenant, self._api.name, self.id, self._wire, written.body)
        cache, seconds = self._services.cache, self._choice.route.cache_seconds
        if cache is not None and self._admission is not None and self._repeated_as is not None:
            await cache.keep(self._admission.tenant, self._repeated_as, message, seconds)
        recall, own = self._services.recall, (self._plugin.key, self._api.name)
        if recall is not None and self._admission is not None and (message.metadata.origin or own)[:2] != own:
            await recall.keep(self._admission.tenant, self._sent, message)

    def _facts(self, target: UpstreamRequest, losses: Sequence[Loss]) -> dict[str, str]:
        """Return the headers with the request id, the model that answered and the losses."""
        return {
            "x-interlingua-request-id": self.id,
            "x-interlingua-model": target.name,
            "x-interlingua-losses": ledger_text(losses),
        }

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        encoded = [(name.encode("latin-1"), header_value(value)) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def _respond(self, response: WireResponse, facts: Mapping[str, str]) -> None:
        length = {"content-length": str(len(response.body))}
        await self._begin(response.status, {**response.headers, **length, **facts})
        await write_body(self._send, response.body)

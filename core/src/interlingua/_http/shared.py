"""What both clients share: settings, models, connections, and the attempts of one exchange."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import attrs

from interlingua._catalogue import ModelInfo
from interlingua._http.limits import Deadline, Retry, Timeout
from interlingua._http.transport import Response, Transport, no_key, outgoing
from interlingua._ids import ModelId
from interlingua._json import EMPTY
from interlingua._plugins.connection import Connection, ConnectionSettings, Credentials, HttpRequest
from interlingua._plugins.losses import Loss
from interlingua._plugins.provider import Provider
from interlingua._plugins.registry import Registry
from interlingua._plugins.wire import RequestContext, WireRequest, WireResponse
from interlingua._pricing import SELF_HOSTED
from interlingua._request.conversation import ConversationCache
from interlingua._request.media import SIZE_LIMIT, Fetched
from interlingua._request.prefix import PrefixWatch
from interlingua._request.prepare import RequestDraft, read_options
from interlingua._response.finalize import FAILED, AnswerFinalizer, add_response_headers
from interlingua._response.stream import StreamReader
from interlingua.errors import AuthenticationError, CallerError, InterlinguaError, ProviderError
from interlingua.output import OutputFormat, OutputPlan
from interlingua.types.messages import Message, Origin, RoutingDecision, RoutingMode
from interlingua.types.options import Effort, ToolChoiceOption
from interlingua.types.tools import ToolDefinition

if TYPE_CHECKING:
    from interlingua._http.credentials import SecretStore

_log = logging.getLogger("interlingua")
_SETTINGS = frozenset({"api", "api_key", "base_url", "options"})
_ARGUMENTS = ("model", "tools", "routing", "user_id", "team_id")  # what is no option of `read_options`

MessagesInput: TypeAlias = str | Message | Sequence[Message]
"""A conversation, one message, or the text of one user message."""


class RequestKwargs(TypedDict, total=False):
    """What a call may say about its request: these, and the fields of `RequestKwargs`.

    Attributes:
        model: instead of the client's default.
        tools: what the model may call.
        routing: why this model, where a router chose it.
        user_id: stable pseudonymous id of the end user; sent where the service has a field for it.
        team_id: likewise of the user's team; kept on the answer, never sent.
    """

    model: str | None
    tools: Sequence[ToolDefinition]
    routing: RoutingDecision | None
    user_id: str | None
    team_id: str | None
    api: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    seed: int | None
    stop: str | Sequence[str] | None
    tool_choice: ToolChoiceOption | None
    parallel_tool_calls: bool | None
    response_schema: Mapping[str, Any] | None
    response_name: str | None
    effort: Effort | None
    thinking: bool | None
    thinking_budget: int | None
    thinking_as_text: bool | None
    downscale_images: bool | None
    provider_options: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    capabilities: Mapping[str, Any] | None


@attrs.frozen
class ResolvedModel:
    """A model that was named: its provider, its id, and the record of a choice that no router made."""

    provider: Provider
    id: ModelId
    routing: RoutingDecision


class ClientState:
    """Settings and findings of one client; safe for use from several threads."""

    def __init__(
        self,
        model: str | None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        registry: Registry | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: Timeout | float | None = None,
        retry: Retry | int | None = None,
        headers: Mapping[str, str] | None = None,
        workspace: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.registry = registry if registry is not None else Registry()
        self.timeout: Timeout | None = Timeout.of(timeout)
        self.retry = Retry.of(retry)
        self.headers = dict(headers or {})
        self.workspace = workspace
        self.prefix_watch = PrefixWatch(self.registry)
        self.conversations = ConversationCache()  # both are bounded, and `clear` empties them
        self._environ = os.environ if environ is None else environ
        self._settings = {self.registry.entry(key).key: _check_settings(key, value)
                          for key, value in (settings or {}).items()}  # fmt: skip
        self.resolved: dict[str | None, ResolvedModel] = {}  # the models that were named so far
        self.answered: set[tuple[object, ...]] = set()  # kinds of requests that were answered (`Exchange.kind`)
        self._connections: dict[tuple[str, str | None], Connection] = {}
        self._secrets: dict[str, SecretStore] = {}
        self._infos: dict[tuple[str, str], ModelInfo | None] = {}
        own = {name: value for name, value in (("api_key", api_key), ("base_url", base_url)) if value is not None}
        if model is not None:
            key = self.resolve_model(None).provider.key
            self._settings[key] = {**self._settings.get(key, {}), **own}
        elif own:
            raise CallerError("api_key and base_url belong to the provider of model=; without one, use settings=")

    def clear(self) -> None:
        """Forget the conversations that were sent."""
        self.conversations.clear()
        self.prefix_watch.clear()

    def resolve_model(self, model: str | None) -> ResolvedModel:
        """Return the provider and id of a model the caller named, or of the default one."""
        found = self.resolved.get(model)
        if found is None:
            name = model or self.model
            if name is None:
                raise CallerError("no model: give model= to the call, or a default to the client")
            if not isinstance(name, (str, ModelId)):
                raise CallerError(f"a model is named by a text, `<provider>:<model>`, not {type(name).__name__}")
            id_ = self.registry.resolve(name)
            routing = RoutingDecision(
                mode=RoutingMode.DEFAULT if model is None else RoutingMode.MANUAL,
                chosen_model=str(id_),
                reason="the client's default model" if model is None else "the caller named the model",
            )
            found = self.resolved[model] = ResolvedModel(self.registry.provider(id_.provider), id_, routing)
        return found

    def resolve_provider(self, key: str | None) -> Provider:
        """Return the provider of this key, or of the default model."""
        return self.registry.provider(key) if key is not None else self.resolve_model(None).provider

    def connection(self, provider: Provider, api: str | None) -> Connection:
        """Return how to reach a provider by one of its wire formats; asked once, so later changes are not seen."""
        found = self._connections.get((provider.key, api))
        if found is None:
            given = self._settings.get(provider.key, {})
            settings = ConnectionSettings(
                api_key=given.get("api_key"),
                base_url=given.get("base_url"),
                environ=self._environ,
                api=api,
                options=given.get("options") or {},
            )
            found = self._connections[provider.key, api] = provider.connection(settings)
        return found

    def secret_store(self, key: str, source: Credentials) -> SecretStore:
        """Return what keeps a provider's secret."""
        from interlingua._http.credentials import SecretStore  # noqa: PLC0415  loads asyncio; most have a fixed key

        return self._secrets.setdefault(key, SecretStore(source))

    def model_info(self, provider: Provider, name: str) -> ModelInfo | None:
        """Return the catalogue's entry of a model; one that it lacks is warned of once and never refused.

        A provider without a catalogue, such as a local server, is expected to have models that nobody listed.
        """
        key = (provider.key, name)
        if key not in self._infos:
            found = provider.model(name)
            if found is None and re.fullmatch(self.connection(provider, None).self_hosted, name):
                found = ModelInfo(id=name, pricing_version=SELF_HOSTED)
            elif found is None and provider.models():
                _log.warning("the catalogue does not know %s:%s: default capabilities, no price", *key)
            self._infos[key] = found  # when it is final: other threads look here
        return self._infos[key]

    def new_exchange(
        self, messages: MessagesInput, options: Mapping[str, Any], *, stream: bool = False, output: Any = None
    ) -> Exchange:
        """Read a caller's arguments into an exchange; its image URLs are still to be fetched and its bytes written.

        The plan of a typed answer adds its words, tools, options and rows of the ledger.
        """
        given = dict(options)
        resolved = self.resolve_model(given.pop("model", None))
        plan, losses = None, tuple[Loss, ...]()
        if output is not None:
            plan = self.plan_output(output, options, stream=stream)
            messages = plan.messages(messages)
            given |= {**plan.options, "tools": plan.tools}
            losses = plan.losses
        tools, routing, team_id = given.pop("tools", ()), given.pop("routing", None), given.pop("team_id", None)
        if routing is not None and type(routing) is not RoutingDecision:
            raise CallerError(f"routing is a RoutingDecision, not {type(routing).__name__}")
        fixed = {"model": resolved.id.name, "stream": stream, "user_id": given.pop("user_id", None)}
        read = read_options(given, self._settings.get(resolved.provider.key, EMPTY), self.headers, **fixed)
        routing = routing or resolved.routing
        request = RequestDraft(resolved.provider, messages, tools, read, routing, team_id, losses, self.conversations)
        return Exchange(self, request, plan)

    def plan_output(self, output: Any, options: Mapping[str, Any], *, stream: bool = False) -> OutputPlan[Any]:
        """Decide how a typed answer is asked for, unless that is given."""
        if isinstance(output, OutputPlan):
            return output
        format_: OutputFormat[Any] = output if isinstance(output, OutputFormat) else self.registry.output_format(output)
        resolved = self.resolve_model(options.get("model"))
        given = {name: value for name, value in options.items() if name not in _ARGUMENTS}
        settings = self._settings.get(resolved.provider.key, EMPTY)
        read = read_options(given, settings, self.headers, model=resolved.id.name, stream=stream)
        tools = options.get("tools", ())
        return format_.plan(tools, read, resolved.provider.capabilities(read.model, read))


class _Attempts:
    """The attempts to have one request answered, with the connection's secret; a refused one is replaced once."""

    _shared: ClientState
    _provider: Provider
    _api: str | None = None
    _secret: Any = None
    _refused: Any = None
    _refusal: ProviderError | None = None

    @cached_property
    def connection(self) -> Connection:
        """How to reach the service."""
        return self._shared.connection(self._provider, self._api)

    async def _sign(self, request: WireRequest, headers: Mapping[str, str], *, blocking: bool) -> HttpRequest:
        connection = self.connection
        if not connection.has_key:
            raise no_key(connection, self._provider.key)
        if connection.credentials is not None:
            store = self._shared.secret_store(self._provider.key, connection.credentials)
            self._secret = await store.read(self._refused, self._refusal, blocking=blocking)
        return outgoing(connection, request, headers, self._secret)

    def _may_replace_secret(self, error: InterlinguaError) -> bool:
        """Return True for the first refusal of a secret: the next attempt has another."""
        if self._secret is None or self._refusal is not None or not isinstance(error, AuthenticationError):
            return False
        self._refusal, self._refused = error, self._secret
        return True


class Exchange(_Attempts):
    """One request and the attempts to have it answered."""

    deadline: Deadline  # counted from the first attempt

    def __init__(self, shared: ClientState, request: RequestDraft, plan: OutputPlan[Any] | None) -> None:
        self.request = request
        self.plan: Any = plan  # how its typed answer is asked for and read, if it has one
        self._shared, self._provider, self._api = shared, request.provider, request.options.api
        self._model_info = partial(shared.model_info, request.provider, request.options.model)
        # what decides which of the provider's modules take part
        self.kind = (request.provider.key, request.options.api, request.options.stream)
        self.response = AnswerFinalizer(request, shared.registry, self._model_info)
        self.response.typed = plan is not None and not request.options.stream
        self.headers: Mapping[str, str] = EMPTY  # of the last answer to an attempt, names in lower case

    @property
    def instrument(self) -> AbstractContextManager[None]:
        """What plugins put around it, made when it is first entered, and current in a `with` statement."""
        return self._enter_instruments() if self._shared.registry.plugins else nullcontext()

    @contextmanager
    def _enter_instruments(self) -> Iterator[None]:
        request, response = self.request, self.response
        if not response.begun:
            response.begun = time.monotonic()
            facts = {
                "provider": request.provider.key,
                "model": request.options.model,
                "base_url": self.connection.base_url,
                "session_id": request.messages[-1].session_id,
                "messages": request.messages,
                "tools": request.tools,
                "options": request.options,
                "typed": self.plan is not None,
            }
            response.activity = self._shared.registry.instrument("chat", facts)
        with response.activity or nullcontext():
            try:
                yield
            except BaseException as error:
                if not (isinstance(error, InterlinguaError) and response.attempts):  # else `retry_delay` decides
                    response.report(None, error)
                raise

    def write(self, fetched: Mapping[str, Fetched] | None) -> Exchange:
        """Write the request, given what its image URLs hold; None where it is only to be looked at."""
        shared = self._shared
        self.request.write(fetched, workspace=shared.workspace, watch=shared.prefix_watch, model_info=self._model_info)
        return self

    async def send(self, transport: Transport) -> Response:
        """Begin the next attempt, signed now, and return its answer when the headers are there."""
        response, request = self.response, self.request
        response.attempts += 1
        if response.attempts == 1:
            self.deadline = Deadline(self._shared.timeout)
            response.request_id_headers = self.connection.request_id_headers
        response.started = time.monotonic()
        signed = await self._sign(request.wire, request.options.headers, blocking=transport.blocking)
        if response.activity is not None or self._shared.registry.observes:
            response.url = signed.url.partition("?")[0]  # a query may hold a key
        if self._shared.registry.observes:
            event = {"session_id": request.context.session_id, "provider": request.provider.key, "url": response.url}
            sent = {"model": request.options.model, "attempt": response.attempts, "bytes": len(signed.body)}
            self._shared.registry.observe({"type": "request.sent", **event, **sent})
        return await transport.open(signed, self.deadline)

    def open_reader(self, answer: Response, limit: int) -> StreamReader:
        """Return what reads a streamed answer, of which an event may have `limit` bytes."""
        return StreamReader(self.response, self.connection.framing, answer.status, answer.headers, limit)

    def retry_delay(self, error: InterlinguaError) -> float:
        """Return the seconds to wait before the next attempt; where there is to be none, raise the error again."""
        error.provider = error.provider or self.request.provider.key
        error.model = error.model or self.request.options.model
        if self._may_replace_secret(error):
            return 0.0
        delay = self._shared.retry.delay(error, self.response.attempts - (self._refusal is not None))
        if delay is None or (self.deadline.deadline is not None and delay >= (self.deadline.left() or 0)):
            self.response.report(error.partial, error)
            raise error
        _log.info("attempt %d failed (%s); again in %.2f s", self.response.attempts, type(error).__name__, delay)
        return delay


class AuxiliaryExchange(_Attempts):
    """One exchange that is no conversation: a model list, a token count, a reported cost."""

    def __init__(self, shared: ClientState, provider: str | None, kind: str, arguments: Mapping[str, Any]) -> None:
        self._shared, self._provider, self._kind = shared, shared.resolve_provider(provider), kind
        self._request = self._provider.auxiliary_request(kind, arguments)
        self.deadline = Deadline(shared.timeout)

    async def send(self, transport: Transport) -> Response:
        """Send the request, signed, and return its answer when the headers are there."""
        signed = await self._sign(self._request, self._shared.headers, blocking=transport.blocking)
        return await transport.open(signed, self.deadline)

    def check_refusal(self, error: InterlinguaError) -> None:
        """Raise the error again, unless the next attempt has another secret."""
        if not self._may_replace_secret(error):
            raise error

    def read(self, response: WireResponse) -> Any:
        """Return what was asked for, or raise what the answer says."""
        if response.status >= FAILED:
            context = RequestContext(origin=Origin(self._provider.key, self._request.api, ""))
            error = self._provider.from_wire_error(response, context)
            raise add_response_headers(error, response.headers, self.connection.request_id_headers)
        return self._provider.from_wire_auxiliary(self._kind, response)


def image_request(url: str) -> HttpRequest:
    """Return the HTTP request that fetches an image."""
    return HttpRequest("GET", url, {}, b"", datetime.now(UTC))


def read_image(url: str, response: WireResponse) -> Fetched:
    """Return the bytes of an image and the media type that its server claims; raise CallerError without an image."""
    if response.status >= FAILED:
        raise CallerError(f"the image {url} cannot be fetched: HTTP {response.status}")
    if len(response.body) > SIZE_LIMIT:
        raise CallerError(f"the image {url} is larger than {SIZE_LIMIT} bytes")
    return Fetched(response.body, response.headers.get("content-type", "").partition(";")[0])


def _check_settings(key: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = settings.keys() - _SETTINGS
    if unknown:
        raise CallerError(f"unknown setting(s) for {key!r}: {sorted(unknown)}; there are {sorted(_SETTINGS)}")
    return settings

"""The state that all exchanges of a client share: settings, resolved models, connections, secrets."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_plus

from interlingua._catalogue import ModelInfo
from interlingua._http.body import ReplyBody
from interlingua._http.retry import Retry
from interlingua._http.transports import IO
from interlingua._ids import ModelId
from interlingua._json import EMPTY
from interlingua._plugins.connection import Connection, ConnectionSettings, Credentials, HttpRequest, KeyExchange
from interlingua._plugins.errors import error_for_status, hide_secrets
from interlingua._plugins.provider import Provider
from interlingua._plugins.registry import Registry
from interlingua._plugins.wire import EVENT_LIMIT, WireResponse
from interlingua._pricing import SELF_HOSTED
from interlingua._request.conversation import ConversationCache
from interlingua._request.prefix import PrefixWatch
from interlingua._request.prepare import read_options
from interlingua._response.finalize import FAILED
from interlingua.errors import AuthenticationError, CallerError, InterlinguaError, PluginError, ProviderError
from interlingua.output import OutputFormat, OutputPlan
from interlingua.transport import TimeLimits, Timeout
from interlingua.types.messages import Message, RoutingDecision, RoutingMode
from interlingua.types.options import RequestOptions

if TYPE_CHECKING:
    from interlingua.fallback import Fallback, ModelChain, ModelHealth
    from interlingua.limits import ClientLimits, ModelLimiter

_log = logging.getLogger("interlingua")
_MARGIN = timedelta(minutes=1)  # a secret that expires within this time is replaced
_SECRET = re.compile(r"(?:^|[_-])(?:(?:api_?)?key|token|secret|password|credentials?)(?:$|[_-])", re.I)
_SETTINGS = frozenset({"api", "api_key", "base_url", "options"})
_ARGUMENTS = ("model", "tools", "routing", "user_id", "team_id")  # what is not an option of `read_options`

FetchPolicy = Literal["public", "any", "none"]
"""Which image URLs a client fetches for services that take none: those of public addresses, all, or none."""

MessagesInput: TypeAlias = str | Message | Sequence[Message]
"""A conversation, one message, or a string, which becomes a user message."""


class ResolvedModel(NamedTuple):
    """A model by name: its provider, its id, and the record of a choice that no router made."""

    provider: Provider
    id: ModelId
    routing: RoutingDecision


class ClientState:
    """Settings and findings of one client; safe for use from several threads."""

    def __init__(
        self,
        model: str | Sequence[str] | None,
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
        max_response_bytes: int = EVENT_LIMIT,
        defaults: Mapping[str, Any] = EMPTY,
        fetch: FetchPolicy = "public",
        fallback: Fallback | None = None,
        limits: Sequence[Any] = (),
        uploads: Any = None,
    ) -> None:
        self.uploads = uploads  # the client's, or None
        self.models = _model_names(model)
        if level := (os.environ if environ is None else environ).get("INTERLINGUA_LOG"):
            show_log(level)
        self.registry = registry if registry is not None else Registry()
        self.timeout: Timeout | None = Timeout.of(timeout)
        self.retry = Retry.of(retry)
        self.headers = dict(headers or {})
        self.workspace = workspace
        self.max_response_bytes = max_response_bytes
        self.defaults = {name: value for name, value in defaults.items() if value}  # of options
        if fetch not in ("public", "any", "none"):
            raise CallerError(f"fetch must be 'public', 'any' or 'none', not {fetch!r}")
        self.fetch = fetch
        self.prefix_watch = PrefixWatch(self.registry)
        self.conversations = ConversationCache()  # both are bounded, and `forget` of a client empties them
        self._environ = os.environ if environ is None else environ
        self.settings: dict[str, Mapping[str, Any]] = {}
        for key, value in (settings or {}).items():
            self.settings[self.registry.entry(key).key] = value
            if unknown := value.keys() - _SETTINGS:
                raise CallerError(f"unknown setting(s) for {key!r}: {sorted(unknown)}; there are {sorted(_SETTINGS)}")
        self.resolved: dict[str | None, ResolvedModel] = {}  # by name, None for the default
        self.loaded: set[tuple[object, ...]] = set()  # what has been imported: functions and kinds of requests
        self._connections: dict[tuple[str, str | None], Connection] = {}
        self._secrets: dict[str, SecretStore] = {}
        self._infos: dict[tuple[str, str], ModelInfo | None] = {}
        self._fallback = fallback
        self._limiters: dict[str, ModelLimiter] = {}
        self.limits: ClientLimits | None = None
        if any(value is not None for value in limits):
            from interlingua.limits import ClientLimits  # noqa: PLC0415  few clients have limits

            self.limits = ClientLimits(*limits)
        if fallback is not None:
            _ = self.fallback  # checks it
        own = {name: value for name, value in (("api_key", api_key), ("base_url", base_url)) if value is not None}
        if self.models:
            keys = {self.resolve_model(name).provider.key for name in self.models[1:]}
            keys.add(key := self.resolve_model(None).provider.key)
            if own and len(keys) > 1:
                raise CallerError("api_key and base_url belong to one provider; with models of several, use settings=")
            self.settings[key] = {**self.settings.get(key, {}), **own}
        elif own:
            raise CallerError("api_key and base_url belong to the provider of model=; without one, use settings=")

    def resolve_model(self, model: str | None) -> ResolvedModel:
        """Return the provider and id of a model the caller named, or of the default one."""
        found = self.resolved.get(model)
        if found is None:
            name = model or (self.models[0] if self.models else None)
            if name is None:
                raise CallerError("no model: pass model= to the call or set a default on the client")
            id_ = self.registry.resolve(name)
            routing = RoutingDecision(
                mode=RoutingMode.DEFAULT if model is None else RoutingMode.MANUAL,
                chosen_model=str(id_),
                reason="the client's default model" if model is None else "the caller named the model",
            )
            found = self.resolved[model] = ResolvedModel(self.registry.provider(id_.provider), id_, routing)
        return found

    def chain(self, model: str | Sequence[str] | None, arguments: Any) -> ModelChain | None:
        """Return the models of a call that names several, or whose client has several; None for one model."""
        names = self.models if model is None else _model_names(model)
        if len(names) < 2:
            return None
        from interlingua.fallback import ModelChain  # noqa: PLC0415  most calls have one model

        found = [str(self.resolve_model(name).id) for name in names]
        return ModelChain(tuple(dict.fromkeys(found)), self.fallback, self.health, arguments)

    def limiter(self, model: str) -> ModelLimiter | None:
        """Return what holds the client's limits for a model; None without limits."""
        if self.limits is None:
            return None
        if model not in self._limiters:
            from interlingua.limits import ModelLimiter  # noqa: PLC0415

            self._limiters.setdefault(model, ModelLimiter(self.limits))
        return self._limiters[model]

    @cached_property
    def fallback(self) -> Fallback:
        """When a call tries its next model."""
        from interlingua.fallback import Fallback  # noqa: PLC0415

        given: Any = self._fallback
        if given is not None and not isinstance(given, Fallback):
            text = f"fallback must be a Fallback, not {type(given).__name__}; the models themselves go in model=[…]"
            raise CallerError(text)
        return given or Fallback()

    @cached_property
    def health(self) -> ModelHealth:
        """Which models rest after failures."""
        from interlingua.fallback import ModelHealth  # noqa: PLC0415

        return ModelHealth(lambda: self.fallback)

    def resolve_provider(self, key: str | None) -> Provider:
        """Return the provider of this key, or of the default model."""
        return self.registry.provider(key) if key is not None else self.resolve_model(None).provider

    def connection(self, provider: Provider, api: str | None) -> Connection:
        """Return how to reach a provider by one of its APIs; read once, so later changes are not seen."""
        found = self._connections.get((provider.key, api))
        if found is None:
            given = self.settings.get(provider.key, {})
            settings = ConnectionSettings(
                api_key=given.get("api_key"),
                base_url=given.get("base_url"),
                environ=self._environ,
                api=api,
                options=given.get("options") or {},
            )
            found = provider.connection(settings)
            _check_options(provider.key, settings, found)
            self._connections[provider.key, api] = found
        return found

    def request_settings(self, provider: Provider, api: str | None) -> Mapping[str, Any]:
        """Return the settings that a request is written with: `options` has the connection's values and no secret."""
        given = self.settings.get(provider.key, EMPTY)
        try:
            own = self.connection(provider, api or given.get("api")).options
        except InterlinguaError:  # a request can be written without a connection; sending it raises this
            own = EMPTY
        options = {**(given.get("options") or EMPTY), **own}
        return {**given, "options": {name: value for name, value in options.items() if not _SECRET.search(name)}}

    def secret_store(self, key: str, source: Credentials | KeyExchange) -> SecretStore:
        """Return the store of a provider's secret."""
        return self._secrets.setdefault(key, SecretStore(key, source))

    def model_info(self, provider: Provider, name: str) -> ModelInfo | None:
        """Return the catalogue's entry of a model, or None; a missing one is logged once and never refused.

        A provider without a catalogue, such as a local server, has models that no catalogue lists.
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

    def models_for(self, first: Provider, block: Any) -> list[str]:
        """Return up to three installed models that take a media block: of this provider, then of those with a key."""
        from interlingua._request.media import MEDIA, media_refusal  # noqa: PLC0415  only for an error

        if type(block) not in MEDIA:
            return []
        others = [one for one in self.registry.providers() if one.key != first.key]
        found = []
        for provider in (first, *sorted(others, key=self._lacks_key)):
            for model in provider.models():
                if media_refusal(block, provider.target(RequestOptions(model=model.id))) is None:
                    found.append(f"{provider.key}:{model.id}")
                    break
        return found[:3]

    def _lacks_key(self, provider: Provider) -> bool:
        try:
            return not self.connection(provider, None).has_key
        except InterlinguaError:
            return True

    def plan_output(self, output: Any, options: Mapping[str, Any], *, stream: bool = False) -> OutputPlan[Any]:
        """Return how a typed answer is asked for; a plan is returned unchanged."""
        if isinstance(output, OutputPlan):
            return output
        format_: OutputFormat[Any] = output if isinstance(output, OutputFormat) else self.registry.output_format(output)
        model = options.get("model")
        resolved = self.resolve_model(model if model is None else _model_names(model)[0])
        given = {name: value for name, value in options.items() if name not in _ARGUMENTS}
        settings = self.request_settings(resolved.provider, given.get("api"))
        read = read_options(given, settings, self.headers, model=resolved.id.name, stream=stream)
        return format_.plan(options.get("tools", ()), read, resolved.provider.capabilities(read.model, read))


def _model_names(model: Any) -> tuple[str, ...]:
    """Read a `model=` argument: one name, several in their order, or None."""
    if not isinstance(model, (list, tuple)) or isinstance(model, ModelId):
        names: tuple[Any, ...] = () if model is None else (model,)
        return names
    if not model or None in model:
        raise CallerError(f"model must be a name, or a list of names that are asked in their order; not {model!r}")
    return tuple(model)


_shown = logging.StreamHandler()
_shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def show_log(level: str) -> None:
    """Write the log of the library and its packages to stderr, from a level on; for `INTERLINGUA_LOG`.

    Raises:
        CallerError: there is no such level.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise CallerError(f"INTERLINGUA_LOG must be debug, info, warning or error, not {level!r}")
    _log.setLevel(number)
    _log.addHandler(_shown)  # once: a logger ignores a handler that it has


class SecretStore:
    """Keeps the secret of one provider for all exchanges of a client; safe for several threads and event loops."""

    def __init__(self, provider: str, source: Credentials | KeyExchange) -> None:
        self._lock_name = f"secret of {provider}"
        self._source = source
        self._secret: Any = None
        self._refusal: ProviderError | None = None

    def refuse(self, secret: Any, refusal: ProviderError) -> None:
        """Note that the service refused a secret: the next `read` obtains another, and the source sees the error."""
        if secret is self._secret:
            self._secret, self._refusal = None, refusal

    async def read(self, io: IO, limits: TimeLimits) -> Any:
        """Return the secret; a missing or expiring one is obtained by one caller, and the others wait.

        Raises:
            APITimeoutError: the time of the call ended meanwhile.
        """
        secret = self._secret
        if _is_stale(secret):
            async with io.lock(self._lock_name):
                secret = self._secret
                if _is_stale(secret):
                    limits.left()
                    secret = self._secret = await self._obtain(io, limits)
                    self._refusal = None
        return secret

    async def _obtain(self, io: IO, limits: TimeLimits) -> Any:
        try:
            if isinstance(self._source, KeyExchange):
                made = self._source.read(await self._exchange(self._source.request(datetime.now(UTC)), io, limits))
            else:
                made = await io.call(self._source, self._refusal)
        except InterlinguaError:
            raise
        except Exception as error:
            exchanged = isinstance(self._source, KeyExchange)
            raise secret_failure("exchanging the key" if exchanged else "obtaining the credentials", error) from None
        if made is None:
            raise AuthenticationError("the credentials returned no secret", retryable=False)
        return made

    async def _exchange(self, request: HttpRequest, io: IO, limits: TimeLimits) -> WireResponse:
        response = await ReplyBody(await io.open(request, limits), limits, EVENT_LIMIT).read()
        if response.status < FAILED:
            return response
        error: ProviderError = error_for_status(response)
        sent = unquote_plus(request.body.decode("utf-8", "replace"))  # a service may quote the key that it refuses
        hide_secrets(error, {"key": re.sub(r"[\"'&=,:{}]", " ", sent)})
        kind = type(error) if response.status == 429 or response.status >= 500 else AuthenticationError
        raise kind(
            f"the key could not be exchanged: {error.message}", status=response.status, retry_after=error.retry_after
        )


def _check_options(key: str, settings: ConnectionSettings, made: Connection) -> None:
    """Refuse a secret in `Connection.options`, which may be written into a request."""
    secrets = {settings.api_key, *(settings.environ.get(name) for name in made.env_vars if _SECRET.search(name))}
    shown = repr(dict(made.options))
    if any(map(_SECRET.search, made.options)) or any(secret and repr(secret)[1:-1] in shown for secret in secrets):
        raise PluginError(f"provider {key!r} has a secret in Connection.options; secrets belong to `auth` or `sign`")


def _is_stale(secret: Any) -> bool:
    expires = getattr(secret, "expires_at", None)
    return secret is None or (expires is not None and expires - datetime.now(UTC) < _MARGIN)


def secret_failure(what: str, error: Exception) -> AuthenticationError:
    """Return the error for code that holds a secret, without the cause's text, which may contain the secret."""
    return AuthenticationError(f"{what} failed with {type(error).__name__}", retryable=False)

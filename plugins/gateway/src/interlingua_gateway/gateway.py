"""The gateway's parts put together, and its ASGI application."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route as Path

from interlingua import AsyncClient, Retry, Timeout
from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import ConnectionSettings, Registry
from interlingua_gateway.access import Access
from interlingua_gateway.config import GatewayConfig, Route
from interlingua_gateway.exchange import ServedApi
from interlingua_gateway.recall import Recall
from interlingua_gateway.record import Record
from interlingua_gateway.seal import KEY_BYTES, Sealer, read_keys
from interlingua_gateway.store import GatewayStore
from interlingua_serving import ServeContext, to_wire_auxiliary, to_wire_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Gateway:
    """What all requests share.

    Args:
        config: its settings.
        registry: the installed providers; by default all that are found.
        settings: connection settings per provider key, as `AsyncClient` takes them.
        environ: environment variables, of the providers' keys among others.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        registry: Registry | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config
        self.registry = registry or Registry()
        self.log = logging.getLogger("interlingua.gateway")
        self._settings = settings or {}
        self._environ = os.environ if environ is None else environ
        self._clients: dict[tuple[Any, ...], AsyncClient] = {}
        self.store = open_store(config, self._environ)
        if self.store is None and config.auth == "keys":
            raise CallerError("auth = 'keys' needs a store: there is no HOME to keep one in, so name it")
        self.access = Access(self.store if config.auth == "keys" else None)
        given = read_keys(self._environ.get(config.seal_keys_env, ""))
        kept = [self.store.seal_key() if self.store else os.urandom(KEY_BYTES)]
        self._sealer = Sealer(given or kept)
        self.recall = Recall(self.store, self._sealer) if self.store else None
        self.record = open_record(config, self.store)

    def client(self, route: Route) -> AsyncClient:
        """Return the client that keeps a route's limits."""
        limits = (route.retries, route.first_byte, route.between_chunks, route.total)
        if limits not in self._clients:
            self._clients[limits] = AsyncClient(
                registry=self.registry,
                settings=self._settings,
                environ=self._environ,
                retry=Retry(max_attempts=route.retries + 1),
                timeout=Timeout(first_byte=route.first_byte, between_chunks=route.between_chunks, total=route.total),
            )
        return self._clients[limits]

    def missing_key(self, provider: str) -> str:
        """Return the environment variables that a provider's key is looked for in; "" where it is there or not needed.

        Raises:
            CallerError: there is no such provider.
            PluginError: its plugin is broken.
        """
        given = {name: value for name, value in self._settings.get(provider, {}).items() if value is not None}
        connection = self.registry.provider(provider).connection(ConnectionSettings(environ=self._environ, **given))
        if connection.has_key:
            return ""
        return " or ".join(
            [name for name in connection.env_vars if "KEY" in name or "TOKEN" in name] or connection.env_vars
        )

    def warnings(self) -> Iterator[str]:
        """Yield what will make models of the routes fail: providers that are not installed, or without a key."""
        models = [model for route in self.config.routes for model in route.to]
        for provider in dict.fromkeys(model.partition(":")[0] for model in models if ":" in model):
            try:
                if names := self.missing_key(provider):
                    yield f"no key for {provider}: its models will not answer until {names} is set"
            except InterlinguaError as error:
                yield str(error)

    def context(self, context: ServeContext, tenant: str) -> ServeContext:
        """Return the context of a tenant's request: it seals and opens for that tenant alone."""
        return attrs.evolve(
            context,
            seal=partial(self._sealer.seal, tenant=tenant),
            unseal=partial(self._sealer.unseal, tenant=tenant),
        )

    def model_names(self) -> list[str]:
        """Return the names that callers may ask for: of the routes, else of the catalogues of providers with a key."""
        names = [route.match for route in self.config.routes if not set(route.match) & set("*?[")]
        if names:
            return names
        usable = [provider for provider in self.registry.providers() if self._has_key(provider.key)]
        return [f"{provider.key}:{model.id}" for provider in usable for model in provider.models()]

    def _has_key(self, provider: str) -> bool:
        try:
            return not self.missing_key(provider)
        except InterlinguaError:  # it needs more than a key, such as an address
            return False

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()
        if self.record is not None:
            self.record.close()
        if self.store is not None:
            self.store.close()


def open_store(config: GatewayConfig, environ: Mapping[str, str]) -> GatewayStore | None:
    """Open the store that the configuration names, else the one in the user's data folder; None without a home.

    Raises:
        CallerError: it is of no known kind.
        OverloadedError: it does not answer.
    """
    folder = environ.get("XDG_DATA_HOME") or (environ.get("HOME") and f"{environ['HOME']}/.local/share")
    if not config.store and not folder:
        return None
    return GatewayStore(config.store or f"sqlite:///{folder}/interlingua/gateway.db")


def open_record(config: GatewayConfig, store: GatewayStore | None) -> Record | None:
    """Open the record of conversations; None where the configuration asks for none.

    Raises:
        CallerError: interlingua-sessions is not installed, or the gateway has no store of its own.
        StoreError: it cannot be opened.
    """
    if not config.record:
        return None
    if store is None:
        raise CallerError("record needs a store: there is no HOME to keep one in, so name it")
    return Record(config.record, store)


def create_app(
    config: GatewayConfig | None = None,
    *,
    registry: Registry | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Starlette:
    """Make the ASGI application.

    Args:
        config: its settings; by default any `provider:name` is served, without keys.
        registry: the installed providers.
        settings: connection settings per provider key, as `AsyncClient` takes them.
        environ: environment variables.
    """
    gateway = Gateway(config or GatewayConfig(), registry=registry, settings=settings, environ=environ)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.close()

    app = Starlette(routes=_paths(gateway), lifespan=lifespan)
    app.state.gateway = gateway
    return app


# path, method, provider, api, kind of request
_APIS = (
    ("/v1/messages", "anthropic", "messages", "send"),
    ("/v1/messages/count_tokens", "anthropic", "messages", "count_tokens"),
    ("/v1/chat/completions", "openai", "chat", "send"),
    ("/v1/responses", "openai", "responses", "send"),
    ("/v1/responses/input_tokens", "openai", "responses", "count_tokens"),
    *(
        (f"/{version}/models/{{model:path}}:{verb}", "google", "generate", kind)
        for version in ("v1beta", "v1")  # the older SDKs, the newer ones
        for verb, kind in (
            ("generateContent", "send"),
            ("streamGenerateContent", "send"),
            ("countTokens", "count_tokens"),
        )
    ),
    ("/api/chat", "ollama", "chat-native", "send"),
)


def _paths(gateway: Gateway) -> list[Path]:
    found = gateway.registry.found()
    made = []
    for path, provider, api, kind in _APIS:
        if provider in found:
            endpoint: ASGIApp = ServedApi(gateway, provider, api, kind, path)
            made.append(Path(path, endpoint, methods=["POST"]))
    return [
        *made,
        Path("/v1/responses", _refuse_socket, methods=["GET"]),
        *[Path(path, partial(_models, gateway), methods=["GET"]) for path, (key, _) in _LISTS.items() if key in found],
        Path("/health", _health, methods=["GET"]),
        Path("/metrics", partial(_metrics, gateway), methods=["GET"]),
        Path("/", _hello, methods=["GET", "HEAD"]),
    ]


_LISTS = {
    "/v1/models": ("openai", "chat"),
    "/v1beta/models": ("google", "generate"),
    "/api/tags": ("ollama", "chat-native"),
}


async def _models(gateway: Gateway, request: Request) -> Response:
    """List the names in the form of the caller's API; `/v1/models` is in three, told apart by headers."""
    key, api = _LISTS[request.url.path]
    for header, own in (("anthropic-version", ("anthropic", "messages")), ("x-goog-api-key", _LISTS["/v1beta/models"])):
        if header in request.headers and own[0] in gateway.registry.found():
            key, api = own
    provider, context = gateway.registry.provider(key), ServeContext(provider=key, api=api)
    try:
        await gateway.access.authenticate(request.headers, request.query_params.get("key"))
        written = to_wire_auxiliary(provider, "models", gateway.model_names(), context)
    except InterlinguaError as error:
        written = to_wire_error(provider, error, context)
    return Response(written.body, written.status, dict(written.headers))


async def _refuse_socket(_request: Request) -> Response:
    """Send callers that try a WebSocket first to plain HTTP."""
    return PlainTextResponse("use HTTP POST\n", 426, {"upgrade": "HTTP/1.1"})


async def _metrics(gateway: Gateway, _request: Request) -> Response:
    return Response(generate_latest(gateway.access.metrics), headers={"content-type": CONTENT_TYPE_LATEST})


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _hello(_request: Request) -> Response:
    return PlainTextResponse("interlingua gateway\n")

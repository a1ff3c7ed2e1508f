"""The gateway's parts put together, and its ASGI application."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route as Path

from interlingua import AsyncClient, InterlinguaError, Message, Retry, Timeout
from interlingua.plugins import InboundRequest, Registry, ServeContext
from interlingua_gateway.config import GatewayConfig, Route
from interlingua_gateway.exchange import ServedApi
from interlingua_gateway.seal import Sealer, read_keys

if TYPE_CHECKING:
    from starlette.types import ASGIApp

NOBODY = "local"
"""The tenant of requests where no keys are asked for."""


@attrs.frozen
class Admission:
    """A request that was let in, until it is settled.

    Attributes:
        tenant: whose it is.
        request: what was asked.
    """

    tenant: str
    request: InboundRequest


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
        self._settings = settings
        self._environ = os.environ if environ is None else environ
        self._clients: dict[tuple[Any, ...], AsyncClient] = {}
        self._sealer = Sealer(read_keys(self._environ.get(config.seal_keys_env, "")) or [os.urandom(32)])

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

    async def authenticate(self, headers: Mapping[str, str], query_key: str | None) -> str:
        """Return whose request this is."""
        return NOBODY

    def context(self, context: ServeContext, tenant: str) -> ServeContext:
        """Return the context of a tenant's request: it seals and opens for that tenant alone."""
        return attrs.evolve(
            context,
            seal=partial(self._sealer.seal, tenant=tenant),
            unseal=partial(self._sealer.unseal, tenant=tenant),
        )

    async def admit(self, tenant: str, request: InboundRequest) -> Admission:
        """Let a request in."""
        return Admission(tenant, request)

    async def settle(self, admission: Admission, message: Message | None, error: BaseException | None) -> None:
        """Note what a request came to: its answer, or what was received of it, and what went wrong."""

    def count_refusal(self, provider: str, error: InterlinguaError) -> None:
        """Note a request that was not let in."""

    def model_names(self) -> list[str]:
        """Return the names that callers may ask for: of the routes, else of all providers' catalogues."""
        names = [route.match for route in self.config.routes if not set(route.match) & set("*?[")]
        if names:
            return names
        return [f"{provider.key}:{model.id}" for provider in self.registry.providers() for model in provider.models()]

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()


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
    ("/v1beta/models/{model:path}:generateContent", "google", "generate", "send"),
    ("/v1beta/models/{model:path}:streamGenerateContent", "google", "generate", "send"),
    ("/v1beta/models/{model:path}:countTokens", "google", "generate", "count_tokens"),
    ("/api/chat", "ollama", "chat-native", "send"),
)


def _paths(gateway: Gateway) -> list[Path]:
    found = gateway.registry.found()
    made = []
    for path, provider, api, kind in _APIS:
        if provider in found:
            endpoint: ASGIApp = ServedApi(gateway, provider, api, kind)
            made.append(Path(path, endpoint, methods=["POST"]))
    return [
        *made,
        Path("/v1/responses", _refuse_socket, methods=["GET"]),
        Path("/v1/models", partial(_models, gateway), methods=["GET"]),
        Path("/health", _health, methods=["GET"]),
        Path("/", _hello, methods=["GET", "HEAD"]),
    ]


async def _models(gateway: Gateway, request: Request) -> Response:
    """List the names in the form of the caller's API: Anthropic's callers say their API's version."""
    key, api = ("anthropic", "messages") if "anthropic-version" in request.headers else ("openai", "chat")
    provider = gateway.registry.provider(key)
    written = provider.to_wire_auxiliary("models", gateway.model_names(), ServeContext(provider=key, api=api))
    return Response(written.body, written.status, dict(written.headers))


async def _refuse_socket(_request: Request) -> Response:
    """Send callers that try a WebSocket first to plain HTTP."""
    return PlainTextResponse("use HTTP POST\n", 426, {"upgrade": "HTTP/1.1"})


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _hello(_request: Request) -> Response:
    return PlainTextResponse("interlingua gateway\n")

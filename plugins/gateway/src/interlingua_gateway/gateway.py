"""The gateway's ASGI application: the paths of the served APIs, health and metrics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from interlingua.errors import (
    AuthenticationError,
    CallerError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
)
from interlingua.plugins import Registry
from interlingua_gateway.admin import admin_routes
from interlingua_gateway.config import GatewayConfig
from interlingua_gateway.exchange import ApiEndpoint
from interlingua_gateway.local_requests import check_local_request
from interlingua_gateway.passing import PassedPath
from interlingua_gateway.services import Services
from interlingua_gateway.store import ask_store

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_LAST_WORK = 2.0
"""Seconds that recurring work may take to end when the gateway stops."""


def create_app(
    config: GatewayConfig | None = None,
    *,
    registry: Registry | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Starlette:
    """Make the ASGI application.

    Args:
        config: the settings; by default any `provider:name` is served, without keys.
        registry: the installed providers; by default all that are found.
        settings: connection settings by provider key, as for `AsyncClient`.
        environ: environment variables.

    Raises:
        CallerError: two plugins serve one path and `config.apis` names neither, or the configuration needs a store.
    """
    services = Services(config or GatewayConfig(), registry=registry, settings=settings, environ=environ)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        stop = asyncio.Event()
        keeping = asyncio.ensure_future(services.keep_up(stop))
        yield
        stop.set()
        with suppress(TimeoutError):  # a cancelled call continues in its thread, with a connection
            await asyncio.wait_for(keeping, _LAST_WORK)
        await services.close()

    app = Starlette(routes=_routes(services), lifespan=lifespan)
    app.router.redirect_slashes = False  # a redirect would name the caller's `Host`
    app.state.services = services
    return app


def _routes(services: Services) -> list[BaseRoute]:
    paths: dict[tuple[str, str], list[ApiEndpoint | PassedPath]] = {}
    for plugin, api in services.apis:
        for route in api.routes:
            endpoints = paths.setdefault((route.method, route.path), [])
            first = next((each for each in endpoints if each.api.told_apart_by == api.told_apart_by), None)
            if first is None:
                kind = PassedPath if route.kind == "pass" else ApiEndpoint
                endpoints.append(kind(services, plugin, api, route))
            elif first.plugin.key in services.config.apis:
                text = "%s %s is served for %s, not for %s, as apis in the configuration says"
                services.log.info(text, route.method, route.path, first.plugin.key, plugin.key)
            else:
                one, other = first.plugin.key, plugin.key
                raise CallerError(
                    f"the plugins {one} and {other} both serve {route.method} {route.path}: "
                    f'choose one with apis = ["{one}"] or apis = ["{other}"] in the configuration'
                )
    served: list[BaseRoute] = []
    asked: list[BaseRoute] = []  # exact paths of conversations; Starlette tries routes in order, and these are usual
    for (method, path), endpoints in paths.items():
        usual = "{" not in path and endpoints[0].route.kind == "send"
        endpoint = endpoints[0] if len(endpoints) == 1 else _SharedPath(endpoints)
        (asked if usual else served).append(Route(path, endpoint, methods=[method]))
    posted = [path for method, path in paths if method == "POST" and ("GET", path) not in paths]
    return [
        *asked,
        *[Route(path, _refuse_get, methods=["GET"]) for path in posted],
        *served,
        Route("/health", _health, methods=["GET"]),
        Route("/health/ready", partial(_ready, services), methods=["GET"]),
        Route("/metrics", partial(_metrics, services), methods=["GET"]),
        *admin_routes(services),
        Route("/", _hello, methods=["GET", "HEAD"]),
    ]


class _SharedPath:
    """A path that several APIs have: the header that only callers of one API send decides between them."""

    def __init__(self, endpoints: Sequence[ApiEndpoint | PassedPath]) -> None:
        self._told_apart = [each for each in endpoints if each.api.told_apart_by]
        others = [each for each in endpoints if not each.api.told_apart_by]
        self._default = (others or endpoints)[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = {name.decode("latin-1") for name, _ in scope["headers"]}
        chosen = next((each for each in self._told_apart if each.api.told_apart_by in names), self._default)
        await chosen(scope, receive, send)


async def _refuse_get(_request: Request) -> Response:
    """Direct agents that try a WebSocket first to plain HTTP: 426 makes them fall back."""
    return PlainTextResponse("use HTTP POST\n", 426, {"upgrade": "HTTP/1.1", "allow": "POST"})


async def _metrics(services: Services, request: Request) -> Response:
    try:
        check_local_request(request.scope, services.config)
        await services.access.check_admin(request.headers, request.query_params)
    except ProviderError as error:
        status = {AuthenticationError: 401, PermissionDeniedError: 403}.get(type(error), 503)
        return PlainTextResponse(f"{error.message}\n", status)
    metrics = services.access.metrics
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):  # of several workers
        metrics = CollectorRegistry()
        MultiProcessCollector(metrics)  # type: ignore[no-untyped-call]
    return Response(generate_latest(metrics), headers={"content-type": CONTENT_TYPE_LATEST})


async def _ready(services: Services, request: Request) -> Response:
    """Answer 200 if requests can be answered, else 503; operators see the state of each model too."""
    routes, down = services.route_models(), False
    if services.store is not None:
        try:
            await ask_store(services.store.ping)
        except OverloadedError:
            down = True
    rests = [all(map(services.health.rests, models)) for models in routes.values()]
    status = "down" if down or (rests and all(rests)) else "degraded" if any(rests) else "ok"
    body: dict[str, Any] = {"status": status}
    with suppress(ProviderError, CallerError):
        check_local_request(request.scope, services.config)
        await services.access.check_admin(request.headers, request.query_params)
        body["routes"] = {name: services.health.report(models) for name, models in routes.items()}
    return JSONResponse(body, 503 if status == "down" else 200)


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _hello(_request: Request) -> Response:
    return PlainTextResponse("interlingua gateway\n")

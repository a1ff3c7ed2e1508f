"""The services that all requests share: clients, keys, the store, seals, the recorder and the served APIs."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs

from interlingua import AsyncClient, Retry, Timeout
from interlingua.errors import CallerError, InterlinguaError, OverloadedError
from interlingua.plugins import Connection, ConnectionSettings, ModelInfo, Registry
from interlingua.types import Origin
from interlingua_gateway.access import Access
from interlingua_gateway.activity import Activity
from interlingua_gateway.cache import AnswerCache
from interlingua_gateway.config import Deployment, GatewayConfig, ModelRoute
from interlingua_gateway.guards import load_guards
from interlingua_gateway.health import Health
from interlingua_gateway.kept import KeptAnswers
from interlingua_gateway.login import LoginService
from interlingua_gateway.models import RoutedModel, check_name, choose_models
from interlingua_gateway.recall import Recall
from interlingua_gateway.record import ConversationRecorder
from interlingua_gateway.seal import KEY_BYTES, Sealer, read_key_file, read_keys
from interlingua_gateway.spending import Spending
from interlingua_gateway.store import GatewayStore, ask_store
from interlingua_serving import ServeContext, find_apis

_SELF_HOSTED = "self-hosted"  # the price of models on machines of one's own
_FIXED = ("apis", "auth", "admin_login", "store", "seal_keys_env", "seal_key_file", "record", "drain", "guards")
_BETWEEN = 600.0  # most seconds between two parts of an answer that is passed on
_EVERY = 10.0  # seconds between two rounds of recurring work
_STATES_AGE = timedelta(days=30)
_FAILURES_AGE = timedelta(days=7)
_DROP_EVERY = 3600.0  # seconds between two searches for old states
NO_FULL_COLLECTION = 1 << 30
"""The garbage collector's threshold of the oldest objects with which it does not search them by itself."""
_HELD = 4 << 20  # most bytes of bodies whose objects are searched in a full collection: 1 MB of them takes 15 ms
_COLLECT_EVERY = 600.0  # most seconds between two full collections
_LARGE = 64 * 1024  # bytes of a body from which on its request is handled in a thread
_T = TypeVar("_T")
_SECRETS = {"authorization", "x-api-key", "api-key", "cookie", "proxy-authorization"}


class Services:
    """The services that all requests of one gateway share.

    Args:
        config: the settings.
        registry: the installed providers; by default all that are found.
        settings: connection settings by provider key, as for `AsyncClient`.
        environ: environment variables, such as the providers' keys.

    Attributes:
        apis: the served APIs with their plugins.
        secret_headers: lower-case names of request headers that may hold a key or a cookie.
        key_parameters: names of query parameters that may hold a key.
        held: bytes of the bodies of requests in progress.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        registry: Registry | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._check_deployments(config)
        self.config = config
        self.guards = load_guards(config.guards)
        self.registry = registry or Registry()
        self.log = logging.getLogger("interlingua.gateway")
        self._settings = settings or {}
        self._clients: dict[tuple[Any, ...], AsyncClient] = {}
        self.held, self._collected = 0, time.monotonic()
        self._large_requests = ThreadPoolExecutor(1, "large-request")  # one at a time: small ones are handled beside it
        self.apis = find_apis(self.registry, config.apis)
        key_headers = tuple(dict.fromkeys(name for _, api in self.apis for name in api.key_headers))
        self.key_parameters = tuple(dict.fromkeys(name for _, api in self.apis for name in api.key_parameters))
        self.secret_headers = frozenset(_SECRETS.union(key_headers))
        self.store = open_store(config, self._environ)
        if self.store is None and config.auth == "keys":
            raise CallerError("auth = 'keys' needs a store, and without HOME there is no default: set store")
        with ExitStack() as on_failure:
            if self.store is not None:
                on_failure.callback(self.store.close)
            self.spending = None
            if self.store is not None and config.auth == "keys":
                folder = data_folder(self._environ)
                self.spending = Spending(self.store, folder / "unwritten" if folder else None)
            store = self.store if config.auth == "keys" else None
            self.access = Access(store, key_headers, self.key_parameters, self.spending)
            self.health = Health(lambda: self.config, self.access.metrics)
            self._sealer = Sealer(read_keys(self._environ.get(config.seal_keys_env, "")) or [self._own_seal_key()])
            self.recall = Recall(self.store, self._sealer) if self.store else None
            self.cache = AnswerCache(self.store, self._sealer) if self.store else None
            self.kept = KeptAnswers(self.store, self._sealer) if self.store else None
            self.login = self._open_login(config)
            self.recorder = open_recorder(config, self.store)
            on_failure.pop_all()

    def change_config(self, config: GatewayConfig) -> None:
        """Use another configuration for the requests that follow.

        Raises:
            CallerError: a setting differs that is read only when the gateway starts, the key of a deployment is not in
                the environment, or a route cannot be used.
        """
        self._check_deployments(config)
        self.check_routes(config)
        old = {name: getattr(self.config, name) for name in _FIXED}
        changed = [name for name, value in old.items() if getattr(config, name) != value]
        if changed:
            raise CallerError(f"{', '.join(changed)} can change only with a restart")
        self.config = config
        self.health.follow_config()

    def _check_deployments(self, config: GatewayConfig) -> None:
        """Refuse a deployment without its key, which would get the key for the provider's own service instead."""
        for at, one in enumerate(config.deployments):
            if one.api_key_env and not self._environ.get(one.api_key_env):
                raise CallerError(f"deployments[{at}].api_key_env: {one.api_key_env} is not set in the environment")

    def check_routes(self, config: GatewayConfig) -> None:
        """Check the models of the routes, and the chosen APIs.

        Raises:
            CallerError: the first problem that `route_problems` finds.
        """
        if (problem := next(self.route_problems(config), None)) is not None:
            raise CallerError(problem)

    def route_problems(self, config: GatewayConfig) -> Iterator[str]:
        """Yield what in a configuration can never work: models that do not exist, and routes that are never used."""
        for at, key in enumerate(config.apis):
            if key not in [plugin.key for plugin, _ in self.apis]:
                yield f"apis[{at}]: no installed plugin {key!r} serves an API"
        for at, route in enumerate(config.routes):
            earlier = [other.match for other in config.routes[:at]]
            if found := next((name for name in earlier if route.match == name or fnmatchcase(route.match, name)), None):
                yield f"routes[{at}].match: never used, because the route {found!r} before it has its names"
            for name in route.to:
                deployment = config.find_deployment(name)
                if problem := self._model_problem(name if deployment is None else deployment.model):
                    yield f"routes[{at}].to: {problem}"

    def _model_problem(self, name: str) -> str:
        plain = name.replace("{model}", "m")
        try:
            if ":" in plain and (not name.startswith("{model}") or not name.endswith("{model}")):
                self.registry.provider(name.partition(":")[0])
            if plain == name:
                self.registry.resolve(name)
            check_name(plain)
        except InterlinguaError as error:
            return f"{error.message}"
        return ""

    def _open_login(self, config: GatewayConfig) -> LoginService | None:
        login = config.admin_login
        if login is None or self.store is None:
            return None
        secret = self._environ.get(login.client_secret_env, "")
        if login.client_secret_env and not secret:
            raise CallerError(f"admin_login.client_secret_env: {login.client_secret_env} is not set in the environment")
        return LoginService(login, secret, self.store.database, self._sealer)

    def _own_seal_key(self) -> bytes:
        """Return the key in the configured file; it is made by the first call."""
        place = _seal_key_file(self.config, self._environ)
        return read_key_file(Path(place)) if place else os.urandom(KEY_BYTES)

    def model_info(self, origin: Origin) -> ModelInfo | None:
        """Return the catalogue's entry of a model, with its price; None if no catalogue lists it."""
        provider = self.registry.provider(origin.provider)
        if (found := provider.model(origin.model)) is not None:
            return found
        own = re.fullmatch(self.connection(origin.provider).self_hosted, origin.model)
        return ModelInfo(id=origin.model, pricing_version=_SELF_HOSTED) if own else None

    def _settings_of(self, provider: str, deployment: Deployment | None) -> dict[str, Any]:
        given = {name: value for name, value in self._settings.get(provider, {}).items() if value is not None}
        if deployment is not None and deployment.base_url:
            given["base_url"] = deployment.base_url
        if deployment is not None and deployment.api_key_env:
            given["api_key"] = self._environ[deployment.api_key_env]
        return given

    def connection(self, provider: str, deployment: Deployment | None = None) -> Connection:
        """Return how the service of a provider, or of a deployment, is reached."""
        given = self._settings_of(provider, deployment)
        return self.registry.provider(provider).connection(ConnectionSettings(environ=self._environ, **given))

    def base_url(self, model: RoutedModel) -> str:
        """Return the address of a model's service."""
        return self.connection(model.provider, model.deployment).base_url

    def client(self, route: ModelRoute, model: RoutedModel) -> AsyncClient:
        """Return the client of a model, with the limits of a route."""
        place = None if model.deployment is None else (model.provider, *attrs.astuple(model.deployment))
        limits = (route.first_byte, route.between_chunks, route.total, place)
        if limits not in self._clients:
            settings = {**self._settings, model.provider: self._settings_of(model.provider, model.deployment)}
            self._clients[limits] = AsyncClient(
                registry=self.registry,
                settings=settings if place else self._settings,
                environ=self._environ,
                retry=Retry(max_attempts=1),  # each attempt is reserved by itself
                timeout=Timeout(first_byte=route.first_byte, between_chunks=route.between_chunks, total=route.total),
            )
        return self._clients[limits]

    def passing_client(self) -> AsyncClient:
        """Return the client for requests whose bodies are passed on unchanged."""
        if ("passing",) not in self._clients:
            limits = Timeout(between_chunks=_BETWEEN)
            given: dict[str, Any] = {"registry": self.registry, "settings": self._settings, "environ": self._environ}
            self._clients["passing",] = AsyncClient(**given, timeout=limits)
        return self._clients["passing",]

    def missing_key(self, provider: str, deployment: Deployment | None = None) -> str:
        """Return the environment variables that may hold a provider's key; "" if it has its key or needs none.

        Raises:
            CallerError: there is no such provider.
            PluginError: its plugin is broken.
        """
        connection = self.connection(provider, deployment)
        if connection.has_key:
            return ""
        return " or ".join(
            [name for name in connection.env_vars if "KEY" in name or "TOKEN" in name] or connection.env_vars
        )

    def warnings(self) -> Iterator[str]:
        """Yield the reasons why models of the routes will fail: providers that are not installed or have no key."""
        models = [model for route in self.config.routes for model in route.to]
        places = [(name, self.config.find_deployment(name)) for name in models]
        named = [(name if one is None else one.model, one) for name, one in places]
        providers = [
            (name.partition(":")[0], one if one and one.api_key_env else None) for name, one in named if ":" in name
        ]
        for provider, deployment in dict.fromkeys(providers):
            try:
                if names := self.missing_key(provider, deployment):
                    yield f"no key for {provider}: its models will not answer until {names} is set"
            except InterlinguaError as error:
                yield str(error)

    def context(self, context: ServeContext, tenant: str) -> ServeContext:
        """Return the context of a tenant's request, whose seals only this tenant can open."""
        return attrs.evolve(
            context,
            stores_answers=self.recall is not None,
            seal=partial(self._sealer.seal, tenant=tenant),
            unseal=partial(self._sealer.unseal, tenant=tenant),
        )

    def model_names(self, patterns: Sequence[str] = ()) -> list[str]:
        """Return the model names for callers: those of the routes, or the catalogues of all providers with a key.

        Args:
            patterns: those of the caller's key; names that it may not use are left out.
        """
        names = [route.match for route in self.config.routes if not route.is_pattern]
        if not names:
            usable = [provider for provider in self.registry.providers() if self._has_key(provider.key)]
            names = [f"{provider.key}:{model.id}" for provider in usable for model in provider.models()]
        return [name for name in names if not patterns or self._is_allowed(name, patterns)]

    def route_models(self) -> dict[str, tuple[RoutedModel, ...]]:
        """Return the models of each route, without those that depend on the requested name."""
        found: dict[str, tuple[RoutedModel, ...]] = {}
        for route in self.config.routes:
            fixed = tuple([name for name in route.to if "{model}" not in name])
            with suppress(InterlinguaError):
                alone = attrs.evolve(self.config, routes=(attrs.evolve(route, match=route.to[0], to=fixed),))
                found[route.match] = choose_models(alone, self.registry, route.to[0], "").models
        return found

    def _is_allowed(self, name: str, patterns: Sequence[str]) -> bool:
        try:
            return choose_models(self.config, self.registry, name, "").is_allowed(patterns)
        except InterlinguaError:
            return False

    def _has_key(self, provider: str) -> bool:
        try:
            return not self.missing_key(provider)
        except InterlinguaError:  # it needs more than a key, such as an address
            return False

    def end_request(self, size: int) -> None:
        """Count a request as ended, whose body had this many bytes, and keep nothing of it.

        Clients keep conversations for their next turn, but here its messages are new objects, also if they are equal.
        """
        self.held -= size
        for client in self._clients.values():
            client.forget()

    async def work(self, size: int, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function whose time grows with a request; in a thread if the request has many bytes."""
        if size <= _LARGE:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._large_requests, function, *arguments)

    async def keep_up(self, stop: asyncio.Event) -> None:
        """Do the work that recurs while the gateway runs, until `stop` is set."""
        drop_at = 0.0
        while not stop.is_set():
            try:
                if self.spending is not None:
                    await self.spending.tend()
                if self.store is not None and time.monotonic() >= drop_at:
                    await ask_store(self.store.drop_states, datetime.now(UTC) - _STATES_AGE)
                    await ask_store(self.store.drop_answers, time.time())
                    await ask_store(Activity(self.store.database).drop_failures, datetime.now(UTC) - _FAILURES_AGE)
                    if self.login is not None:
                        await ask_store(self.login.logins.drop_expired)
                    drop_at = time.monotonic() + _DROP_EVERY
                self._collect()
            except OverloadedError as error:
                self.log.info("%s", error.message)
            except Exception:
                self.log.exception("recurring work failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _EVERY)

    def _collect(self) -> None:
        """Make a full collection of garbage if the collector makes none: no request proceeds meanwhile.

        It takes 0.4 s with the objects of a request of 30 MB, so it waits for the end of large requests.
        """
        if gc.get_threshold()[2] >= NO_FULL_COLLECTION and (
            self.held < _HELD or time.monotonic() > self._collected + _COLLECT_EVERY
        ):
            gc.collect()
            self._collected = time.monotonic()

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()
        self._large_requests.shutdown(wait=False, cancel_futures=True)
        if self.spending is not None:
            with suppress(OverloadedError):
                await self.spending.write_waiting()
        if self.recorder is not None:
            self.recorder.close()
        if self.store is not None:
            self.store.close()


def open_store(config: GatewayConfig, environ: Mapping[str, str]) -> GatewayStore | None:
    """Open the configured store, or the one in the user's data folder; return None if there is no home folder.

    Raises:
        CallerError: the store is of an unknown kind.
        OverloadedError: the database does not respond.
    """
    folder = data_folder(environ)
    if not config.store and folder is None:
        return None
    return GatewayStore(config.store or f"sqlite:///{folder}/gateway.db")


def with_seal_key(config: GatewayConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return environment variables with a key of seals for several processes, if no file keeps one."""
    if environ.get(config.seal_keys_env) or _seal_key_file(config, environ):
        return environ
    return {**environ, config.seal_keys_env: b64encode(os.urandom(KEY_BYTES)).decode()}


def _seal_key_file(config: GatewayConfig, environ: Mapping[str, str]) -> str:
    folder = environ.get("XDG_CONFIG_HOME") or _below_home(environ, ".config")
    return config.seal_key_file or (f"{folder}/interlingua/gateway-seal.key" if folder else "")


def data_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the gateway's own files; None if there is no home folder."""
    folder = environ.get("XDG_DATA_HOME") or _below_home(environ, ".local/share")
    return Path(folder) / "interlingua" if folder else None


def _below_home(environ: Mapping[str, str], place: str) -> str:
    return f"{environ['HOME']}/{place}" if environ.get("HOME") else ""


def open_recorder(config: GatewayConfig, store: GatewayStore | None) -> ConversationRecorder | None:
    """Open the recorder of conversations; return None if the configuration has no `record`.

    Raises:
        CallerError: interlingua-sessions is not installed, or the gateway has no store.
        StoreError: the sessions cannot be opened.
    """
    if not config.record:
        return None
    if store is None:
        raise CallerError("record needs a store, and without HOME there is no default: set store")
    return ConversationRecorder(config.record, store)

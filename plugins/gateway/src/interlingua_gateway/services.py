"""The services that all requests share: clients, keys, the store, seals, the recorder and the served APIs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from interlingua import AsyncClient, Retry, Timeout
from interlingua.errors import CallerError, InterlinguaError
from interlingua.plugins import ConnectionSettings, Registry
from interlingua_gateway.access import Access
from interlingua_gateway.config import GatewayConfig, ModelRoute
from interlingua_gateway.recall import Recall
from interlingua_gateway.record import ConversationRecorder
from interlingua_gateway.seal import KEY_BYTES, Sealer, read_keys
from interlingua_gateway.store import GatewayStore
from interlingua_serving import ServeContext, find_apis

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
        self.apis = find_apis(self.registry, config.apis)
        key_headers = tuple(dict.fromkeys(name for _, api in self.apis for name in api.key_headers))
        self.key_parameters = tuple(dict.fromkeys(name for _, api in self.apis for name in api.key_parameters))
        self.secret_headers = frozenset(_SECRETS.union(key_headers))
        self.store = open_store(config, self._environ)
        if self.store is None and config.auth == "keys":
            raise CallerError("auth = 'keys' needs a store, and without HOME there is no default: set store")
        self.access = Access(self.store if config.auth == "keys" else None, key_headers, self.key_parameters)
        configured = read_keys(self._environ.get(config.seal_keys_env, ""))
        kept = [self.store.seal_key() if self.store else os.urandom(KEY_BYTES)]
        self._sealer = Sealer(configured or kept)
        self.recall = Recall(self.store, self._sealer) if self.store else None
        self.recorder = open_recorder(config, self.store)

    def client(self, route: ModelRoute) -> AsyncClient:
        """Return the client with the limits of a route."""
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
        """Return the environment variables that may hold a provider's key; "" if it has its key or needs none.

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
        """Yield the reasons why models of the routes will fail: providers that are not installed or have no key."""
        models = [model for route in self.config.routes for model in route.to]
        for provider in dict.fromkeys(model.partition(":")[0] for model in models if ":" in model):
            try:
                if names := self.missing_key(provider):
                    yield f"no key for {provider}: its models will not answer until {names} is set"
            except InterlinguaError as error:
                yield str(error)

    def context(self, context: ServeContext, tenant: str) -> ServeContext:
        """Return the context of a tenant's request, whose seals only this tenant can open."""
        return attrs.evolve(
            context,
            seal=partial(self._sealer.seal, tenant=tenant),
            unseal=partial(self._sealer.unseal, tenant=tenant),
        )

    def model_names(self) -> list[str]:
        """Return the model names for callers: those of the routes, or the catalogues of all providers with a key."""
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
    folder = environ.get("XDG_DATA_HOME") or (environ.get("HOME") and f"{environ['HOME']}/.local/share")
    if not config.store and not folder:
        return None
    return GatewayStore(config.store or f"sqlite:///{folder}/interlingua/gateway.db")


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

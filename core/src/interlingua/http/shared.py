"""What both clients share: settings, models, connections, and exchanges that are no conversation."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from interlingua.errors import CallerError
from interlingua.http.limits import Deadline, Retry, Timeout
from interlingua.http.transport import Outgoing, no_key, outgoing
from interlingua.ids import ModelId
from interlingua.plugins.provider import Provider
from interlingua.plugins.registry import Registry
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.request.prepare import FAILED
from interlingua.types.messages import Origin

if TYPE_CHECKING:
    from interlingua.catalogue import ModelInfo
    from interlingua.plugins.wire import Connection
    from interlingua.request.conversation import Prefixes
    from interlingua.request.prepare import Exchange
    from interlingua.types.messages import RoutingDecisionRecord


_log = logging.getLogger("interlingua")


_SETTINGS = frozenset({"api", "api_key", "base_url", "options"})


@attrs.frozen(slots=False)  # a cached property needs a place
class Known:
    """A model a client was asked for, its provider, and its name there; `by_default` where no call named it."""

    provider: Provider
    id: ModelId
    by_default: bool

    @cached_property
    def routing(self) -> RoutingDecisionRecord:
        """The record of a choice that was no router's."""
        from interlingua.types.messages import (  # noqa: PLC0415  not until something is sent
            RoutingDecisionRecord,
            RoutingMode,
        )

        mode = RoutingMode.DEFAULT if self.by_default else RoutingMode.MANUAL
        reason = "the client's default model" if self.by_default else "the caller named the model"
        return RoutingDecisionRecord(mode=mode, chosen_model=str(self.id), reason=reason)


class SharedState:
    """Settings and findings of one client; safe for use from several threads."""

    def __init__(
        self,
        model: str | None,
        *,
        api_key: str | None,
        base_url: str | None,
        registry: Registry | None,
        settings: Mapping[str, Mapping[str, Any]] | None,
        timeout: Timeout | float | None,
        retry: Retry | int | None,
        headers: Mapping[str, str] | None,
        workspace: str | Path | None,
        environ: Mapping[str, str] | None,
    ) -> None:
        self.model = model
        self.registry = registry if registry is not None else Registry()
        self._timeout_given = timeout is not None
        self.timeout: Timeout | None = Timeout.of(timeout)
        self.retry = Retry.of(retry)
        self.headers = dict(headers or {})
        self.workspace = workspace
        self._environ = os.environ if environ is None else environ
        self._settings = {key: _checked(key, value) for key, value in (settings or {}).items()}
        self._known: dict[str | None, Known] = {}
        self._connections: dict[tuple[str, str | None], Connection] = {}
        self._infos: dict[tuple[str, str], ModelInfo | None] = {}
        own = {name: value for name, value in (("api_key", api_key), ("base_url", base_url)) if value is not None}
        if model is not None:
            key = self.known(None).provider.key
            self._settings[key] = {**self._settings.get(key, {}), **own}
        elif own:
            raise CallerError("api_key and base_url belong to the provider of model=; without one, use settings=")

    def leave_limits(self, *, given_client_has_own: bool) -> None:
        """Let the limits of the user's HTTP client stand, unless the caller gave some here."""
        if given_client_has_own and not self._timeout_given:
            self.timeout = None

    def known(self, model: str | None) -> Known:
        """Return what is known of a model the caller named, or of the default one.

        Raises:
            CallerError: there is no default, or the name is no model id.
            UnknownProviderError, PluginError: its provider cannot be had.
        """
        found = self._known.get(model)
        if found is None:
            asked = model or self.model
            if asked is None:
                raise CallerError("no model: give model= to the call, or a default to the client")
            name = self.registry.resolve(asked)
            found = self._known[model] = Known(self.registry.provider(name.provider), name, model is None)
        return found

    def connection(self, provider: Provider, api: str | None) -> Connection:
        """Return how to reach a provider by one of its wire formats; asked once, so later changes are not seen."""
        found = self._connections.get((provider.key, api))
        if found is None:
            from interlingua.plugins.wire import ConnectionSettings  # noqa: PLC0415  not needed until something is sent

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

    @cached_property
    def begin(self) -> Callable[..., Exchange]:
        """The function that begins a request; kept, for each request asks for it."""
        from interlingua.request.arguments import begin  # noqa: PLC0415  not needed until something is sent

        return begin

    @cached_property
    def prefixes(self) -> Prefixes:
        """The watch on what was sent."""
        from interlingua.request.conversation import Prefixes  # noqa: PLC0415  not needed until something is sent

        return Prefixes()

    def info(self, provider: Provider, name: str) -> ModelInfo | None:
        """Return the catalogue's entry; a model it does not know is warned of once and never refused (DESIGN 9)."""
        key = (provider.key, name)
        if key not in self._infos:
            found = self._infos[key] = provider.model(name)
            if found is None:
                _log.warning("the catalogue does not know %s:%s: default capabilities, no price", *key)
        return self._infos[key]

    def api(self, provider: Provider) -> str | None:
        """Return the wire format that the settings choose for a provider."""
        found: str | None = self._settings.get(provider.key, {}).get("api")
        return found

    def models(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return a provider's catalogue: the one named, else the default model's."""
        found = self.registry.provider(provider) if provider is not None else self.known(None).provider
        return found.models()


def _checked(key: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = settings.keys() - _SETTINGS
    if unknown:
        raise CallerError(f"unknown setting(s) for {key!r}: {sorted(unknown)}; there are {sorted(_SETTINGS)}")
    return settings


class Auxiliary:
    """One such exchange.

    Raises:
        CapabilityError: the provider does not offer it.
    """

    def __init__(self, core: SharedState, provider: Provider, kind: str, arguments: Mapping[str, Any]) -> None:
        self._core = core
        self._provider = provider
        self._kind = kind
        self._request = provider.auxiliary_request(kind, arguments)
        self.limits = Deadline(core.timeout)

    def outgoing(self) -> Outgoing:
        """Return the HTTP request, signed.

        Raises:
            AuthenticationError: a key is needed and there is none.
        """
        connection = self._core.connection(self._provider, None)
        if not connection.has_key:
            raise no_key(connection, self._provider.key)
        return outgoing(connection, self._request, self._core.headers)

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        """Return what was asked for.

        Raises:
            ProviderError: the service answered with a failure.
            MalformedResponseError: the answer cannot be read.
        """
        response = WireResponse(status=status, headers=headers, body=body)
        if status >= FAILED:
            context = RequestContext(origin=Origin(self._provider.key, self._request.api, ""))
            raise self._provider.from_wire_error(response, context)
        return self._provider.from_wire_auxiliary(self._kind, response)

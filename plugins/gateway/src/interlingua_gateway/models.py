"""The models that a requested name stands for, and whether a key may use them."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import attrs

from interlingua.errors import CallerError, ModelNotFoundError, PluginError
from interlingua.plugins import ModelInfo, Registry
from interlingua_gateway.config import Deployment, GatewayConfig, ModelRoute

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+~=,()-]{0,255}")
_WILD = frozenset("*?[")
_log = logging.getLogger("interlingua.gateway")


@attrs.frozen
class RoutedModel:
    """A model that may answer.

    Attributes:
        provider: the key of its provider.
        name: its name at that provider.
        info: the catalogue's entry; None if no catalogue lists it.
        listed: True if its provider has a catalogue.
        deployment: the place where it answers; None for its provider's own.
        label: its name for operators: that of its deployment, or `provider:name`.
    """

    provider: str
    name: str
    info: ModelInfo | None
    listed: bool
    deployment: Deployment | None
    label: str

    def __str__(self) -> str:
        """Return `provider:name`."""
        return f"{self.provider}:{self.name}"

    def matches(self, pattern: str) -> bool:
        """Return True if a pattern of a key matches this model.

        Aliases match as the model they stand for. A pattern with wildcards never matches a name that the provider's
        catalogue does not list.
        """
        if _WILD.isdisjoint(pattern):
            return pattern in (self.name, str(self)) or (self.info is not None and pattern in self._names())
        return (self.info is not None or not self.listed) and any(fnmatchcase(one, pattern) for one in self._names())

    def _names(self) -> tuple[str, str]:
        name = self.name if self.info is None else self.info.id
        return name, f"{self.provider}:{name}"


@attrs.frozen
class ModelChoice:
    """The route of a requested name, and its models in the order in which they are asked.

    Attributes:
        asked: the requested name.
        route: the route.
        models: those of its models that exist.
        configured: True if the route is in the configuration.
    """

    asked: str
    route: ModelRoute
    models: tuple[RoutedModel, ...]
    configured: bool

    def is_allowed(self, patterns: Sequence[str]) -> bool:
        """Return True if a key with these patterns may use the name.

        A pattern matches the name of a configured route, or every model that may answer.
        """
        if not patterns:
            return True
        if self.configured:
            name, wild = self.route.match, self.route.is_pattern
            if any(name == pattern or (not wild and fnmatchcase(name, pattern)) for pattern in patterns):
                return True
        return all(any(model.matches(pattern) for pattern in patterns) for model in self.models)


def choose_models(config: GatewayConfig, registry: Registry, asked: str, provider: str) -> ModelChoice:
    """Return the models for a requested name.

    Args:
        config: the routes.
        registry: the installed providers.
        asked: the name in the request.
        provider: the key of the provider whose API the caller uses.

    Raises:
        CallerError: the name is not a model's name.
        ModelNotFoundError: no route and no installed provider has it.
    """
    configured = config.find_route(asked)
    if configured is None or configured.is_pattern:
        check_name(asked)
    if configured is None and config.routes_only:
        raise ModelNotFoundError(f"the model {asked!r} does not exist")
    route = configured or ModelRoute(match=asked, to=(asked if ":" in asked else f"{provider}:{asked}",))
    models = tuple([model for name in route.targets(asked) if (model := _find(config, registry, name)) is not None])
    if not models:
        raise ModelNotFoundError(f"the model {asked!r} does not exist")
    return ModelChoice(asked, route, models, configured is not None)


def check_name(name: str) -> None:
    """Refuse a name that no model has.

    Raises:
        CallerError: it is empty or too long, has other characters than ASCII letters, digits and `._:/@+~=,()-`, or a
            segment `.` or `..`.
    """
    if not _NAME.fullmatch(name) or {".", "..", ""}.intersection(name.split("/")):
        raise CallerError(f"not a model's name: {name[:80]!a}")


def _find(config: GatewayConfig, registry: Registry, name: str) -> RoutedModel | None:
    deployment = config.find_deployment(name) if config.deployments else None
    try:
        model = registry.resolve(name if deployment is None else deployment.model)
        provider = registry.provider(model.provider)
    except (CallerError, PluginError) as error:  # its message lists the installed providers: not for callers
        _log.info("no model %r: %s", name, error)
        return None
    info, listed = provider.model(model.name), bool(provider.models())
    label = f"{model.provider}:{model.name}" if deployment is None else deployment.name
    return RoutedModel(model.provider, model.name, info, listed, deployment, label)

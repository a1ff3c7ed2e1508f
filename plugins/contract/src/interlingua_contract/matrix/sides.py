"""The sides of a swap: each wire of each installed provider, its models, and the call ids it issues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import attrs

from interlingua.errors import CallerError, CapabilityError
from interlingua.plugins import Connection, ConnectionSettings, Provider, Registry, WireRequest, build_request
from interlingua.types import Message, ModelCapabilities, Origin, RequestOptions, ToolDefinition, assistant, user
from interlingua_contract import json_paths

UNKNOWN_MODEL = "any-model"
"""The model where a provider's catalogue is empty: its default capabilities apply."""


class Side:
    """A provider on one of its wires.

    Args:
        provider: its façade.
        api: which wire.
        name: the provider's key; with several APIs, also the API behind a slash.
    """

    def __init__(self, provider: Provider, api: str, name: str) -> None:
        self.provider, self.api, self.name = provider, api, name
        self.issuing: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"<Side {self.name}>"

    @cached_property
    def connection(self) -> Connection:
        """The connection without any key or environment."""
        return self.provider.connection(ConnectionSettings(api=self.api))

    @cached_property
    def models(self) -> tuple[tuple[str, ModelCapabilities], ...]:
        """The models that this wire offers with what they declare, in the catalogue's order."""
        found = []
        for name in [info.id for info in self.provider.models()] or [UNKNOWN_MODEL]:
            try:
                declared = self.provider.capabilities(name, RequestOptions(model=name, api=self.api))
            except CapabilityError:
                continue  # this wire does not offer this model
            if declared.api in ("", self.api):
                found.append((name, declared))
        return tuple(found) or ((UNKNOWN_MODEL, self.provider.capabilities(UNKNOWN_MODEL)),)

    def model_for(self, needs: Sequence[str]) -> str:
        """Return the first model of the catalogue that declares most of what a history needs."""
        return max(self.models, key=lambda one: sum(bool(getattr(one[1], need)) for need in needs))[0]

    def options(self, model: str) -> RequestOptions:
        """Return a request's options."""
        return RequestOptions(model=model, api=self.api)

    def capabilities(self, model: str) -> ModelCapabilities:
        """Return what a model declares on this wire."""
        return self.provider.target(self.options(model)).capabilities

    def origin(self, model: str) -> Origin:
        """Return what this side's answers are credited to."""
        return Origin(self.provider.key, self.capabilities(model).api or self.api, model)

    def write(self, model: str, messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> WireRequest:
        """Write a request.

        Raises:
            InterlinguaError: it cannot be said.
        """
        return build_request(self.provider, messages, tools, self.options(model))

    @cached_property
    def growing_path(self) -> json_paths.Path | None:
        """The path of the array that grows with the conversation; None without one."""
        model = self.model_for(())
        short = self.write(model, [user("one")], ())
        long = self.write(model, [user("one"), assistant("two"), user("three")], ())
        return json_paths.find_growing_array(json.loads(short.body), json.loads(long.body))


def sides(registry: Registry, only: Iterable[str] = ()) -> list[Side]:
    """Return one side for each wire of each provider, or `only` of these providers or sides, in order of their names.

    Raises:
        CallerError: nothing is installed under one of these names.
    """
    wanted = dict.fromkeys(only)
    keys = {name.partition("/")[0] for name in wanted}
    providers = [registry.provider(key) for key in sorted(keys)] if keys else registry.providers()
    found = [side for provider in providers for side in _sides_of(provider)]
    if not wanted:
        return found
    chosen = [side for side in found if side.name in wanted or side.provider.key in wanted]
    if missing := [name for name in wanted if not any(name in (side.name, side.provider.key) for side in chosen)]:
        raise CallerError(f"no such wire: {', '.join(missing)}; there are {', '.join(side.name for side in found)}")
    return chosen


def _sides_of(provider: Provider) -> list[Side]:
    endpoints: Any = provider.connection(ConnectionSettings()).endpoints
    apis = tuple(endpoints) or (provider.capabilities(UNKNOWN_MODEL).api,)
    key = provider.key
    return [Side(provider, api, f"{key}/{api}" if len(apis) > 1 else key) for api in sorted(apis)]


@attrs.frozen(kw_only=True)
class Speaker:
    """A side and one of its models, which answers."""

    side: Side
    model: str

    @property
    def signs(self) -> bool:
        """True when this model's thinking can be sent back to it."""
        can = self.side.capabilities(self.model)
        return can.supports_thinking and can.thinking_scope != "never"

    @property
    def calls(self) -> bool:
        """True when this model can call tools."""
        return self.side.capabilities(self.model).supports_tools

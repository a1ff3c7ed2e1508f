"""Services that speak generateContent under their own key, as presets describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    Preset,
    PresetTable,
    WireRequest,
    find_model,
    hookimpl,
    no_auth,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_google import models as own
from interlingua_google.plugin import ENDPOINTS, _Google, plugin
from interlingua_google.request import to_wire


class GenerateHost(_Google):
    """The provider that a preset describes; what a model takes is known by its name, as at the service itself."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        """Return the capabilities of a model. The same model gets the same object."""
        return self.preset.capabilities_of(model, own.capabilities_of(model))

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        """Return the preset's catalogue."""
        return self.preset.models

    @hookimpl
    def model_info(self, model: str) -> ModelInfo | None:
        """Return the model's entry in the preset's catalogue."""
        return find_model(self.preset.models, model)

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return the preset's address, which has the version of the API at its end."""

        def auth(key: str | None) -> Any:
            return (lambda _request: {"x-goog-api-key": key}) if key else no_auth

        return self.preset.connection(settings, auth, endpoints=ENDPOINTS)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write the request, without what the service does not take."""
        options, rows = self.preset.drop_options(options)
        made = to_wire(messages, tools, options)
        return attrs.evolve(made, losses=(*rows, *made.losses)) if rows else made

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Return None: a host of this API is only known to generate."""
        return None


def provider_from_preset(key: str, fields: Mapping[str, Any]) -> GenerateHost:
    """Make a provider from a table.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type.
    """
    table = PresetTable(key, fields)
    if "facts" in fields:
        raise table.error("facts", "has no meaning in this format, which knows models by their names")
    return GenerateHost(Preset.read(table))


def for_host(key: str, settings: Mapping[str, Any]) -> _Google:
    """Return the provider object for a host that serves this API under its own key (entry point of the format).

    Raises:
        PluginError: a field of the preset is unknown, missing or of the wrong type.
    """
    return provider_from_preset(key, settings) if settings else plugin

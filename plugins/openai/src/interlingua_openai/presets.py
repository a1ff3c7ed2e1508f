"""Services that speak the Responses API under their own key, as presets describe them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
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
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_openai.catalogue import DEFAULTS, RESPONSES
from interlingua_openai.plugin import ENDPOINT, _OpenAI
from interlingua_openai.responses.request import to_wire

_HERE = Path(__file__).parent


class ResponsesHost(_OpenAI):
    """The provider that a preset describes."""

    def __init__(self, preset: Preset) -> None:
        super().__init__(preset.key)
        self.preset = preset

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        """Return the capabilities of a model. The same model gets the same object."""
        return self.preset.capabilities_of(model, DEFAULTS[RESPONSES])

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
        """Return the preset's address, with a bearer token."""
        return self.preset.connection(settings, endpoints={RESPONSES: ENDPOINT})

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write the request, without what the service does not take."""
        options, rows = self.preset.drop_options(options)
        made = to_wire(messages, tools, options, self.preset.facts_of(options.model))
        return attrs.evolve(made, losses=(*rows, *made.losses)) if rows else made

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Return the request for `models`; nothing else is known of every host."""
        return super().auxiliary_request(kind, arguments) if kind == "models" else None


def provider_from_preset(key: str, fields: Mapping[str, Any], models: str | None = None) -> ResponsesHost:
    """Make a provider from a table; `models` is the content of a shipped preset's catalogue.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type.
    """
    return ResponsesHost(Preset.read(PresetTable(key, fields), models))


def for_host(key: str, settings: Mapping[str, Any]) -> _OpenAI:
    """Return the provider object for a host that serves these APIs under its own key (entry point of the format).

    Raises:
        PluginError: a field of the preset is unknown, missing or of the wrong type.
    """
    return provider_from_preset(key, settings) if settings else _OpenAI(key)


def __getattr__(name: str) -> ResponsesHost:
    key = name.replace("_", "-")
    if name.startswith("_") or not (_HERE / "presets" / f"{key}.toml").is_file():
        raise AttributeError(f"module {__name__!r} has no preset {key!r}")
    table = tomllib.loads((_HERE / "presets" / f"{key}.toml").read_text(encoding="utf-8"))
    models = (_HERE / "presets" / table["models"]).read_text(encoding="utf-8") if "models" in table else None
    provider = globals()[name] = provider_from_preset(key, table, models)
    return provider

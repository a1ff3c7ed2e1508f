"""Services that speak the Messages API under their own key, as presets describe them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    FrozenDict,
    ModelInfo,
    Preset,
    PresetTable,
    WireRequest,
    bearer_auth,
    find_model,
    freeze_object,
    hookimpl,
    no_auth,
)
from interlingua.types import Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_anthropic import models as own
from interlingua_anthropic.plugin import ENDPOINT, VERSION, _Anthropic, on_host
from interlingua_anthropic.request import to_wire

_HERE = Path(__file__).parent


@attrs.frozen(kw_only=True, eq=False)
class MessagesPreset(Preset):
    """The description of one service on this API.

    Attributes:
        bearer: True if the key is sent as a bearer token instead of `x-api-key`.
    """

    bearer: bool = False


class MessagesHost(_Anthropic):
    """The provider that a preset describes."""

    def __init__(self, preset: MessagesPreset) -> None:
        self.preset = preset

    def facts_of(self, name: str) -> FrozenDict:
        """Return further facts about a model, as `models.json` has them of Claude's."""
        return freeze_object(self.preset.facts_of(name))

    def capabilities_of(self, name: str) -> ModelCapabilities:
        """Return the capabilities of a model."""
        return self.preset.capabilities_of(name, own.DEFAULTS)

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        """Return the capabilities of a model. The same model gets the same object."""
        return self.capabilities_of(model)

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
        """Return the preset's address, and its way to send the key."""

        def auth(key: str | None) -> Any:
            return (bearer_auth(key) if self.preset.bearer else lambda _request: {"x-api-key": key}) if key else no_auth

        headers, endpoints = {"anthropic-version": VERSION}, {own.API: ENDPOINT}
        return self.preset.connection(settings, auth, headers=headers, endpoints=endpoints)

    @hookimpl
    def to_wire(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> WireRequest:
        """Write the request, without what the service does not take."""
        options, rows = self.preset.drop_options(options)
        made = to_wire(messages, tools, options, self)
        return attrs.evolve(made, losses=(*rows, *made.losses)) if rows else made

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Return None: a host of this API is only known to have messages."""
        return None


def provider_from_preset(key: str, fields: Mapping[str, Any], models: str | None = None) -> MessagesHost:
    """Make a provider from a table; `models` is the content of a shipped preset's catalogue.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type.
    """
    table = PresetTable(key, fields)
    return MessagesHost(MessagesPreset.read(table, models, ("bearer",), bearer=table.read("bearer", bool, False)))


def for_host(key: str, settings: Mapping[str, Any]) -> _Anthropic:
    """Return the provider object for a host that serves this API under its own key (entry point of the format).

    Raises:
        PluginError: a field of the preset is unknown, missing or of the wrong type.
    """
    return provider_from_preset(key, settings) if settings else on_host


def __getattr__(name: str) -> MessagesHost:
    key = name.replace("_", "-")
    if name.startswith("_") or not (_HERE / "presets" / f"{key}.toml").is_file():
        raise AttributeError(f"module {__name__!r} has no preset {key!r}")
    table = tomllib.loads((_HERE / "presets" / f"{key}.toml").read_text(encoding="utf-8"))
    models = (_HERE / "presets" / table["models"]).read_text(encoding="utf-8") if "models" in table else None
    provider = globals()[name] = provider_from_preset(key, table, models)
    return provider

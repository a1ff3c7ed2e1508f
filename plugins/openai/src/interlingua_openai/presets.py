"""Services that speak the Responses API under their own key, as presets describe them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from interlingua.plugins import (
    EMPTY,
    Connection,
    ConnectionSettings,
    ModelInfo,
    Preset,
    PresetTable,
    WireRequest,
    find_model,
    hookimpl,
)
from interlingua.types import CostParts, Message, ModelCapabilities, RequestOptions, ToolDefinition
from interlingua_openai.catalogue import DEFAULTS, RESPONSES
from interlingua_openai.plugin import ENDPOINT, _OpenAI
from interlingua_openai.responses.request import to_wire

_HERE = Path(__file__).parent
_NOTHING = Decimal(0)


@attrs.frozen(kw_only=True, eq=False)
class ResponsesPreset(Preset):
    """The description of one service on this API.

    Attributes:
        reports_cost: True if `usage.cost` of an answer is what it cost, in US dollars.
        counts_tokens: True if the service counts the tokens of a request.
        schema_options: tables of `provider_options` that a request with a response schema has beside its own.
    """

    reports_cost: bool = False
    counts_tokens: bool = False
    schema_options: Mapping[str, Any] = EMPTY


class ResponsesHost(_OpenAI):
    """The provider that a preset describes."""

    def __init__(self, preset: ResponsesPreset) -> None:
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
        if options.response_schema is not None and self.preset.schema_options:
            options = _add_schema_options(options, self.preset.schema_options)
        made = to_wire(messages, tools, options, self.preset.facts_of(options.model))
        return attrs.evolve(made, losses=(*rows, *made.losses)) if rows else made

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Return the request for `models`, or for `count_tokens` if the service counts."""
        known = kind == "models" or (kind == "count_tokens" and self.preset.counts_tokens)
        return super().auxiliary_request(kind, arguments) if known else None

    @hookimpl
    def cost_of(self, message: Message) -> tuple[CostParts, str] | None:
        """Return what the service charged, if it reports that."""
        return _charge_of(message) if self.preset.reports_cost else None


def _add_schema_options(options: RequestOptions, tables: Mapping[str, Any]) -> RequestOptions:
    extra = dict(options.provider_options)
    for name, table in tables.items():
        given = extra.get(name, EMPTY)
        if isinstance(given, Mapping):
            extra[name] = {**table, **given}
    return attrs.evolve(options, provider_options=extra)


def _charge_of(message: Message) -> tuple[CostParts, str] | None:
    """Return the charge in its parts, or None if the answer reports none (WIRE.md, Hosts).

    With a key of the caller's at the upstream service, the charge is what that service takes and the router's fee.
    """
    usage = ((message.metadata.provider_raw or EMPTY).get("trace") or EMPTY).get("usage") or EMPTY
    if (charged := _dollars(usage.get("cost"))) is None:
        return None
    details = usage.get("cost_details") or EMPTY
    if usage.get("is_byok") is True:
        charged += _dollars(details.get("upstream_inference_cost")) or _NOTHING
    read, written = (_dollars(details.get(f"upstream_inference_{part}_cost")) for part in ("input", "output"))
    if read is None or written is None or read + written > charged:
        read, written = _NOTHING, _NOTHING
    other = charged - read - written
    return CostParts(input=read, output=written, cached_read=_NOTHING, cache_write=_NOTHING, other=other), "reported"


def _dollars(value: Any) -> Decimal | None:
    """Read an amount; None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Decimal(str(value))


def provider_from_preset(key: str, fields: Mapping[str, Any], models: str | None = None) -> ResponsesHost:
    """Make a provider from a table; `models` is the content of a shipped preset's catalogue.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type.
    """
    table = PresetTable(key, fields)
    flags = {name: table.read(name, bool, False) for name in ("reports_cost", "counts_tokens")}
    schema_options = {
        name: table.table("schema_options").table(name).fields for name in fields.get("schema_options", ())
    }
    return ResponsesHost(
        ResponsesPreset.read(table, models, (*flags, "schema_options"), **flags, schema_options=schema_options)
    )


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

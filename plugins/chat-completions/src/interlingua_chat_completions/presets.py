"""Presets: tables that describe one service each, shipped in `presets/*.toml` or written by users; their provider."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    Preset,
    PresetTable,
    WireRequest,
    WireResponse,
    find_model,
    hookimpl,
)
from interlingua.types import ModelCapabilities, RequestOptions
from interlingua_chat_completions.dialect import API, ENDPOINT, Dialect, capabilities_of
from interlingua_chat_completions.provider import (
    FORMAT_RULES,
    PAIRING_RULES,
    ChatProvider,
    from_wire_model_list,
    has_wire_rules,
    list_models_request,
    wire_rules,
)

_PROFILE = frozenset(("models", "dialect", "capabilities"))
_OWN = ("dialect", "profiles", "rules", "system_one")  # what this format adds to every preset's fields
_DIALECT = {field.name for field in attrs.fields(Dialect)}
_HERE = Path(__file__).parent


@attrs.frozen(kw_only=True, eq=False)
class PresetProfile:
    """The quirks and capabilities of some models of a service.

    Attributes:
        models: patterns of model names (`*`, `?`, `[...]`); empty in the profile for all other models.
        dialect: the service's quirks for these models.
        capabilities: capability fields that differ from the format's defaults.
    """

    models: tuple[str, ...] = ()
    dialect: Dialect
    capabilities: Mapping[str, Any]


@attrs.frozen(kw_only=True, eq=False)
class ChatPreset(Preset):
    """The description of one service on this format.

    Attributes:
        profile: the service's default quirks and capabilities.
        profiles: profiles of models that differ, merged over `profile`; the first whose patterns match a model applies.
        rules: names of the format's rule files that apply to the service (`provider.wire_rules`).
        system_one: the service may answer decisions (`decisions`); otherwise the model is asked in a conversation.
    """

    profile: PresetProfile
    profiles: tuple[PresetProfile, ...] = ()
    rules: tuple[str, ...] = (FORMAT_RULES, PAIRING_RULES)
    system_one: bool = False

    def profile_of(self, model: str) -> PresetProfile:
        """Return the profile of a model, by the name that requests use."""
        for profile in self.profiles:
            if any(fnmatchcase(model, pattern) for pattern in profile.models):
                return profile
        return self.profile


def read_dialect_field(table: PresetTable, name: str, hint: Any) -> Any:
    """Convert a TOML value to the type of a `Dialect` field."""
    value = table.fields[name]
    container = get_origin(hint)
    words = {word for argument in (hint, *get_args(hint)) for word in get_args(argument) if isinstance(word, str)}
    if container in (tuple, frozenset) or (isinstance(value, list)):
        items = value if isinstance(value, list) else [value]
        if words and not set(items) <= words:
            raise table.error(name, f"may only contain {', '.join(sorted(words))}; got {value!r}")
        return frozenset(items) if container is frozenset else tuple(items)
    if words and value not in words:
        raise table.error(name, f"must be one of {', '.join(sorted(words))}; got {value!r}")
    if hint in (bool, str):
        return table.read(name, hint, hint())
    return value


def read_preset(key: str, fields: Mapping[str, Any], models: str | None = None) -> ChatPreset:
    """Build a preset from a table.

    Args:
        key: provider key.
        fields: the fields of ChatPreset. `dialect` and `capabilities` are inner tables, `profiles` is a list of tables
            with `models`, `dialect` and `capabilities`, and `models` a list of catalogue entries (in a shipped preset,
            the name of a file).
        models: content of that file.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type; the message has the preset and the field.
    """
    table = PresetTable(key, {"rules": [FORMAT_RULES, PAIRING_RULES], **fields})
    profile = _profile(table)
    more = {"profile": profile, "profiles": _profiles(table, profile), "rules": _rules(table)}
    more["system_one"] = table.read("system_one", bool, False)
    return ChatPreset.read(table, models, _OWN, **more)


def _rules(table: PresetTable) -> tuple[str, ...]:
    names = table.strings("rules")
    for name in names:
        if not has_wire_rules(name):
            raise table.error("rules", f"contains {name!r}, which is not a rule file of the format")
    return names


def _profiles(table: PresetTable, base: PresetProfile) -> tuple[PresetProfile, ...]:
    given = table.fields.get("profiles", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise table.error("profiles", f"must be a list of tables; got {given!r}")
    found = []
    for at, one in enumerate(given):
        inner = PresetTable(table.key, one, f"profiles[{at}].")
        inner.check_names(_PROFILE)
        names = inner.strings("models")
        if not names:
            raise inner.error("models", "must name at least one model")
        found.append(attrs.evolve(_profile(inner, base), models=names))
    return tuple(found)


def _profile(table: PresetTable, base: PresetProfile | None = None) -> PresetProfile:
    capabilities, fields = table.capabilities(), table.table("dialect")
    fields.check_names(_DIALECT)
    hints = get_type_hints(Dialect)
    changes = {name: read_dialect_field(fields, name, hints[name]) for name in fields.fields}
    if base is None:
        return PresetProfile(dialect=Dialect(**changes), capabilities=capabilities)
    return PresetProfile(
        dialect=attrs.evolve(base.dialect, **changes), capabilities={**base.capabilities, **capabilities}
    )


class CompatibleProvider(ChatProvider):
    """The provider that a preset describes."""

    def __init__(self, preset: ChatPreset) -> None:
        super().__init__(preset.key, self.dialect_of)
        self.preset = preset
        self._capabilities: dict[str, ModelCapabilities] = {}
        self._profiles: dict[str, PresetProfile] = {}

    def __repr__(self) -> str:
        return f"<CompatibleProvider {self.preset.key!r}>"

    def _profile(self, model: str) -> PresetProfile:
        found = self._profiles.get(model)
        if found is None:
            found = self._profiles[model] = self.preset.profile_of(model)
        return found

    def dialect_of(self, model: str) -> Dialect:
        """Return the dialect of a model's profile. The same model gets the same object."""
        return self._profile(model).dialect

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        """Return the capabilities of a model. The same model gets the same object."""
        found = self._capabilities.get(model)
        if found is None:
            info, profile = find_model(self.preset.models, model), self._profile(model)
            found = self._capabilities[model] = capabilities_of(profile.dialect, profile.capabilities, info)
        return found

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """Return the preset's base URL, with bearer authentication if there is a key."""
        return self.preset.connection(settings, endpoints={API: ENDPOINT})

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        """Return the preset's catalogue."""
        return self.preset.models

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Build the request that lists the service's models, or asks for decisions (`decide`)."""
        if kind != "decide" or not self.preset.system_one:
            return list_models_request(kind)
        from interlingua_chat_completions.decisions import decision_request  # noqa: PLC0415  few requests decide

        return decision_request(arguments["request"], arguments["questions"])

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the list of models, or decisions."""
        if kind != "decide":
            return from_wire_model_list(kind, response)
        from interlingua_chat_completions.decisions import read_decisions  # noqa: PLC0415  few requests decide

        return read_decisions(response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        """Return the rule files about requests that the service rejects."""
        return wire_rules(*self.preset.rules)


def provider_from_preset(key: str, table: Mapping[str, Any]) -> CompatibleProvider:
    """Make a provider from a user's table (entry point of the format).

    Raises:
        PluginError: a field is unknown, missing or of the wrong type; the message has the preset and the field.
    """
    return CompatibleProvider(read_preset(key, table))


def _shipped(key: str) -> CompatibleProvider:
    table = tomllib.loads((_HERE / "presets" / f"{key}.toml").read_text(encoding="utf-8"))
    models = table.get("models")
    text = (_HERE / "models" / models).read_text(encoding="utf-8") if isinstance(models, str) else None
    return CompatibleProvider(read_preset(key, table, text))


def __getattr__(name: str) -> CompatibleProvider:
    if name.startswith("_") or not (_HERE / "presets" / f"{name}.toml").is_file():
        raise AttributeError(f"module {__name__!r} has no preset {name!r}")
    provider = globals()[name] = _shipped(name)
    return provider

"""Presets: tables that describe one service each, shipped in `presets/*.toml` or written by users; their provider."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from interlingua.errors import DecodeError, PluginError
from interlingua.plugins import (
    Connection,
    ConnectionSettings,
    ModelInfo,
    WireRequest,
    WireResponse,
    bearer_auth,
    dumps,
    find_model,
    hookimpl,
    load_catalogue,
)
from interlingua.types import ModelCapabilities, RequestOptions
from interlingua_chat_completions.dialect import API, CAPABILITY_FIELDS, ENDPOINT, Dialect, capabilities_of
from interlingua_chat_completions.provider import (
    FORMAT_RULES,
    PAIRING_RULES,
    ChatProvider,
    from_wire_model_list,
    has_wire_rules,
    list_models_request,
    wire_rules,
)

_KEYS = frozenset(
    (
        "format", "base_url", "base_url_env", "key_env", "key_required", "self_hosted", "hosts", "models", "dialect",
        "capabilities", "rules", "profiles",
    )
)  # fmt: skip
_PROFILE = frozenset(("models", "dialect", "capabilities"))
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
class Preset:
    """The description of one service.

    Attributes:
        key: provider key.
        base_url: the URL without the `/chat/completions` at its end.
        base_url_env: environment variable that overrides `base_url`, for servers without a fixed address.
        key_env: environment variables that may hold the key, in order of precedence.
        key_required: False if the service works without a key.
        self_hosted: True if users run the server on their own machines, so that its models cost 0.
        hosts: host names, with a port if only the port identifies the service, that identify its recorded traffic.
        profile: the service's default quirks and capabilities.
        profiles: profiles of models that differ, merged over `profile`; the first whose patterns match a model applies.
        models: the catalogue.
        rules: names of the format's rule files that apply to the service (`provider.wire_rules`).
    """

    key: str
    base_url: str
    base_url_env: str | None = None
    key_env: tuple[str, ...] = ()
    key_required: bool = True
    self_hosted: bool = False
    hosts: tuple[str, ...] = ()
    profile: PresetProfile
    profiles: tuple[PresetProfile, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    rules: tuple[str, ...] = (FORMAT_RULES, PAIRING_RULES)

    def profile_of(self, model: str) -> PresetProfile:
        """Return the profile of a model, by the name that requests use."""
        for profile in self.profiles:
            if any(fnmatchcase(model, pattern) for pattern in profile.models):
                return profile
        return self.profile


def read_dialect_field(key: str, name: str, value: Any, hint: Any) -> Any:
    """Convert a TOML value to the type of a `Dialect` field."""
    container = get_origin(hint)
    words = {word for argument in (hint, *get_args(hint)) for word in get_args(argument) if isinstance(word, str)}
    if container in (tuple, frozenset) or (isinstance(value, list)):
        items = value if isinstance(value, list) else [value]
        if words and not set(items) <= words:
            raise preset_error(key, name, f"may only contain {', '.join(sorted(words))}; got {value!r}")
        return frozenset(items) if container is frozenset else tuple(items)
    if words and value not in words:
        raise preset_error(key, name, f"must be one of {', '.join(sorted(words))}; got {value!r}")
    if hint in (bool, str):
        return check_type(key, name, value, hint)
    return value


def check_names(key: str, prefix: str, table: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    """Raise an error if the table has an unknown field."""
    unknown = sorted(set(table) - names)
    if unknown:
        raise preset_error(
            key, prefix + unknown[0], f"is not a field of a preset; the fields are {', '.join(sorted(names))}"
        )


def read_table(key: str, name: str, table: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    """Return an inner table, empty if it is missing."""
    value = table.get(name) or {}
    if not isinstance(value, Mapping):
        raise preset_error(key, prefix + name, f"must be a table; got {value!r}")
    return value


def read_string(key: str, name: str, value: Any) -> str:
    """Return a required string field."""
    if value is None:
        raise preset_error(key, name, "is missing")
    found: str = check_type(key, name, value, str)
    return found


def read_strings(key: str, name: str, value: Any) -> tuple[str, ...]:
    """Return a list of strings; a single string counts as a list of one."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise preset_error(key, name, f"must be a list of strings; got {value!r}")
    return tuple(items)


def check_type(key: str, name: str, value: Any, kind: type) -> Any:
    """Return the value if its type is exactly `kind` (so that True is not an int)."""
    if type(value) is not kind:
        raise preset_error(key, name, f"must be a {kind.__name__}; got {value!r}")
    return value


def preset_error(key: str, name: str, why: str) -> PluginError:
    """Return an error that names the preset and the field."""
    return PluginError(f"preset {key!r}: {name} {why}", provider=key)


def read_preset(key: str, table: Mapping[str, Any], models: str | None = None) -> Preset:
    """Build a preset from a table.

    Args:
        key: provider key.
        table: the fields of Preset. `dialect` and `capabilities` are inner tables, `profiles` is a list of tables with
            `models`, `dialect` and `capabilities`, and `models` a list of catalogue entries (in a shipped preset, the
            name of a file).
        models: content of that file.

    Raises:
        PluginError: a field is unknown, missing or of the wrong type; the message names the preset and the field.
    """
    check_names(key, "", table, _KEYS)
    base_url = read_string(key, "base_url", table.get("base_url"))
    if not base_url.startswith(("http://", "https://")):
        raise preset_error(key, "base_url", f"must start with http:// or https://; got {base_url!r}")
    profile = _profile(key, "", table)
    variable = table.get("base_url_env")
    return Preset(
        key=key,
        base_url=base_url,
        base_url_env=None if variable is None else read_string(key, "base_url_env", variable),
        key_env=read_strings(key, "key_env", table.get("key_env", ())),
        self_hosted=check_type(key, "self_hosted", table.get("self_hosted", False), bool),
        key_required=check_type(key, "key_required", table.get("key_required", bool(table.get("key_env"))), bool),
        hosts=read_strings(key, "hosts", table.get("hosts", ())),
        profile=profile,
        profiles=_profiles(key, table, profile),
        models=_models(key, table.get("models"), models),
        rules=_rules(key, table.get("rules", [FORMAT_RULES, PAIRING_RULES])),
    )


def _rules(key: str, given: Any) -> tuple[str, ...]:
    names = read_strings(key, "rules", given)
    for name in names:
        if not has_wire_rules(name):
            raise preset_error(key, "rules", f"contains {name!r}, which is not a rule file of the format")
    return names


def _profiles(key: str, table: Mapping[str, Any], base: PresetProfile) -> tuple[PresetProfile, ...]:
    given = table.get("profiles", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise preset_error(key, "profiles", f"must be a list of tables; got {given!r}")
    found = []
    for at, one in enumerate(given):
        prefix = f"profiles[{at}]."
        check_names(key, prefix, one, _PROFILE)
        names = read_strings(key, f"{prefix}models", one.get("models", ()))
        if not names:
            raise preset_error(key, f"{prefix}models", "must name at least one model")
        found.append(attrs.evolve(_profile(key, prefix, one, base), models=names))
    return tuple(found)


def _profile(key: str, prefix: str, table: Mapping[str, Any], base: PresetProfile | None = None) -> PresetProfile:
    capabilities = read_table(key, "capabilities", table, prefix)
    check_names(key, f"{prefix}capabilities.", capabilities, CAPABILITY_FIELDS - {"api", "assumed"})
    fields = read_table(key, "dialect", table, prefix)
    check_names(key, f"{prefix}dialect.", fields, _DIALECT)
    hints = get_type_hints(Dialect)
    changes = {
        name: read_dialect_field(key, f"{prefix}dialect.{name}", value, hints[name]) for name, value in fields.items()
    }
    if base is None:
        return PresetProfile(dialect=Dialect(**changes), capabilities=dict(capabilities))
    return PresetProfile(
        dialect=attrs.evolve(base.dialect, **changes), capabilities={**base.capabilities, **capabilities}
    )


def _models(key: str, given: Any, text: str | None) -> tuple[ModelInfo, ...]:
    if given is None:
        return ()
    if text is None and not isinstance(given, list):
        raise preset_error(key, "models", "must be a list of models")
    try:
        return load_catalogue(text if text is not None else dumps({"models": given}))
    except DecodeError as error:
        raise preset_error(key, "models", str(error)) from error


class CompatibleProvider(ChatProvider):
    """The provider that a preset describes."""

    def __init__(self, preset: Preset) -> None:
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
        preset = self.preset
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in preset.key_env if environ.get(name)), None)
        base_url = settings.base_url or (preset.base_url_env and environ.get(preset.base_url_env)) or preset.base_url
        return Connection(
            base_url=base_url.rstrip("/"),
            auth=bearer_auth(key),
            env_vars=preset.key_env,
            has_key=bool(key) or not preset.key_required,
            self_hosted=".*" if preset.self_hosted else "",
            hosts=preset.hosts,
            endpoints={API: ENDPOINT},
        )

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        """Return the preset's catalogue."""
        return self.preset.models

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Build the request that lists the service's models."""
        return list_models_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the list of models."""
        return from_wire_model_list(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        """Return the rule files about requests that the service rejects."""
        return wire_rules(*self.preset.rules)


def provider_from_preset(key: str, table: Mapping[str, Any]) -> CompatibleProvider:
    """Make a provider from a user's table (entry point of the format).

    Raises:
        PluginError: a field is unknown, missing or of the wrong type; the message names the preset and the field.
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

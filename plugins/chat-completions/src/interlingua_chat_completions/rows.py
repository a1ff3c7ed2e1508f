"""Services described by a table: the rows shipped in `rows/*.toml`, a user's own, and the provider made of one."""

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
class Profile:
    """What holds for some models of a service.

    Attributes:
        models: patterns of model names (`*`, `?`, `[...]`); none for the profile of all the others.
        dialect: the service's quirks with these models.
        capabilities: capability fields that differ from the format's own.
    """

    models: tuple[str, ...] = ()
    dialect: Dialect
    capabilities: Mapping[str, Any]


@attrs.frozen(kw_only=True, eq=False)
class Row:
    """One service.

    Attributes:
        key: provider key.
        base_url: up to, not with, `/chat/completions`.
        base_url_env: environment variable that overrides it, for servers without a fixed place.
        key_env: environment variables that may hold the key, in order.
        key_required: False where the service works without a key.
        self_hosted: True where whoever runs the server has it on machines of their own: its models cost 0.
        hosts: host names (with a port where it tells the service) that recorded traffic is recognised by.
        profile: the service's quirks and capabilities.
        profiles: the same for models that differ, each laid over the row's own; the first that names a model holds.
        models: the catalogue.
        rules: names of the format's rule files that hold for the service (`provider.wire_rules`).
    """

    key: str
    base_url: str
    base_url_env: str | None = None
    key_env: tuple[str, ...] = ()
    key_required: bool = True
    self_hosted: bool = False
    hosts: tuple[str, ...] = ()
    profile: Profile
    profiles: tuple[Profile, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    rules: tuple[str, ...] = (FORMAT_RULES, PAIRING_RULES)

    def profile_of(self, model: str) -> Profile:
        """Return what holds for a model, by the name it is requested by."""
        for profile in self.profiles:
            if any(fnmatchcase(model, pattern) for pattern in profile.models):
                return profile
        return self.profile


def read_dialect_field(key: str, name: str, value: Any, hint: Any) -> Any:
    """Return a TOML value as the dialect's field wants it; the fields use few types."""
    container = get_origin(hint)
    words = {word for argument in (hint, *get_args(hint)) for word in get_args(argument) if isinstance(word, str)}
    if container in (tuple, frozenset) or (isinstance(value, list)):
        items = value if isinstance(value, list) else [value]
        if words and not set(items) <= words:
            raise row_error(key, name, f"may hold {', '.join(sorted(words))}, not {value!r}")
        return frozenset(items) if container is frozenset else tuple(items)
    if words and value not in words:
        raise row_error(key, name, f"must be one of {', '.join(sorted(words))}, not {value!r}")
    if hint in (bool, str):
        return check_type(key, name, value, hint)
    return value


def check_names(key: str, prefix: str, table: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    """Refuse a field that there is not."""
    unknown = sorted(set(table) - names)
    if unknown:
        raise row_error(key, prefix + unknown[0], f"is no field of a row; there are {', '.join(sorted(names))}")


def read_table(key: str, name: str, table: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    """Return an inner table; one that is missing is empty."""
    value = table.get(name) or {}
    if not isinstance(value, Mapping):
        raise row_error(key, prefix + name, f"must be a table, not {value!r}")
    return value


def read_string(key: str, name: str, value: Any) -> str:
    """Return a field that has to be a string."""
    if value is None:
        raise row_error(key, name, "is missing")
    found: str = check_type(key, name, value, str)
    return found


def read_strings(key: str, name: str, value: Any) -> tuple[str, ...]:
    """Return a list of strings; a single one is a list too."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise row_error(key, name, f"must be a list of strings, not {value!r}")
    return tuple(items)


def check_type(key: str, name: str, value: Any, kind: type) -> Any:
    """Return a value of exactly this type."""
    if type(value) is not kind:
        raise row_error(key, name, f"must be a {kind.__name__}, not {value!r}")
    return value


def row_error(key: str, name: str, why: str) -> PluginError:
    """Return the error that names the row and the field."""
    return PluginError(f"row {key!r}: {name} {why}", provider=key)


def read_row(key: str, table: Mapping[str, Any], models: str | None = None) -> Row:
    """Read a table into a row.

    Args:
        key: provider key.
        table: the fields of Row; `dialect` and `capabilities` are tables of their own, `profiles` a list of tables with
            `models`, `dialect` and `capabilities`, `models` a list of catalogue entries (or, in a shipped row, the
            name of a file).
        models: text of that file.

    Raises:
        PluginError: a field is unknown, missing or of the wrong kind; the message names row and field.
    """
    check_names(key, "", table, _KEYS)
    base_url = read_string(key, "base_url", table.get("base_url"))
    if not base_url.startswith(("http://", "https://")):
        raise row_error(key, "base_url", f"must start with http:// or https://, not {base_url!r}")
    profile = _profile(key, "", table)
    variable = table.get("base_url_env")
    return Row(
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
            raise row_error(key, "rules", f"names no rule file of the format: {name!r}")
    return names


def _profiles(key: str, table: Mapping[str, Any], base: Profile) -> tuple[Profile, ...]:
    given = table.get("profiles", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise row_error(key, "profiles", f"must be a list of tables, not {given!r}")
    found = []
    for at, one in enumerate(given):
        prefix = f"profiles[{at}]."
        check_names(key, prefix, one, _PROFILE)
        names = read_strings(key, f"{prefix}models", one.get("models", ()))
        if not names:
            raise row_error(key, f"{prefix}models", "must name at least one model")
        found.append(attrs.evolve(_profile(key, prefix, one, base), models=names))
    return tuple(found)


def _profile(key: str, prefix: str, table: Mapping[str, Any], base: Profile | None = None) -> Profile:
    capabilities = read_table(key, "capabilities", table, prefix)
    check_names(key, f"{prefix}capabilities.", capabilities, CAPABILITY_FIELDS - {"api", "assumed"})
    fields = read_table(key, "dialect", table, prefix)
    check_names(key, f"{prefix}dialect.", fields, _DIALECT)
    hints = get_type_hints(Dialect)
    changes = {
        name: read_dialect_field(key, f"{prefix}dialect.{name}", value, hints[name]) for name, value in fields.items()
    }
    if base is None:
        return Profile(dialect=Dialect(**changes), capabilities=dict(capabilities))
    return Profile(dialect=attrs.evolve(base.dialect, **changes), capabilities={**base.capabilities, **capabilities})


def _models(key: str, given: Any, text: str | None) -> tuple[ModelInfo, ...]:
    if given is None:
        return ()
    if text is None and not isinstance(given, list):
        raise row_error(key, "models", "must be a list of models")
    try:
        return load_catalogue(text if text is not None else dumps({"models": given}))
    except DecodeError as error:
        raise row_error(key, "models", str(error)) from error


class CompatibleProvider(ChatProvider):
    """One row as a provider."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.key, self.dialect_of)
        self.row = row
        self._capabilities: dict[str, ModelCapabilities] = {}
        self._profiles: dict[str, Profile] = {}

    def __repr__(self) -> str:
        return f"<CompatibleProvider {self.row.key!r}>"

    def _profile(self, model: str) -> Profile:
        found = self._profiles.get(model)
        if found is None:
            found = self._profiles[model] = self.row.profile_of(model)
        return found

    def dialect_of(self, model: str) -> Dialect:
        """Return the dialect of a model's profile; the same object each time."""
        return self._profile(model).dialect

    @hookimpl
    def capabilities(self, model: str, options: RequestOptions | None) -> ModelCapabilities:
        """The row's declaration for this model; the same object each time."""
        found = self._capabilities.get(model)
        if found is None:
            info, profile = find_model(self.row.models, model), self._profile(model)
            found = self._capabilities[model] = capabilities_of(profile.dialect, profile.capabilities, info)
        return found

    @hookimpl
    def connection(self, settings: ConnectionSettings) -> Connection:
        """The row's host with a bearer key, where there is one."""
        row = self.row
        environ = settings.environ
        key = settings.api_key or next((environ[name] for name in row.key_env if environ.get(name)), None)
        base_url = settings.base_url or (row.base_url_env and environ.get(row.base_url_env)) or row.base_url
        return Connection(
            base_url=base_url.rstrip("/"),
            auth=bearer_auth(key),
            env_vars=row.key_env,
            has_key=bool(key) or not row.key_required,
            self_hosted=".*" if row.self_hosted else "",
            hosts=row.hosts,
            endpoints={API: ENDPOINT},
        )

    @hookimpl
    def models(self) -> Sequence[ModelInfo]:
        """The row's catalogue."""
        return self.row.models

    @hookimpl
    def auxiliary_request(self, kind: str, arguments: Mapping[str, Any]) -> WireRequest | None:
        """Offer `models`."""
        return list_models_request(kind)

    @hookimpl
    def from_wire_auxiliary(self, kind: str, response: WireResponse) -> Any:
        """Read the list."""
        return from_wire_model_list(kind, response)

    @hookimpl
    def wire_rules(self) -> Sequence[str]:
        """What the row's service refuses."""
        return wire_rules(*self.row.rules)


def provider_from_row(key: str, table: Mapping[str, Any]) -> CompatibleProvider:
    """Make a provider of a user's table (entry point of the format).

    Raises:
        PluginError: a field is unknown, missing or of the wrong kind; the message names row and field.
    """
    return CompatibleProvider(read_row(key, table))


def _shipped(key: str) -> CompatibleProvider:
    table = tomllib.loads((_HERE / "rows" / f"{key}.toml").read_text(encoding="utf-8"))
    models = table.get("models")
    text = (_HERE / "models" / models).read_text(encoding="utf-8") if isinstance(models, str) else None
    return CompatibleProvider(read_row(key, table, text))


def __getattr__(name: str) -> CompatibleProvider:
    if name.startswith("_") or not (_HERE / "rows" / f"{name}.toml").is_file():
        raise AttributeError(f"module {__name__!r} has no row {name!r}")
    provider = globals()[name] = _shipped(name)
    return provider

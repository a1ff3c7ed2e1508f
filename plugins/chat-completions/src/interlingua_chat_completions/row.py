"""A row: one compatible service as a table, shipped in TOML or written by a user, checked field by field.

Never reaches the network; a mistake names the row and the field, for users write these by hand.
`rows` and the row-driven providers come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from interlingua.catalogue import ModelInfo, load_catalogue
from interlingua.errors import DecodeError, PluginError
from interlingua.jsontext import dumps
from interlingua_chat_completions.capabilities import FIELDS
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.rules import FORMAT, PAIRING, known

_KEYS = frozenset(
    (
        "format", "label", "base_url", "base_url_env", "key_env", "key_required", "hosts", "models", "dialect",
        "capabilities", "rules", "profiles",
    )
)  # fmt: skip
_PROFILE = frozenset(("models", "dialect", "capabilities"))
_DIALECT = {field.name for field in attrs.fields(Dialect)}


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
        label: the service's name for people.
        base_url: up to, not with, `/chat/completions`.
        base_url_env: environment variable that overrides it, for servers without a fixed place.
        key_env: environment variables that may hold the key, in order.
        key_required: False where the service works without a key.
        hosts: host names (with a port where it tells the service) that recorded traffic is recognised by.
        profile: the service's quirks and capabilities.
        profiles: the same for models that differ, each laid over the row's own; the first that names a model holds.
        models: the catalogue.
        rules: names of the format's rule files that hold for the service (`rules`).
    """

    key: str
    label: str
    base_url: str
    base_url_env: str | None = None
    key_env: tuple[str, ...] = ()
    key_required: bool = True
    hosts: tuple[str, ...] = ()
    profile: Profile
    profiles: tuple[Profile, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    rules: tuple[str, ...] = (FORMAT, PAIRING)

    def profile_of(self, model: str) -> Profile:
        """Return what holds for a model, by the name it is asked for."""
        for profile in self.profiles:
            if any(fnmatchcase(model, pattern) for pattern in profile.models):
                return profile
        return self.profile


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
    _known(key, "", table, _KEYS)
    base_url = _string(key, "base_url", table.get("base_url"))
    if not base_url.startswith(("http://", "https://")):
        raise _wrong(key, "base_url", f"must start with http:// or https://, not {base_url!r}")
    profile = _profile(key, "", table)
    variable = table.get("base_url_env")
    return Row(
        key=key,
        label=_string(key, "label", table.get("label", key)),
        base_url=base_url,
        base_url_env=None if variable is None else _string(key, "base_url_env", variable),
        key_env=_strings(key, "key_env", table.get("key_env", ())),
        key_required=_checked(key, "key_required", table.get("key_required", bool(table.get("key_env"))), bool),
        hosts=_strings(key, "hosts", table.get("hosts", ())),
        profile=profile,
        profiles=_profiles(key, table, profile),
        models=_models(key, table.get("models"), models),
        rules=_rules(key, table.get("rules", [FORMAT, PAIRING])),
    )


def _rules(key: str, given: Any) -> tuple[str, ...]:
    names = _strings(key, "rules", given)
    for name in names:
        if not known(name):
            raise _wrong(key, "rules", f"names no rule file of the format: {name!r}")
    return names


def _profiles(key: str, table: Mapping[str, Any], base: Profile) -> tuple[Profile, ...]:
    given = table.get("profiles", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise _wrong(key, "profiles", f"must be a list of tables, not {given!r}")
    found = []
    for at, one in enumerate(given):
        prefix = f"profiles[{at}]."
        _known(key, prefix, one, _PROFILE)
        names = _strings(key, f"{prefix}models", one.get("models", ()))
        if not names:
            raise _wrong(key, f"{prefix}models", "must name at least one model")
        found.append(attrs.evolve(_profile(key, prefix, one, base), models=names))
    return tuple(found)


def _profile(key: str, prefix: str, table: Mapping[str, Any], base: Profile | None = None) -> Profile:
    capabilities = _table(key, "capabilities", table, prefix)
    _known(key, f"{prefix}capabilities.", capabilities, FIELDS - {"api", "assumed"})
    fields = _table(key, "dialect", table, prefix)
    _known(key, f"{prefix}dialect.", fields, _DIALECT)
    hints = get_type_hints(Dialect)
    changes = {name: _fitted(key, f"{prefix}dialect.{name}", value, hints[name]) for name, value in fields.items()}
    if base is None:
        return Profile(dialect=Dialect(**changes), capabilities=dict(capabilities))
    return Profile(dialect=attrs.evolve(base.dialect, **changes), capabilities={**base.capabilities, **capabilities})


def _fitted(key: str, name: str, value: Any, hint: Any) -> Any:
    """Return a TOML value as the dialect's field wants it; the fields use few types."""
    container = get_origin(hint)
    words = {word for argument in (hint, *get_args(hint)) for word in get_args(argument) if isinstance(word, str)}
    if container in (tuple, frozenset) or (isinstance(value, list)):
        items = value if isinstance(value, list) else [value]
        if words and not set(items) <= words:
            raise _wrong(key, name, f"may hold {', '.join(sorted(words))}, not {value!r}")
        return frozenset(items) if container is frozenset else tuple(items)
    if words and value not in words:
        raise _wrong(key, name, f"must be one of {', '.join(sorted(words))}, not {value!r}")
    if hint in (bool, str):
        return _checked(key, name, value, hint)
    return value


def _models(key: str, given: Any, text: str | None) -> tuple[ModelInfo, ...]:
    if given is None:
        return ()
    if text is None and not isinstance(given, list):
        raise _wrong(key, "models", "must be a list of models")
    try:
        return load_catalogue(text if text is not None else dumps({"models": given}))
    except DecodeError as error:
        raise _wrong(key, "models", str(error)) from error


def _known(key: str, prefix: str, table: Mapping[str, Any], names: set[str] | frozenset[str]) -> None:
    unknown = sorted(set(table) - names)
    if unknown:
        raise _wrong(key, prefix + unknown[0], f"is no field of a row; there are {', '.join(sorted(names))}")


def _table(key: str, name: str, table: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    value = table.get(name) or {}
    if not isinstance(value, Mapping):
        raise _wrong(key, prefix + name, f"must be a table, not {value!r}")
    return value


def _string(key: str, name: str, value: Any) -> str:
    if value is None:
        raise _wrong(key, name, "is missing")
    found: str = _checked(key, name, value, str)
    return found


def _strings(key: str, name: str, value: Any) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise _wrong(key, name, f"must be a list of strings, not {value!r}")
    return tuple(items)


def _checked(key: str, name: str, value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _wrong(key, name, f"must be a {kind.__name__}, not {value!r}")
    return value


def _wrong(key: str, name: str, why: str) -> PluginError:
    return PluginError(f"row {key!r}: {name} {why}", provider=key)

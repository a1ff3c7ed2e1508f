"""A table to a row: shipped in TOML or written by a user, checked field by field.

Never reaches the network and never opens a file. `rows` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import attrs

from interlingua.catalogue import ModelInfo, load_catalogue
from interlingua.errors import DecodeError
from interlingua.json import dumps
from interlingua_chat_completions.capabilities import FIELDS
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.row import Profile, Row
from interlingua_chat_completions.row_checks import checked, fitted, known_only, string, strings, table_of, wrong
from interlingua_chat_completions.rules import FORMAT, PAIRING, known

_KEYS = frozenset(
    (
        "format", "base_url", "base_url_env", "key_env", "key_required", "hosts", "models", "dialect",
        "capabilities", "rules", "profiles",
    )
)  # fmt: skip
_PROFILE = frozenset(("models", "dialect", "capabilities"))
_DIALECT = {field.name for field in attrs.fields(Dialect)}


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
    known_only(key, "", table, _KEYS)
    base_url = string(key, "base_url", table.get("base_url"))
    if not base_url.startswith(("http://", "https://")):
        raise wrong(key, "base_url", f"must start with http:// or https://, not {base_url!r}")
    profile = _profile(key, "", table)
    variable = table.get("base_url_env")
    return Row(
        key=key,
        base_url=base_url,
        base_url_env=None if variable is None else string(key, "base_url_env", variable),
        key_env=strings(key, "key_env", table.get("key_env", ())),
        key_required=checked(key, "key_required", table.get("key_required", bool(table.get("key_env"))), bool),
        hosts=strings(key, "hosts", table.get("hosts", ())),
        profile=profile,
        profiles=_profiles(key, table, profile),
        models=_models(key, table.get("models"), models),
        rules=_rules(key, table.get("rules", [FORMAT, PAIRING])),
    )


def _rules(key: str, given: Any) -> tuple[str, ...]:
    names = strings(key, "rules", given)
    for name in names:
        if not known(name):
            raise wrong(key, "rules", f"names no rule file of the format: {name!r}")
    return names


def _profiles(key: str, table: Mapping[str, Any], base: Profile) -> tuple[Profile, ...]:
    given = table.get("profiles", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise wrong(key, "profiles", f"must be a list of tables, not {given!r}")
    found = []
    for at, one in enumerate(given):
        prefix = f"profiles[{at}]."
        known_only(key, prefix, one, _PROFILE)
        names = strings(key, f"{prefix}models", one.get("models", ()))
        if not names:
            raise wrong(key, f"{prefix}models", "must name at least one model")
        found.append(attrs.evolve(_profile(key, prefix, one, base), models=names))
    return tuple(found)


def _profile(key: str, prefix: str, table: Mapping[str, Any], base: Profile | None = None) -> Profile:
    capabilities = table_of(key, "capabilities", table, prefix)
    known_only(key, f"{prefix}capabilities.", capabilities, FIELDS - {"api", "assumed"})
    fields = table_of(key, "dialect", table, prefix)
    known_only(key, f"{prefix}dialect.", fields, _DIALECT)
    hints = get_type_hints(Dialect)
    changes = {name: fitted(key, f"{prefix}dialect.{name}", value, hints[name]) for name, value in fields.items()}
    if base is None:
        return Profile(dialect=Dialect(**changes), capabilities=dict(capabilities))
    return Profile(dialect=attrs.evolve(base.dialect, **changes), capabilities={**base.capabilities, **capabilities})


def _models(key: str, given: Any, text: str | None) -> tuple[ModelInfo, ...]:
    if given is None:
        return ()
    if text is None and not isinstance(given, list):
        raise wrong(key, "models", "must be a list of models")
    try:
        return load_catalogue(text if text is not None else dumps({"models": given}))
    except DecodeError as error:
        raise wrong(key, "models", str(error)) from error

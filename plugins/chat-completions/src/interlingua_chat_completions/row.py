"""A row: one compatible service as values, with what holds for some of its models only.

Never reads a table and never checks one. `row_table` makes rows of tables; the row-driven providers come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import attrs

from interlingua.catalogue import ModelInfo
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.rules import FORMAT, PAIRING


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
        hosts: host names (with a port where it tells the service) that recorded traffic is recognised by.
        profile: the service's quirks and capabilities.
        profiles: the same for models that differ, each laid over the row's own; the first that names a model holds.
        models: the catalogue.
        rules: names of the format's rule files that hold for the service (`rules`).
    """

    key: str
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

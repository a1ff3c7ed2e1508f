"""The directory of plugins: which distribution brings a provider, a command or a library.

`directory.json` beside this module holds a row for each listed distribution; docs/plugins/directory.md is made from it.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import attrs

Tier = Literal["ours", "verified", "community"]


@attrs.frozen(kw_only=True)
class ListedDistribution:
    """One row of the directory.

    Attributes:
        distribution: its name on the package index.
        summary: description in one sentence.
        tier: `ours`; `verified` (its contract report was made again by this project); `community` (by its author).
        version: the version that the row describes.
        contract_version: the contract that its provider plugins are written for; None without a provider.
        keys: the providers that it brings.
        commands: the commands of `interlingua` that it brings; `chat.session` is the option `--session` of `chat`.
        requires: other listed distributions that it needs.
        url: address of its documentation.
        reports: provider key -> counts of `interlingua check KEY --json`: `passed`, `pass`, `fail`, `skip`, `deviates`.
    """

    distribution: str
    summary: str
    tier: Tier
    version: str
    contract_version: int | None = None
    keys: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    commands: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    requires: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    url: str = ""
    reports: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


@cache
def read_directory() -> tuple[ListedDistribution, ...]:
    """Return the rows of the directory, ours first."""
    text = files("interlingua_cli").joinpath("directory.json").read_text(encoding="utf-8")
    return tuple(ListedDistribution(**row) for row in json.loads(text))


def find_listed(name: str) -> ListedDistribution | None:
    """Return the distribution of this name, short name (`gateway`) or provider key (`groq`); None if unlisted."""
    rows = read_directory()
    full = f"interlingua-{name}"
    return next(
        (row for row in rows if row.distribution in (name, full)), next((row for row in rows if name in row.keys), None)
    )


def find_command(name: str) -> ListedDistribution | None:
    """Return the distribution that brings a command, or an option of one (`chat.session`); None if unlisted."""
    return next((row for row in read_directory() if name in row.commands), None)


def with_requirements(row: ListedDistribution) -> Iterator[ListedDistribution]:
    """Yield what a distribution needs of the directory, and then the distribution itself."""
    for name in row.requires:
        needed = find_listed(name)
        if needed is not None:
            yield from with_requirements(needed)
    yield row


def is_installed(distribution: str) -> bool:
    """Return True if a distribution is installed in this environment."""
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

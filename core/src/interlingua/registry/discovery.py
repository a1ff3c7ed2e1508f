"""What is installed: entry points turned into providers that could be loaded, without loading any.

Never imports a plugin and never decides between two distributions of one key: it refuses both.
The registry comes in.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from interlingua.errors import PluginError
from interlingua.hookspecs import PROJECT
from interlingua.provider import Shipped

PROVIDERS = f"{PROJECT}.providers"
ROWS = f"{PROJECT}.rows"
FORMATS = f"{PROJECT}.formats"
PLUGINS = f"{PROJECT}.plugins"

EntryPoints = Iterable[importlib.metadata.EntryPoint]


@attrs.frozen(kw_only=True)
class Found:
    """A provider that can be loaded.

    Attributes:
        key: provider key.
        kind: `row` (shipped), `provider` (a distribution of its own), `user row` or `given`; later wins over earlier.
        shipped: where it came from.
        load: imports and returns the plugin object.
    """

    key: str
    kind: str
    shipped: Shipped
    load: Callable[[], Any]


class Installed:
    """The entry points of this environment, or of a test's."""

    def __init__(self, entry_points: EntryPoints | None = None) -> None:
        self._given = None if entry_points is None else list(entry_points)

    def entries(self, group: str) -> list[importlib.metadata.EntryPoint]:
        """Return the entry points of one group."""
        if self._given is not None:
            return [entry for entry in self._given if entry.group == group]
        return list(importlib.metadata.entry_points(group=group))

    def providers(self) -> dict[str, Found]:
        """Return the shipped rows and, over them, the installed providers.

        Raises:
            PluginError: two distributions ship one key.
        """
        found: dict[str, Found] = {}
        for group, kind in ((ROWS, "row"), (PROVIDERS, "provider")):
            seen: dict[str, Shipped] = {}
            for entry in self.entries(group):
                shipped = shipped_by(entry)
                if seen.setdefault(entry.name, shipped) != shipped:
                    raise _duplicate(entry.name, seen[entry.name], shipped)
                found[entry.name] = Found(key=entry.name, kind=kind, shipped=shipped, load=entry.load)
        return found

    def from_row(self, key: str, row: Mapping[str, Any]) -> Any:
        """Make a provider object from a user's row, by the format distribution it names (the only one if unnamed).

        Raises:
            PluginError: no installed distribution reads that format.
        """
        wanted = row.get("format")
        for entry in self.entries(FORMATS):
            if wanted is None or entry.name == wanted:
                return entry.load()(key, {name: value for name, value in row.items() if name != "format"})
        raise PluginError(f"row {key!r} wants the format {wanted!r}, which no installed distribution reads")


def shipped_by(entry: importlib.metadata.EntryPoint) -> Shipped:
    """Say which distribution an entry point came from."""
    if entry.dist is None:
        return Shipped()
    return Shipped(distribution=entry.dist.name, version=entry.dist.version)


def _duplicate(key: str, first: Shipped, second: Shipped) -> PluginError:
    both = " and ".join(f"{one.distribution} {one.version}" for one in (first, second))
    return PluginError(f"two distributions ship the provider {key!r}: {both}; uninstall one", provider=key)

"""What is installed: entry points turned into providers that could be loaded, without loading any.

Never imports a plugin and never decides between two distributions of one key: it refuses both.
The registry comes in.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any

import attrs

from interlingua.errors import PluginError
from interlingua.hookspecs import PROJECT
from interlingua.provider import Shipped

PROVIDERS = f"{PROJECT}.providers"
ROWS = f"{PROJECT}.rows"
FORMATS = f"{PROJECT}.formats"
PLUGINS = f"{PROJECT}.plugins"
_GROUPS = (PROVIDERS, ROWS, FORMATS, PLUGINS)

EntryPoints = Iterable[importlib.metadata.EntryPoint]


@attrs.frozen(kw_only=True, slots=False)  # a cached property needs a place
class Found:
    """A provider that can be loaded.

    Attributes:
        key: provider key.
        kind: `row` (shipped), `provider` (a distribution of its own), `user row` or `given`; later wins over earlier.
        origin: says where it came from; `shipped` asks once, and late, for a distribution's metadata is slow to read.
        load: imports and returns the plugin object.
    """

    key: str
    kind: str
    origin: Callable[[], Shipped]
    load: Callable[[], Any]

    @cached_property
    def shipped(self) -> Shipped:
        """Where it came from."""
        return self.origin()


class Installed:
    """The entry points of this environment, or of a test's, looked for once: that reads a file of each distribution."""

    def __init__(self, entry_points: EntryPoints | None = None) -> None:
        self._entries = None if entry_points is None else list(entry_points)

    def entries(self, group: str) -> list[importlib.metadata.EntryPoint]:
        """Return the entry points of one of our groups."""
        if self._entries is None:
            every = importlib.metadata.entry_points()
            self._entries = [entry for ours in _GROUPS for entry in every.select(group=ours)]
        return [entry for entry in self._entries if entry.group == group]

    def providers(self) -> dict[str, Found]:
        """Return the shipped rows and, over them, the installed providers.

        Raises:
            PluginError: two distributions ship one key.
        """
        found: dict[str, Found] = {}
        for group, kind in ((ROWS, "row"), (PROVIDERS, "provider")):
            seen: dict[str, importlib.metadata.EntryPoint] = {}
            for entry in self.entries(group):
                first = seen.setdefault(entry.name, entry)
                if first is not entry and shipped_by(first) != shipped_by(entry):
                    raise _duplicate(entry.name, shipped_by(first), shipped_by(entry))
                origin = partial(shipped_by, entry)
                found[entry.name] = Found(key=entry.name, kind=kind, origin=origin, load=entry.load)
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
    metadata = entry.dist.metadata  # parsed each time it is asked for
    return Shipped(distribution=metadata["Name"], version=metadata["Version"])


def _duplicate(key: str, first: Shipped, second: Shipped) -> PluginError:
    both = " and ".join(f"{one.distribution} {one.version}" for one in (first, second))
    return PluginError(f"two distributions ship the provider {key!r}: {both}; uninstall one", provider=key)

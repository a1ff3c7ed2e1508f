"""What one run of the command line knows: extra plugins, the user's configuration, and what is made of them.

Never prints and never decides what a command does; what is made is made when first asked for.
The commands come in, through `click.pass_obj`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from interlingua.http.client import Client
    from interlingua.plugins.registry import Registry
    from interlingua_cli.config import Config


class State:
    """One run. Attributes `plugins` (module names) and `debug` are set while the line is read.

    A command sets `ledger_shown` and `models_told` (canonical ids) where it says itself what would be warned of.
    """

    def __init__(self) -> None:
        self.plugins: list[str] = []
        self.debug = False
        self.ledger_shown = False
        self.models_told: frozenset[str] = frozenset()
        self.environ: Mapping[str, str] = os.environ

    @cached_property
    def config(self) -> Config:
        """The user's configuration file, read."""
        from interlingua_cli.config import read_config  # noqa: PLC0415  help needs none of these

        return read_config(self.environ)

    @cached_property
    def registry(self) -> Registry:
        """The installed providers with the user's rows, aliases and plugins."""
        from interlingua.plugins.registry import Registry  # noqa: PLC0415

        registry = Registry(rows=self.config.rows, aliases=self.config.aliases)
        for entry in entry_points(group="interlingua.commands"):
            registry.load_plugin(entry.value)
        for name in self.plugins:
            registry.load_plugin(name)
        return registry

    @property
    def has_plugins(self) -> bool:
        """True when some plugin may have commands to add; found out without loading any."""
        named = self.plugins or self.environ.get("INTERLINGUA_PLUGINS")
        return bool(named or entry_points(group="interlingua.plugins") or entry_points(group="interlingua.commands"))

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The user's connection settings per provider, keys taken from the environment."""
        return self.config.settings(self.environ)

    def client(self, model: str | None = None, base_url: str | None = None) -> Client:
        """Make a client; `base_url` goes to the provider of `model`."""
        from interlingua.http.client import Client  # noqa: PLC0415

        return Client(model, base_url=base_url, registry=self.registry, settings=self.settings)


def _remember(ctx: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> None:
    ctx.ensure_object(State).plugins.extend(name for name in names if name)


plugin_option = click.option(
    "-p",
    "--plugin",
    metavar="MODULE",
    multiple=True,
    expose_value=False,
    is_eager=True,
    callback=_remember,
    help="Load this plugin module (or module:object; a provider as KEY=module:object) for the run; may be repeated.",
)


"""The option `-p`, for the whole line and for commands that are often run with one."""

"""The state of one run of the command line: loaded plugins, the user's configuration, the registry and clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from interlingua.http.client import Client
    from interlingua.plugins import Registry
    from interlingua_cli.config import Config


class State:
    """One run; commands get it by `click.pass_obj`.

    Attributes:
        plugins: names of the modules that `-p` loads.
        debug: errors are printed with their traceback.
        ledger_shown: the command prints the loss ledger itself, so its rows are no warnings.
        models_announced: canonical model ids of which the command itself says that no catalogue knows them.
        environ: the environment.
    """

    def __init__(self) -> None:
        self.plugins: list[str] = []
        self.debug = False
        self.ledger_shown = False
        self.models_announced: frozenset[str] = frozenset()
        self.environ: Mapping[str, str] = os.environ

    @cached_property
    def config(self) -> Config:
        """The user's configuration file, read."""
        from interlingua_cli.config import read_config  # noqa: PLC0415  help needs it not

        return read_config(self.environ)

    @cached_property
    def registry(self) -> Registry:
        """The installed providers with the user's rows, aliases and plugins."""
        from interlingua.plugins import Registry  # noqa: PLC0415  help needs it not

        registry = Registry(rows=self.config.rows, aliases=self.config.aliases)
        for name in self.plugins:
            registry.load_plugin(name)
        return registry

    @property
    def has_plugins(self) -> bool:
        """True when a plugin may have commands to add (hook `register_commands`); found out without loading any."""
        named = self.plugins or self.environ.get("INTERLINGUA_PLUGINS")
        return bool(named or entry_points(group="interlingua.plugins"))

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The user's connection settings per installed provider, keys taken from the environment."""
        found = self.registry.found()
        given = self.config.settings(self.environ)
        for key in sorted(given.keys() - found.keys()):
            click.echo(f"warning: the configuration has settings for {key!r}, and no such provider is here", err=True)
        return {key: settings for key, settings in given.items() if key in found}

    def client(self, model: str | None = None, base_url: str | None = None) -> Client:
        """Make a client; `base_url` goes to the provider of `model`."""
        from interlingua.http.client import Client  # noqa: PLC0415  help needs it not

        return Client(model, base_url=base_url, registry=self.registry, settings=self.settings)


def _add_plugins(ctx: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> None:
    ctx.ensure_object(State).plugins.extend(name for name in names if name)


plugin_option = click.option(  # for the whole line, and for commands: an option before the command is easily forgotten
    "-p",
    "--plugin",
    metavar="MODULE",
    multiple=True,
    expose_value=False,
    is_eager=True,
    callback=_add_plugins,
    help="Load this plugin module (or module:object; a provider as KEY=module:object) for the run; may be repeated.",
)

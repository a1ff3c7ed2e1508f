"""The context of one run of the command line: loaded plugins, the user's configuration, the registry and clients."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import click

from interlingua.errors import CallerError, InterlinguaError

if TYPE_CHECKING:
    from interlingua import Client
    from interlingua.plugins import Connection, Registry
    from interlingua_cli.config import Config


class CommandContext:
    """Context of one run; `click.pass_obj` passes it to commands.

    Attributes:
        plugins: names of the modules that `-p` loads.
        debug: print errors with their traceback.
        ledger_shown: the command prints the loss ledger itself, so losses are not printed as warnings.
        models_announced: canonical ids of models that the command itself reports as unknown to any catalogue.
        environ: environment variables.
        log: store of conversations, set by interlingua-sessions and read with `conversation.conversation_log`.
    """

    def __init__(self) -> None:
        self.plugins: list[str] = []
        self.debug = False
        self.ledger_shown = False
        self.models_announced: frozenset[str] = frozenset()
        self.environ: Mapping[str, str] = os.environ
        self.log: object = None  # this module knows no conversations; see `conversation_log`

    @cached_property
    def config(self) -> Config:
        """The user's configuration file, read."""
        from interlingua_cli.config import read_config  # noqa: PLC0415  slow to import; help does not need it

        return read_config(self.environ)

    @cached_property
    def registry(self) -> Registry:
        """The installed providers, with the user's presets, aliases and plugins."""
        from interlingua.plugins import Registry  # noqa: PLC0415  slow to import; help does not need it
        from interlingua_cli.config import prices_path  # noqa: PLC0415  slow to import; help does not need it

        file = prices_path(self.environ)
        registry = Registry(
            presets=self.config.presets, aliases=self.config.aliases, prices=file if file.exists() else None
        )
        for name in self.plugins:
            registry.load_plugin(name)
        return registry

    @property
    def has_plugins(self) -> bool:
        """True if a plugin may add commands (hook `register_commands`); no plugin is loaded to find out."""
        named = self.plugins or self.environ.get("INTERLINGUA_PLUGINS")
        return bool(named or entry_points(group="interlingua.plugins"))

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The user's connection settings per installed provider, keys taken from the environment."""
        found = self.registry.found()
        given = self.config.settings(self.environ)
        for key in sorted(given.keys() - found.keys()):
            click.echo(
                f"warning: the configuration has settings for {key!r}, but no such provider is installed", err=True
            )
        return {key: settings for key, settings in given.items() if key in found}

    def client(self, model: str | None = None, base_url: str | None = None) -> Client:
        """Make a client; `base_url` goes to the provider of `model`."""
        from interlingua import Client  # noqa: PLC0415  slow to import; help does not need it

        return Client(model, base_url=base_url, registry=self.registry, settings=self.settings)

    def is_model(self, name: str) -> bool:
        """Tell whether a word is an alias, or PROVIDER:NAME of an installed provider."""
        if len(name.split()) != 1:
            return False
        try:
            return str(self.registry.resolve(name).provider) in self.registry.found()
        except CallerError:
            return False

    def model_or_default(self, name: str | None) -> str:
        """Return a model's name, or the default model.

        Raises:
            click.UsageError: `name` is None and there is no default.
        """
        chosen = name or self.config.default_model
        if chosen is None:
            raise click.UsageError(f"Missing argument 'MODEL'. {self.describe_models()}; {_DEFAULT}.")
        return chosen

    def connection(self, key: str) -> Connection:
        """Return a provider's connection with the user's settings; raises as `Registry.provider`."""
        from interlingua.plugins import ConnectionSettings  # noqa: PLC0415  slow to import; help does not need it

        given = {name: value for name, value in self.settings.get(key, {}).items() if value is not None}
        return self.registry.provider(key).connection(ConnectionSettings(environ=self.environ, **given))

    def describe_models(self) -> str:
        """Describe the form of MODEL, and the providers that are usable here: with a key, or without needing one."""
        keys: dict[str, list[str]] = {"found": [], "not needed": []}
        for provider in self.registry.found():
            with contextlib.suppress(InterlinguaError):  # `providers` reports broken ones
                keys.setdefault(key_state(self.connection(provider)), []).append(provider)
        models = (f"{key}:{known.id}" for key in keys["found"] for known in self.registry.provider(key).models())
        example = f", such as {first}" if (first := next(models, None)) else ""
        with_key = f"a key is set for {', '.join(keys['found'])}" if keys["found"] else "no key is set"
        local = f"; {', '.join(keys['not needed'])} need none" if keys["not needed"] else ""
        lists = "`interlingua models PROVIDER` lists models, `interlingua providers` the variables of keys"
        return f"MODEL is PROVIDER:NAME or an alias{example}; {with_key}{local}; {lists}"


def key_state(connection: Connection) -> str:
    """Tell whether a provider's key is `found`, `missing`, `not needed` or `looked up` with the first request.

    Signers and sources of credentials are not called: they may make requests.
    """
    from interlingua.plugins import no_auth  # noqa: PLC0415  slow to import; help does not need it

    if not connection.has_key:
        return "missing"
    if connection.auth is not no_auth:
        return "found"
    if connection.credentials is not None or connection.key_exchange is not None:
        return "looked up"
    return "found" if connection.sign is not None else "not needed"


_DEFAULT = "`interlingua models default MODEL` sets the model to use without MODEL"


class ModelName(click.ParamType):  # type: ignore[type-arg]  # click 8.1: not generic
    """A model on the command line; a missing or unknown name lists the models that can be used."""

    name = "model"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name unchanged, after checking it."""
        if ctx is not None and ":" not in value:
            context = ctx.ensure_object(CommandContext)
            try:
                context.registry.resolve(value)
            except CallerError:
                known = {model.id: each.key for each in context.registry.providers() for model in each.models()}
                near = get_close_matches(value, known, n=1)
                meant = f"; did you mean {known[near[0]]}:{near[0]}?" if near else "."
                default = "" if context.config.default_model else f"; {_DEFAULT}"
                self.fail(f"{value!r} is not a model{meant} {context.describe_models()}{default}.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Return the aliases and models that begin like this."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only while completing

        context = ctx.ensure_object(CommandContext)
        known = [*context.config.aliases, *(f"{each.key}:{model.id}" for each in context.registry.providers()
                                          for model in each.models())]  # fmt: skip
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        """Return the message for a missing model."""
        return None if ctx is None else f"{ctx.ensure_object(CommandContext).describe_models()}."


MODEL = ModelName()


def _add_plugins(ctx: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> None:
    ctx.ensure_object(CommandContext).plugins.extend(name for name in names if name)


_PLUGIN: Any = {
    "metavar": "MODULE",
    "multiple": True,
    "expose_value": False,
    "is_eager": True,
    "callback": _add_plugins,
    "help": "Load this plugin module (or module:object; a provider as KEY=module:object) for the run; may be repeated.",
}
# on the program and on its commands: users easily put it after the command
plugin_option = click.option("-p", "--plugin", **_PLUGIN)
long_plugin_option = click.option("--plugin", **_PLUGIN)  # for commands in which -p sets a template's parameters

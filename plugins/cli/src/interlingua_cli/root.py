"""The group `interlingua`: finds commands as modules of `commands/` and asks plugins for theirs.

Never knows a command by name, so a new module there is a new command; errors become one line and an exit code here.
The entry point comes in, and tests that run a command in process.
"""

from __future__ import annotations

import ast
import pkgutil
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import click

from interlingua.errors import CallerError, InterlinguaError
from interlingua_cli import commands
from interlingua_cli.state import State, plugin_option
from interlingua_cli.warned import warnings_shown

EXTENSIBLE = ("chat",)


"""Our commands that plugins may extend."""


def _own() -> dict[str, str]:
    names = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    return {name.replace("_", "-"): name for name in names}


def _summary(module: str) -> str:
    """Return the first line of what a command's module says of its `command`."""
    source = pkgutil.get_data(commands.__name__, f"{module}.py") or b""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


class Commands(click.Group):
    """Commands of this package, loaded one by one, and those of plugins."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._extensions: dict[str, list[Callable[[click.Command], click.Command]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names; a plugin that fails to add its commands is warned of and left out."""
        self._ask_plugins(ctx)
        return sorted({*_own(), *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of this package without loading others, else a plugin's."""
        module = _own().get(cmd_name)
        if module is None:
            self._ask_plugins(ctx)
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(f"{commands.__name__}.{module}").command
        if cmd_name in EXTENSIBLE:
            self._ask_plugins(ctx)
            for change in self._extensions.get(cmd_name, ()):
                command = change(command)
        return command

    def extend(self, cmd_name: str, change: Callable[[click.Command], click.Command]) -> None:
        """Let a plugin change one of our commands, such as by an option more, from within `register_commands`.

        Args:
            cmd_name: one of `EXTENSIBLE`; others are not asked about, because asking loads every plugin.
            change: takes the command and returns the one to use instead; the given one stays as it is.
        """
        if cmd_name not in EXTENSIBLE:
            raise CallerError(f"{cmd_name!r} cannot be extended; there is {', '.join(EXTENSIBLE)}")
        self._extensions.setdefault(cmd_name, []).append(change)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; what ours do is read from their source, so that help loads none of them."""
        own = _own()
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in own else super().get_command(ctx, name)
            rows.append((name, command.get_short_help_str(formatter.width) if command else _summary(own[name])))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an error of ours is one line on stderr and exit code 1, Ctrl-C is exit code 130."""
        state = ctx.ensure_object(State)
        with warnings_shown(state):
            try:
                return super().invoke(ctx)
            except (InterlinguaError, OSError, NotImplementedError) as error:  # the last: a plugin in the making
                _fail(ctx, state, error)
            except KeyboardInterrupt:
                click.echo("interrupted", err=True)
                ctx.exit(130)

    def _ask_plugins(self, ctx: click.Context) -> None:
        state = ctx.ensure_object(State)
        if ctx.meta.get(__name__) or not state.has_plugins:
            return
        ctx.meta[__name__] = True
        self._extensions.clear()
        try:
            state.registry.register_commands(self)
        except Exception as error:
            click.echo(f"warning: a plugin could not add its commands: {error}", err=True)


def _fail(ctx: click.Context, state: State, error: Exception) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise error  # click knows what to do
    if state.debug:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    else:
        from interlingua_cli.advice import print_error  # noqa: PLC0415  help needs it not

        print_error(state, error)
    ctx.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@plugin_option
@click.option("--debug", is_flag=True, help="Show where an error came from.")
@click.version_option(package_name="interlingua", prog_name="interlingua")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """One canonical conversation, every provider's wire.

    MODEL is written PROVIDER:NAME, or an alias. Plugins also load from INTERLINGUA_PLUGINS (comma-separated modules);
    rows, aliases and provider settings from the TOML file INTERLINGUA_CONFIG, by default interlingua/config.toml in
    the user's configuration folder.
    """
    ctx.ensure_object(State).debug = debug

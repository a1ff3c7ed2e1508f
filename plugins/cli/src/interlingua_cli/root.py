"""The group `interlingua`: its commands, found by entry points; warnings, errors and exit codes."""

from __future__ import annotations

import ast
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, NoReturn

import click

from interlingua.errors import CallerError, InterlinguaError
from interlingua_cli.context import CommandContext, plugin_option

_SUMMARY_WIDTH = 80
GROUP = "interlingua.commands"  # entry points: COMMAND = a click command, COMMAND.NAME = a function that changes it
EXTENSIBLE = ("chat",)  # commands that `register_commands` may change: asking loads every plugin


class SuggestingGroup(click.Group):
    """A group that suggests a command for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument; an unknown one is an error with the nearest name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415  for one message

            near = get_close_matches(str(args[0]), self.list_commands(ctx), n=1)
            if not near or "mean" in error.message:  # newer versions of click suggest
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error


class Commands(SuggestingGroup):
    """Commands of installed distributions (group `interlingua.commands`) and of loaded plugins (`register_commands`).

    A command's module is imported when the command is run, or its own help is asked for.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._changes: dict[str, list[Callable[[click.Command], click.Command]]] = {}

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points by name; if two distributions use one name, the first distribution's, with a warning."""
        found: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=GROUP), key=_distribution):
            used = found.setdefault(entry.name, entry)
            if used is not entry:
                both = f"{_distribution(used)} and {_distribution(entry)}"
                click.echo(f"warning: {both} both have a command {entry.name!r}; the first is used", err=True)
        return found

    def installed_commands(self) -> list[str]:
        """Return the names of the commands that installed distributions add."""
        return sorted(name for name in self._installed if "." not in name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names; a plugin that fails to add its commands is a warning."""
        self._ask_plugins(ctx)
        return sorted({*self.installed_commands(), *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one installed command, with other distributions' changes; else a plugin's command."""
        entry = self._installed.get(cmd_name)
        if entry is None or "." in cmd_name:
            self._ask_plugins(ctx)
            return super().get_command(ctx, cmd_name)
        command: click.Command | None = _load(entry, click.Command)
        if command is None:
            return None
        for extension in self._extensions(cmd_name):
            change = _load(extension, Callable)
            if change is not None:
                command = change(command)
        if cmd_name in EXTENSIBLE:
            self._ask_plugins(ctx)
            for change in self._changes.get(cmd_name, ()):
                command = change(command)
        return command

    def _extensions(self, cmd_name: str) -> list[EntryPoint]:
        """Return the changes that installed distributions make to a command."""
        return [entry for name, entry in sorted(self._installed.items()) if name.startswith(f"{cmd_name}.")]

    def extend(self, cmd_name: str, change: Callable[[click.Command], click.Command]) -> None:
        """Let a plugin change a command, for example by adding an option; called in `register_commands`.

        Args:
            cmd_name: one of `EXTENSIBLE`; other commands cannot be changed, because changes load every plugin.
            change: receives the command and returns its replacement; the passed command stays unchanged.

        Raises:
            CallerError: the command cannot be extended.
        """
        if cmd_name not in EXTENSIBLE:
            raise CallerError(f"{cmd_name!r} cannot be extended; only {', '.join(EXTENSIBLE)} can")
        self._changes.setdefault(cmd_name, []).append(change)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the commands and options with this beginning; no command is loaded."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only while completing

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self._summary(ctx, name, _SUMMARY_WIDTH)) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; their summaries are read from their source, so that help does not import them."""
        rows = []
        for name in self.list_commands(ctx):
            summary = self._summary(ctx, name, formatter.width)
            if summary is not None:
                rows.append((name, summary))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _summary(self, ctx: click.Context, name: str, width: int) -> str | None:
        """Return a command's one-line summary; None if it cannot be loaded."""
        entry = self._installed.get(name)
        summary = _read_summary(entry) if entry else None
        if summary is not None:
            return summary
        command = self.get_command(ctx, name)
        return command.get_short_help_str(width) if command else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument; one that another distribution brings is an error with its name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise _with_distribution(error, ctx, str(args[0])) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an interlingua error is one line on stderr and exit code 1, Ctrl-C is exit code 130."""
        context = ctx.ensure_object(CommandContext)
        with print_warnings(context):
            try:
                return super().invoke(ctx)
            except click.NoSuchOption as error:
                name = f"{error.ctx.info_name if error.ctx else ''}.{error.option_name.lstrip('-')}"
                raise _with_distribution(error, error.ctx or ctx, name) from error
            except (InterlinguaError, OSError, NotImplementedError) as error:  # the last: an unfinished plugin
                _fail(ctx, context, error)
            except KeyboardInterrupt:
                click.echo("interrupted", err=True)
                ctx.exit(130)

    def _ask_plugins(self, ctx: click.Context) -> None:
        """Let plugins add their commands, once per run; nothing is loaded if no plugin is requested or installed."""
        context = ctx.ensure_object(CommandContext)
        if ctx.meta.get(__name__) or not context.has_plugins:
            return
        ctx.meta[__name__] = True
        self._changes.clear()
        try:
            context.registry.register_commands(self)
        except Exception as error:
            click.echo(f"warning: a plugin could not add its commands: {error}", err=True)


class LazyGroup(SuggestingGroup):
    """A group of commands; a command's module is imported when that command runs.

    Args:
        package: package of the command modules.
        commands: command name -> its module in `package`, and its line in the group's help. The module has the command
            as `<name>_command`.
    """

    def __init__(self, *args: Any, package: str, commands: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._commands = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command.

        Raises:
            click.UsageError: the command needs a distribution that is not installed.
        """
        if cmd_name not in self._commands:
            return None
        try:
            module = import_module(f"{self._package}.{self._commands[cmd_name][0]}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("interlingua_"):
                raise
            name = (error.name or "").partition(".")[0].replace("_", "-")
            text = f"`{ctx.command_path} {cmd_name}` needs {name}: pip install {name}"
            raise click.UsageError(text) from error
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(self._commands.items())])


def _with_distribution(error: click.UsageError, ctx: click.Context, name: str) -> click.UsageError:
    """Return an error that says which distribution to install, if one has this command or option."""
    from interlingua_cli.directory import find_command, is_installed  # noqa: PLC0415  for one message

    row = find_command(name)
    if row is None or is_installed(row.distribution):
        return error
    what = f"`interlingua {name.replace('.', ' --')}` is part of {row.distribution}"
    return click.UsageError(f"{what}: interlingua install {row.distribution}", ctx)


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else ""


def _load(entry: EntryPoint, kind: Any) -> Any:
    """Import an entry point's object; warn and return None if it cannot be imported or has another type."""
    try:
        found = entry.load()
        if isinstance(found, kind):
            return found
        reason = f"{entry.value} is not a {kind.__name__}"
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
    click.echo(f"warning: {entry.name!r} of {_distribution(entry)} cannot be loaded: {reason}", err=True)
    return None


def _read_summary(entry: EntryPoint) -> str | None:
    """Return the first line of a command function's docstring from its source; None if it is not found."""
    try:
        source = _read_source(entry.module)
        tree = ast.parse(source or "")
    except (ImportError, SyntaxError, OSError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry.attr:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return None


def _read_source(module: str) -> str | None:
    """Return a module's source without importing it or its packages."""
    names = module.split(".")
    spec = find_spec(names[0])
    for end in range(2, len(names) + 1):
        spec = spec and PathFinder.find_spec(".".join(names[:end]), spec.submodule_search_locations)
    if spec is None or not isinstance(spec.loader, InspectLoader):
        raise ImportError(f"no source of {module}")
    return spec.loader.get_source(module)


class _WarningPrinter(logging.Handler):
    def __init__(self, context: CommandContext) -> None:
        super().__init__(logging.WARNING)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning, unless the command itself shows it: ledger rows, models without a catalogue entry."""
        from interlingua_cli.output import end_line  # noqa: PLC0415  slow to import; help does not need it

        context = self._context
        announced = isinstance(record.args, tuple) and ":".join(map(str, record.args)) in context.models_announced
        if not (announced or (context.ledger_shown and hasattr(record, "block_type"))):
            end_line()
            click.echo(f"warning: {record.getMessage()}", err=True)


@contextmanager
def print_warnings(context: CommandContext) -> Iterator[None]:
    """Print the library's logged warnings as lines on stderr, inside this context."""
    logger = logging.getLogger("interlingua")
    handler = _WarningPrinter(context)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _fail(ctx: click.Context, context: CommandContext, error: Exception) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise error  # click handles it
    if context.debug:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    else:
        from interlingua_cli.output import print_error  # noqa: PLC0415  slow to import; help does not need it

        print_error(context, error)
    ctx.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@plugin_option
@click.option("--debug", is_flag=True, help="Print errors with their traceback.")
@click.version_option(package_name="interlingua", prog_name="interlingua")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Talk to any model, and inspect conversations, requests and recordings.

    MODEL is PROVIDER:NAME or an alias. Plugins are also loaded from INTERLINGUA_PLUGINS (comma-separated modules);
    presets, aliases and provider settings are read from the TOML file INTERLINGUA_CONFIG, by default
    interlingua/config.toml in the user's configuration folder.
    """
    ctx.ensure_object(CommandContext).debug = debug

"""The commands `interlingua session …`, and `--session` of `interlingua chat`.

A command's module, and with it the database, is loaded only when that command runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from interlingua.plugins import hookimpl

_COMMANDS = {
    "export": ("transfer", "Write a session to a JSON Lines file."),
    "import": ("transfer", "Make a session of a JSON Lines file."),
    "list": ("show", "List sessions, the latest used first."),
    "reprice": ("maintenance", "Price stored answers anew from today's catalogues."),
    "send": ("send", "Say something in a session and print the answer."),
    "show": ("show", "Show a session's messages, and why each model answered."),
    "switch": ("show", "Let another model answer in a session from now on."),
    "verify": ("maintenance", "Check that stored sessions are whole."),
}


class Group(click.Group):
    """The commands of sessions, loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"{__name__}.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(_COMMANDS.items())])


class SessionCommands:
    """What this distribution adds to the command line."""

    @hookimpl
    def register_commands(self, cli: Any) -> None:
        """Add the group `session`, and the option `--session` to `chat`."""
        help_text = "Conversations that stay: list, show, continue, switch, check, move."
        cli.add_command(Group("session", help=help_text))
        if hasattr(cli, "extend"):  # a plain click group has no `chat` to extend
            cli.extend("chat", _with_session)


def _with_session(chat: click.Command) -> click.Command:
    from interlingua_sessions.commands.chat import with_session  # noqa: PLC0415  only `chat` needs it

    return with_session(chat)


plugin = SessionCommands()

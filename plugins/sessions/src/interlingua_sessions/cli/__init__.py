"""The commands `interlingua session …`, and `--session` of `interlingua chat`.

Never holds what a program could not do with the library itself, and loads a command's module, and so the database, only
when that command is run. The plugin object comes in.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

_COMMANDS = {
    "export": ("moving", "Write a session to a JSON Lines file."),
    "import": ("moving", "Make a session of a JSON Lines file."),
    "list": ("looking", "List sessions, the latest used first."),
    "reprice": ("repricing", "Price stored answers anew from today's catalogues."),
    "send": ("talking", "Say something in a session and print the answer."),
    "show": ("looking", "Show a session's messages, and why each model answered."),
    "switch": ("looking", "Let another model answer in a session from now on."),
    "verify": ("verifying", "Check that stored sessions are whole."),
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


def add_commands(cli: Any) -> None:
    """Add the group, and the option to `chat`."""
    help_text = "Conversations that stay: list, show, continue, switch, check, move."
    cli.add_command(Group("session", help=help_text))
    if hasattr(cli, "extend"):  # a plain click group has no chat of ours
        cli.extend("chat", _with_session)


def _with_session(chat: click.Command) -> click.Command:
    from interlingua_sessions.cli.chatting import with_session  # noqa: PLC0415  only `chat` needs it

    return with_session(chat)

"""The commands `interlingua session …`.

A command's module, and with it the database, is loaded only when that command runs.
"""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "export": ("maintenance", "Write a session to a JSON Lines file."),
    "import": ("maintenance", "Make a session of a JSON Lines file."),
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


@click.group(cls=Group)
def session() -> None:
    """Conversations that stay: list, show, send, switch, verify, export, import."""

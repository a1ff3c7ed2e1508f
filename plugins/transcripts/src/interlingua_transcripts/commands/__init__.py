"""The commands `interlingua transcript …`; a command's module is loaded when that command runs."""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "check": ("report", "Read session files, write them back, and say what became of every leaf."),
    "convert": ("move", "Write a session in another system's format."),
    "export": ("store", "Write a stored session as another agent's file."),
    "fidelity": ("report", "Say what another system's format would hold of a session."),
    "import": ("store", "Make stored sessions of session files."),
    "list": ("look", "List the sessions on this machine, newest first."),
    "resume": ("store", "Go on with a session in a chat with another model."),
    "show": ("look", "Print a session's conversation."),
}


class Group(click.Group):
    """The commands of transcripts, loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in _COMMANDS:
            return None
        try:
            module = import_module(f"{__name__}.{_COMMANDS[cmd_name][0]}")
        except ModuleNotFoundError as error:
            if error.name != "interlingua_sessions":
                raise
            how = "pip install 'interlingua-transcripts[sessions]'"
            raise click.UsageError(f"`transcript {cmd_name}` needs the session store: {how}") from error
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(_COMMANDS.items())])


@click.group(cls=Group)
def transcript() -> None:
    """Other agents' sessions: list, show, import, resume, export, convert, check."""

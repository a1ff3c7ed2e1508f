"""The commands `interlingua bulk …`; a command's module is loaded when that command runs."""

from __future__ import annotations

from importlib import import_module

import click

# Command -> its module, and what its help says.
_COMMANDS = {
    "cancel": ("batches", "Cancel the batches of an output that are under way."),
    "compact": ("files", "Rewrite an output in the input's order, one line a row."),
    "fetch": ("batches", "Add the rows of batches that have ended to the output."),
    "retry": ("run", "Send the failed rows of an output again."),
    "run": ("run", "Send every row of a file once, and append the answers to another."),
    "status": ("files", "Say how far an output and its batches are, and what failed."),
    "submit": ("batches", "Submit rows to the service's batch API, at the batch price."),
}


class Group(click.Group):
    """The commands of bulk, loaded one by one."""

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
def bulk() -> None:
    """Files of many requests: run, retry, submit as batches."""

"""The commands `interlingua session …`.

A command's module, and with it the database, is loaded only when that command runs.
"""

from __future__ import annotations

import click

from interlingua_cli.root import LazyGroup

_COMMANDS = {
    "backup": ("maintenance", "Copy the whole store to a new file."),
    "export": ("maintenance", "Write a session to a JSON Lines file."),
    "import": ("maintenance", "Create a session from a JSON Lines file."),
    "list": ("show", "List sessions, the latest used first."),
    "reprice": ("maintenance", "Price stored answers again, from today's catalogues."),
    "search": ("search", "Search the messages of all sessions."),
    "send": ("send", "Ask a question in a session and print the answer."),
    "show": ("show", "Show a session's messages, and why each model answered."),
    "switch": ("show", "Use another model for a session from now on."),
    "verify": ("maintenance", "Check stored sessions for faults."),
}


@click.group(cls=LazyGroup, package=__name__, commands=_COMMANDS)
def session() -> None:
    """Manage stored conversations: list, show, search, send, switch, verify, backup, export, import."""

"""The commands `interlingua session …`.

A command's module, and with it the database, is loaded only when that command runs.
"""

from __future__ import annotations

import click

from interlingua_cli.root import LazyGroup

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


@click.group(cls=LazyGroup, package=__name__, commands=_COMMANDS)
def session() -> None:
    """Manage stored conversations: list, show, send, switch, verify, export, import."""

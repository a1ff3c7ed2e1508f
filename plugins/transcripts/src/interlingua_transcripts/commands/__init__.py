"""The commands `interlingua transcript …`; a command's module is loaded when that command runs."""

from __future__ import annotations

import click

from interlingua_cli.root import LazyGroup

_COMMANDS = {
    "check": ("report", "Read session files, write them back, and say what became of every leaf."),
    "convert": ("move", "Write a session in another system's format."),
    "export": ("store", "Write a stored session as another agent's file."),
    "fidelity": ("report", "Say what another system's format would hold of a session."),
    "import": ("store", "Make stored sessions of session files."),
    "list": ("look", "List the sessions on this machine, newest first."),
    "resume": ("store", "Continue a session in a chat with another model."),
    "search": ("search", "Search the messages of all sessions on this machine."),
    "show": ("look", "Print a session's conversation."),
}


@click.group(cls=LazyGroup, package=__name__, commands=_COMMANDS)
def transcript() -> None:
    """Use other agents' sessions: list, search, show, import, resume, export, convert, check."""

"""The commands `interlingua bulk …`; a command's module is loaded when that command runs."""

from __future__ import annotations

import click

from interlingua_cli.root import LazyGroup

# Command -> its module, and what its help says.
_COMMANDS = {
    "cancel": ("batches", "Cancel the open batches of an output."),
    "compact": ("files", "Rewrite an output in the input's order, with the last line of each row."),
    "fetch": ("batches", "Add the rows of batches that have ended to the output."),
    "retry": ("run", "Send the failed rows of an output again."),
    "run": ("run", "Send every row of a file once, and append the answers to another."),
    "status": ("files", "Print the progress of an output and its batches, and the failures."),
    "submit": ("batches", "Submit rows to the service's batch API, at the batch price."),
}


@click.group(cls=LazyGroup, package=__name__, commands=_COMMANDS)
def bulk() -> None:
    """Send files of many requests: run, retry, submit as batches."""

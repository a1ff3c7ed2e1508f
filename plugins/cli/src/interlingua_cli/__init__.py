"""The command line `interlingua`, and helpers for the commands of other distributions."""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from interlingua.plugins import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "attachments": "attach",
    "chat": "run_chat",
    "context": "CommandContext plugin_option",
    "input": "check_text option_option read_text",
    "output": "json_option print_calls print_error print_json print_ledger print_stream print_table print_usage",
    "root": "LazyGroup",
    "streams": "escape_controls",
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua_cli.attachments import attach as attach
    from interlingua_cli.chat import run_chat as run_chat
    from interlingua_cli.context import CommandContext as CommandContext, plugin_option as plugin_option
    from interlingua_cli.input import check_text as check_text, option_option as option_option, read_text as read_text
    from interlingua_cli.output import (
        json_option as json_option, print_calls as print_calls, print_error as print_error, print_json as print_json,
        print_ledger as print_ledger, print_stream as print_stream, print_table as print_table,
        print_usage as print_usage
    )
    from interlingua_cli.root import LazyGroup as LazyGroup
    from interlingua_cli.streams import escape_controls as escape_controls
    # fmt: on
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

_GC_THRESHOLD = 50_000  # new objects between two runs of the cycle collector; Python's own is 700 to 2,000
COMPLETION = "_INTERLINGUA_COMPLETE"  # environment variable that a shell's completion script sets


def main() -> None:
    """Run the command line and exit with its code: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    from interlingua_cli.root import cli  # noqa: PLC0415  importing a helper does not load the program
    from interlingua_cli.streams import prepare_streams  # noqa: PLC0415  as above

    # a command keeps what it reads: looking for cycles in it takes up to a fifth of the time
    gc.set_threshold(_GC_THRESHOLD)
    prepare_streams()
    if COMPLETION in os.environ:
        from interlingua_cli.completion import register  # noqa: PLC0415  only while a shell completes a word

        register()
    cli(prog_name="interlingua")

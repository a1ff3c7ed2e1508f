"""The command line `interlingua`, and the helpers that commands of other distributions are made of (the names here)."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_cli.attachments import attach
    from interlingua_cli.chat import run_chat
    from interlingua_cli.input import check_text, option_option, read_text
    from interlingua_cli.output import (
        json_option,
        print_calls,
        print_error,
        print_json,
        print_ledger,
        print_stream,
        print_table,
        print_usage,
    )
    from interlingua_cli.state import State, plugin_option
    from interlingua_cli.streams import escape_controls

__all__ = [
    "State", "attach", "check_text", "escape_controls", "json_option", "main", "option_option", "plugin_option",
    "print_calls", "print_error", "print_json", "print_ledger", "print_stream", "print_table", "print_usage",
    "read_text", "run_chat",
]  # fmt: skip

COMPLETION = "_INTERLINGUA_COMPLETE"  # the variable that a shell's script sets while it completes a word
_MODULES = {  # name -> its module, imported when the name is first used
    "State": "state", "attach": "attachments", "check_text": "input", "escape_controls": "streams",
    "json_option": "output", "option_option": "input", "plugin_option": "state", "print_calls": "output",
    "print_error": "output", "print_json": "output", "print_ledger": "output", "print_stream": "output",
    "print_table": "output", "print_usage": "output", "read_text": "input", "run_chat": "chat",
}  # fmt: skip


def main() -> None:
    """Run the command line and exit with its code: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    from interlingua_cli.root import cli  # noqa: PLC0415  who imports a helper does not run the program
    from interlingua_cli.streams import prepare_streams  # noqa: PLC0415  as above

    prepare_streams()
    if COMPLETION in os.environ:
        from interlingua_cli.completion import register  # noqa: PLC0415  only while a shell completes a word

        register()
    cli(prog_name="interlingua")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value

"""The command line `interlingua`: a thin layer over the library, one module of `commands/` per command.

Never holds what a program could not do with the library itself, and loads nothing before it is asked for.
The console script comes in, and tests; plugins add commands through `register_commands`, with the same helpers that
ours are made of: the other names here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua_cli.advice import print_error
    from interlingua_cli.answer import print_bill, print_calls, print_stream
    from interlingua_cli.attach import attached
    from interlingua_cli.prompt import talk
    from interlingua_cli.show import json_option, print_json, print_ledger, print_table
    from interlingua_cli.state import State, plugin_option
    from interlingua_cli.stdio import piped_text, shown, words
    from interlingua_cli.typed import option_option

__all__ = [
    "State",
    "attached",
    "json_option",
    "main",
    "option_option",
    "piped_text",
    "plugin_option",
    "print_bill",
    "print_calls",
    "print_error",
    "print_json",
    "print_ledger",
    "print_stream",
    "print_table",
    "shown",
    "talk",
    "words",
]


_LATER = {
    "State": "state",
    "attached": "attach",
    "json_option": "show",
    "option_option": "typed",
    "piped_text": "stdio",
    "plugin_option": "state",
    "print_bill": "answer",
    "print_calls": "answer",
    "print_error": "advice",
    "print_json": "show",
    "print_ledger": "show",
    "print_stream": "answer",
    "print_table": "show",
    "shown": "stdio",
    "talk": "prompt",
    "words": "stdio",
}


def main() -> None:
    """Run the command line and exit with its code: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    try:
        import_module("click")
        import_module("rich")
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {error.name}: pip install 'interlingua[cli]'")
    import_module(f"{__name__}.stdio").prepare()
    import_module(f"{__name__}.root").cli(prog_name="interlingua")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value

"""The command line `interlingua`: a thin layer over the library, one module of `commands/` per command.

Never holds what a program could not do with the library itself, and loads nothing before it is asked for.
The console script comes in, and tests; plugins add commands through `register_commands`.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its code: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    try:
        import_module("click")
        import_module("rich")
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {error.name}: pip install 'interlingua[cli]'")
    import_module(f"{__name__}.root").cli(prog_name="interlingua")

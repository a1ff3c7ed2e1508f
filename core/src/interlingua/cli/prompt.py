"""What a person types in a chat: a line, or a block between triple quotes.

Never sends anything. The chat command comes in.
Line editing and history come from readline, where Python has it.
"""

from __future__ import annotations

import contextlib
import sys

QUOTES = '"""'
HELP = "/model MODEL goes on with another model, /quit ends, three double quotes open and close several lines"


def read_input() -> str | None:
    """Return the next message; None at the end of input.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was typed is let go.
    """
    try:
        line = _line(">>> ")
        start = line.lstrip()
        if not start.startswith(QUOTES):
            return line
        return _block(start[len(QUOTES) :])
    except EOFError:
        return None


def _block(first: str) -> str:
    lines = [first]
    with contextlib.suppress(EOFError):  # the end of input closes a block too
        while not lines[-1].rstrip().endswith(QUOTES):
            lines.append(_line("... "))
    text = "\n".join(lines).rstrip()
    return text.removesuffix(QUOTES).strip("\n")


def _line(prompt: str) -> str:
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  its import is what makes input() edit lines
        return input(prompt)
    return input()

"""What a person types in a chat: a line, a block between triple quotes, or a command.

Never sends anything itself. The chat command comes in, and plugins with chats of their own.
Line editing and history come from readline, where Python has it.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Protocol

import click

QUOTES = '"""'


HELP = (
    "/model MODEL goes on with another model, /save FILE keeps the conversation there, /quit ends;"
    " three double quotes open and close several lines"
)


class Chat(Protocol):
    """What a conversation at the terminal is able to do."""

    def turn(self, text: str) -> None:
        """Ask, and print the answer."""

    def swap(self, model: str) -> None:
        """Go on with another model, or say which one it is when none is named."""

    def save(self, file: str) -> None:
        """Keep the conversation in a file, or say where it is kept when none is named."""


def talk(chat: Chat) -> None:
    """Read from the terminal until the end of input, and let the chat do what is asked."""
    if sys.stdin.isatty():
        click.secho("/save FILE keeps the conversation, /help says what else there is, Ctrl-D ends", err=True, dim=True)
    while True:
        try:
            text = read_input()
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /quit ends)", err=True)
            continue
        if text is None:
            return
        word, _, rest = text.strip().partition(" ")
        if word in ("/quit", "/exit", "/bye"):
            return
        if word == "/model":
            chat.swap(rest.strip())
        elif word == "/save":
            chat.save(rest.strip())
        elif word in ("/help", "/?"):
            click.echo(HELP, err=True)
        elif word.startswith("/") and "\n" not in text and word[1:].isalpha():
            click.echo(f"no command {word}; {HELP}", err=True)
        elif text.strip():
            chat.turn(text)


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

"""A chat at the terminal: read what is typed, ask the model, carry out commands."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs
import click

from interlingua.errors import CallerError, InterlinguaError
from interlingua.types import ContentBlock, TextBlock
from interlingua_cli.output import print_error, print_ledger
from interlingua_cli.show import Show
from interlingua_cli.state import State
from interlingua_cli.talk import Talk

if TYPE_CHECKING:
    from interlingua_cli.tools import Tools

QUOTES = '"""'
MULTI, EDIT, FRAGMENT = "!multi", "!edit", "!fragment"

HELP = (
    "/model MODEL goes on with another model, /save FILE keeps the conversation there, /quit ends;"
    f" three double quotes, or {MULTI} and !end, hold several lines; {EDIT} opens your editor;"
    f" {FRAGMENT} FILE puts a text before the next message"
)


class Chat(Protocol):
    """What `run_chat` needs of a chat; plugins may have their own."""

    def turn(self, text: str) -> None:
        """Ask the model, and print its answer."""

    def swap(self, model: str) -> None:
        """Continue with another model; an empty name prints the current one."""

    def save(self, file: str) -> None:
        """Keep the conversation in this file; an empty name prints where it is kept."""

    def add_fragment(self, place: str) -> None:
        """Put a text before the next message."""


def run_chat(chat: Chat) -> None:
    """Read messages and commands from standard input until its end, and carry them out."""
    if sys.stdin.isatty():
        click.secho("/save FILE keeps the conversation, /help says what else there is, Ctrl-D ends", err=True, dim=True)
    goes_on = True
    while goes_on:
        try:
            goes_on = _do_next(chat)
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /quit ends)", err=True)


def _do_next(chat: Chat) -> bool:
    """Read one message or command and carry it out; False at the end."""
    text = read_input()
    word, _, rest = (text or "").strip().partition(" ")
    if text is None or word in ("/quit", "/exit", "/bye"):
        return False
    if word == "/model":
        chat.swap(rest.strip())
    elif word == "/save":
        chat.save(rest.strip())
    elif word == FRAGMENT:
        chat.add_fragment(rest.strip())
    elif word in ("/help", "/?"):
        click.echo(HELP, err=True)
    elif word.startswith("/") and "\n" not in text and word[1:].isalpha():
        click.echo(f"no command {word}; {HELP}", err=True)
    elif text.strip():
        chat.turn(text)
    return True


def read_input() -> str | None:
    """Return the next message, a line or several, or what the editor saved; None at the end of input."""
    try:
        line = _read_line(">>> ")
    except EOFError:
        return None
    word, _, rest = line.strip().partition(" ")
    if word == MULTI:
        end = f"!end {rest.strip()}".strip()
        return "\n".join(_read_until(lambda last: last.strip() == end))
    if word == EDIT:
        return _edit(rest)
    if not line.lstrip().startswith(QUOTES):
        return line
    first = line.lstrip().removeprefix(QUOTES)
    lines = [first]
    if not first.rstrip().endswith(QUOTES):
        lines += _read_until(lambda last: last.rstrip().endswith(QUOTES), keep=True)
    return "\n".join(lines).rstrip().removesuffix(QUOTES).strip("\n")


def _read_until(is_last: Callable[[str], bool], *, keep: bool = False) -> list[str]:
    """Return lines to the last one, which is left out unless kept; the end of input is one too."""
    lines: list[str] = []
    with contextlib.suppress(EOFError):
        while True:
            line = _read_line("... ")
            if is_last(line):
                return [*lines, line] if keep else lines
            lines.append(line)
    return lines


def _edit(text: str) -> str:
    """Return what was written in the user's editor; nothing where it was left without saving."""
    try:
        written = click.edit(text)
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}; EDITOR names your editor", err=True)
        return ""
    return (written or "").rstrip("\n")


def _read_line(prompt: str) -> str:
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  its import is what makes input() edit lines
        return input(prompt)
    return input()


@attrs.define
class TalkChat:
    """A chat over a conversation, wherever that is kept."""

    _state: State
    _talk: Talk
    _show: Show
    _tools: Tools | None = None
    _fragments: list[ContentBlock] = attrs.field(factory=list)  # before the next message
    _fill: Callable[[str], str] = str  # a template around each message

    def turn(self, text: str) -> None:
        """Ask, print the answer as it arrives, and keep both."""
        content = [*self._fragments, TextBlock(text=self._fill(text))]
        try:
            answer = self._talk.ask(content, self._show, self._tools)
        except KeyboardInterrupt:
            click.echo(self._talk.without_answer, err=True)
            return
        except InterlinguaError as error:
            print_error(self._state, error)
            if not (error.partial and error.partial.content):
                click.echo(self._talk.without_answer, err=True)
            return
        self._fragments.clear()
        self._show.finish(answer)

    def swap(self, model: str) -> None:
        """Continue with another model and print what the conversation loses there; an unknown one changes nothing."""
        if not model:
            click.echo(self._talk.model, err=True)
            return
        try:
            losses = self._talk.swap(model)
        except InterlinguaError as error:
            print_error(self._state, error)
            return
        click.echo(f"now {self._talk.model}", err=True)
        print_ledger(losses, err=True)

    def save(self, file: str) -> None:
        """Keep the conversation in this file; an empty name prints where it is kept."""
        path = Path(file).expanduser()
        if not file:
            click.echo(self._talk.place or "nowhere yet: /save FILE keeps it", err=True)
        elif str(path) != self._talk.place and path.exists():
            click.echo(f"error: {path} is there already: name another file", err=True)
        else:
            self._talk.save(path)

    def add_fragment(self, place: str) -> None:
        """Put a text before the next message."""
        from interlingua_cli.attachments import read_fragment  # noqa: PLC0415  few chats have any

        try:
            self._fragments.append(read_fragment(place))
        except (CallerError, InterlinguaError, OSError) as error:
            print_error(self._state, error)

"""A chat at the terminal: read input, ask the model, run commands."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs
import click

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.types import ContentBlock, TextBlock
from interlingua_cli.context import CommandContext
from interlingua_cli.conversation import OpenConversation
from interlingua_cli.output import print_error, print_ledger
from interlingua_cli.show import Show

if TYPE_CHECKING:
    from interlingua_cli.tools import Tools

QUOTES = '"""'
MULTI, EDIT, FRAGMENT, ATTACH = "!multi", "!edit", "!fragment", "/attach"

HELP = f"""\
/model MODEL     continue with another model; alone, print the current one
/save FILE       keep the conversation in this file; alone, print where it is kept
{FRAGMENT} FILE   put the text of a file before the next message
{ATTACH} FILE     send an image, audio, a video, a document or text with the next message
{QUOTES}              start and end a message of several lines, as {MULTI} and !end do; pasted lines are one message
{EDIT}            write a message in your editor
/quit            end, as Ctrl-D does; Ctrl-C stops an answer and keeps its beginning"""
_PASTE_S = 0.05  # seconds within which the next line of a paste arrives


class Chat(Protocol):
    """The interface that `run_chat` uses; plugins may implement it."""

    def turn(self, text: str) -> None:
        """Ask the model, and print its answer."""

    def swap(self, model: str) -> None:
        """Continue with another model; an empty name prints the current one."""

    def save(self, file: str) -> None:
        """Keep the conversation in this file; an empty name prints where it is kept."""

    def add_fragment(self, place: str) -> None:
        """Put the text of a file before the next message."""

    def attach(self, place: str) -> None:
        """Send a file with the next message."""


def run_chat(chat: Chat) -> None:
    """Read messages and commands from standard input until its end, and run them."""
    if sys.stdin.isatty():
        text = "/help lists the commands, /save FILE keeps the conversation in a file, Ctrl-D ends"
        click.secho(text, err=True, dim=True)
    goes_on = True
    while goes_on:
        try:
            goes_on = _do_next(chat)
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /quit ends)", err=True)


def _do_next(chat: Chat) -> bool:
    """Read one message or command and run it; return False at the end."""
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
    elif word == ATTACH:
        chat.attach(rest.strip())
    elif word in ("/help", "/?"):
        click.echo(HELP, err=True)
    elif word.startswith("/") and "\n" not in text and word[1:].isalpha():
        click.echo(f"unknown command {word}:\n{HELP}", err=True)
    elif text.strip():
        chat.turn(text)
    return True


def read_input() -> str | None:
    """Return the next message: one line, several, or the saved text of the editor; None at the end of input."""
    is_typed_ahead = _is_waiting(0)  # typed while the last answer arrived: separate lines
    try:
        line = _read_line(">>> ")
    except EOFError:
        if sys.stdin.isatty():
            click.echo(err=True)
        return None
    word, _, rest = line.strip().partition(" ")
    if word == MULTI:
        end = f"!end {rest.strip()}".strip()
        return "\n".join(_read_until(lambda last: last.strip() == end))
    if word == EDIT:
        return _edit(rest)
    if not line.lstrip().startswith(QUOTES):
        return line if is_typed_ahead or line.startswith("/") else "\n".join([line, *_read_pasted()])
    first = line.lstrip().removeprefix(QUOTES)
    lines = [first]
    if not first.rstrip().endswith(QUOTES):
        lines += _read_until(lambda last: last.rstrip().endswith(QUOTES), keep=True)
    return "\n".join(lines).rstrip().removesuffix(QUOTES).strip("\n")


def _is_waiting(seconds: float) -> bool:
    """Tell whether a terminal has more input, or receives it within this time."""
    if not sys.stdin.isatty():
        return False
    with contextlib.suppress(OSError, ValueError):  # a stream that cannot be polled
        return bool(select.select([sys.stdin], (), (), seconds)[0])
    return False


def _read_pasted() -> Iterator[str]:
    """Yield the lines that follow immediately, as pasted lines do."""
    with contextlib.suppress(EOFError):
        while _is_waiting(_PASTE_S):
            yield _read_line("... ")


def _read_until(is_last: Callable[[str], bool], *, keep: bool = False) -> list[str]:
    """Return the lines up to the last one, without it unless `keep`; the end of input also ends them."""
    lines: list[str] = []
    with contextlib.suppress(EOFError):
        while True:
            line = _read_line("... ")
            if is_last(line):
                return [*lines, line] if keep else lines
            lines.append(line)
    return lines


def _edit(text: str) -> str:
    """Return the text saved in the user's editor; empty if the editor was left without saving."""
    try:
        written = click.edit(text)
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}; set EDITOR to your editor", err=True)
        return ""
    return (written or "").rstrip("\n")


def _read_line(prompt: str) -> str:
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  its import is what makes input() edit lines
        return input(prompt)
    return input()


def describe_place(talk: OpenConversation) -> str:
    """Describe where a conversation is kept."""
    return f"kept as {talk.place}" if talk.place else "not kept: /save FILE keeps it"


@attrs.define
class TerminalChat:
    """A chat at the terminal over an open conversation."""

    _context: CommandContext
    _conversation: OpenConversation
    _show: Show
    _tools: Tools | None = None
    _fragments: list[ContentBlock] = attrs.field(factory=list)  # before the next message
    _fill: Callable[[str], str] = str  # a template around each message

    def turn(self, text: str) -> None:
        """Ask, print the answer as it arrives, and keep both."""
        content = [*self._fragments, TextBlock(text=self._fill(text))]
        try:
            answer = self._conversation.ask(content, self._show, self._tools)
        except KeyboardInterrupt:
            click.echo(self._conversation.without_answer, err=True)
            self._forget_fragments(refused=False)
            return
        except InterlinguaError as error:
            print_error(self._context, error)
            if not (error.partial and error.partial.content):
                click.echo(self._conversation.without_answer, err=True)
            self._forget_fragments(refused=isinstance(error, CapabilityError))
            return
        self._fragments.clear()
        self._show.finish(answer)

    def _forget_fragments(self, *, refused: bool) -> None:
        """After a question without an answer, forget its files if it is kept with them or the model takes none."""
        if refused and self._fragments:
            click.echo("(its attachments are removed)", err=True)
        if refused or self._conversation.keeps_questions:
            self._fragments.clear()

    def swap(self, model: str) -> None:
        """Continue with another model and print what the conversation loses there; an unknown one changes nothing."""
        if not model:
            click.echo(self._conversation.model, err=True)
            return
        try:
            losses = self._conversation.swap(model)
        except InterlinguaError as error:
            print_error(self._context, error)
            return
        click.echo(f"now {self._conversation.model}", err=True)
        print_ledger(losses, err=True)

    def save(self, file: str) -> None:
        """Keep the conversation in this file; an empty name prints where it is kept."""
        path = Path(file).expanduser()
        if not file:
            click.echo(describe_place(self._conversation), err=True)
        elif str(path) != self._conversation.place and path.exists():
            click.echo(f"error: {path} exists already: choose another file", err=True)
        else:
            self._conversation.save(path)

    def add_fragment(self, place: str) -> None:
        """Put the text of a file before the next message."""
        from interlingua_cli.attachments import read_fragment  # noqa: PLC0415  few chats have any

        self._add(read_fragment, place)

    def attach(self, place: str) -> None:
        """Send a file with the next message."""
        from interlingua_cli.attachments import attach, describe_missing, is_place  # noqa: PLC0415  few chats have any

        if is_place(place):
            self._add(attach, place)
        else:
            click.echo(f"error: {describe_missing(place) if place else f'{ATTACH} needs a file or a URL'}", err=True)

    def _add(self, read: Callable[[str], ContentBlock], place: str) -> None:
        """Add what is read from a place to the next message."""
        try:
            self._fragments.append(read(place))
        except (InterlinguaError, OSError) as error:
            print_error(self._context, error)

"""A chat at the terminal: read what is typed, ask the model, keep the conversation."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import click

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.types import DEFAULT_SESSION, Message, RoutingDecisionRecord, RoutingMode, user
from interlingua_cli.input import write_conversation
from interlingua_cli.output import print_calls, print_error, print_ledger, print_stream, print_usage
from interlingua_cli.plan import add_next_message, plan_request
from interlingua_cli.state import State
from interlingua_cli.streams import escape_controls

if TYPE_CHECKING:
    from interlingua.http.client import Client
    from interlingua.plugins import Loss

QUOTES = '"""'

HELP = (
    "/model MODEL goes on with another model, /save FILE keeps the conversation there, /quit ends;"
    " three double quotes open and close several lines"
)


class Chat(Protocol):
    """What `run_chat` needs of a chat; plugins may have their own."""

    def turn(self, text: str) -> None:
        """Ask the model, and print its answer."""

    def swap(self, model: str) -> None:
        """Continue with another model; an empty name prints the current one."""

    def save(self, file: str) -> None:
        """Keep the conversation in this file; an empty name prints where it is kept."""


def run_chat(chat: Chat) -> None:
    """Read messages and commands from standard input until its end, and carry them out."""
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
    """Return the next message, a line or several between triple quotes; None at the end of input."""
    try:
        line = _read_line(">>> ")
    except EOFError:
        return None
    if not line.lstrip().startswith(QUOTES):
        return line
    lines = [line.lstrip().removeprefix(QUOTES)]
    with contextlib.suppress(EOFError):  # the end of input closes a block too
        while not lines[-1].rstrip().endswith(QUOTES):
            lines.append(_read_line("... "))
    return "\n".join(lines).rstrip().removesuffix(QUOTES).strip("\n")


def _read_line(prompt: str) -> str:
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415  its import is what makes input() edit lines
        return input(prompt)
    return input()


@attrs.define
class ModelChat:
    """A chat with one model at a time, kept in memory and, when a file is named, in that file after each turn.

    An answer that was stopped or failed stays in the conversation with its status; a question without any answer is
    removed, so it can be asked again.
    """

    _state: State
    _client: Client
    model: str
    messages: list[Message]
    _file: Path | None
    _options: Mapping[str, Any]
    _routing: RoutingDecisionRecord | None = None  # until a swap
    _session_id: str = attrs.field(init=False)

    @_session_id.default
    def _default_session_id(self) -> str:
        return self.messages[-1].session_id if self.messages else DEFAULT_SESSION

    def turn(self, text: str) -> None:
        """Ask, print the answer as it arrives, and keep both."""
        question = user(text, session_id=self._session_id)
        answer = self._answer([*self.messages, question])
        if answer is None or not answer.content:
            click.echo("(no answer; the question is taken back)", err=True)
            return
        self.messages += (question, answer)
        print_calls(answer)
        print_usage(answer)
        self._save()

    def save(self, file: str) -> None:
        """Keep the conversation in this file from now on; an empty name prints where it is kept."""
        path = Path(file).expanduser()
        if not file:
            click.echo(self._file or "nowhere yet: /save FILE keeps it", err=True)
        elif path != self._file and path.exists():
            click.echo(f"error: {path} is there already: name another file", err=True)
        else:
            self._file = path
            self._save()

    def _save(self) -> None:
        """Write the conversation; when that fails the chat continues, and the next turn tries again."""
        if self._file is None:
            return
        try:
            write_conversation(self._file, self.messages)
        except OSError as error:
            click.echo(
                f"error: {self._file}: {error.strerror}; nothing is lost yet: /save FILE keeps it elsewhere", err=True
            )

    def _answer(self, messages: list[Message]) -> Message | None:
        """Return the answer, the part of it that arrived, or None."""
        try:
            stream = self._client.stream(messages, model=self.model, routing=self._routing, **self._options)
            try:
                with stream:
                    print_stream(stream)
                    found: Message = stream.message
                    return found
            except KeyboardInterrupt:
                partial: Message = stream.partial
                return partial
        except InterlinguaError as error:
            if isinstance(error, CapabilityError) and error.path == "streaming":
                return self._answer_whole(messages)
            return self._report(error)

    def _answer_whole(self, messages: list[Message]) -> Message | None:
        """Return the answer of a model that cannot stream, or None."""
        try:
            answer: Message = self._client.send(messages, model=self.model, routing=self._routing, **self._options)
        except KeyboardInterrupt:
            return None
        except InterlinguaError as error:
            return self._report(error)
        click.echo(escape_controls(answer.text_content(), sys.stdout))
        return answer

    def swap(self, model: str) -> None:
        """Continue with another model and print what the conversation loses there; an unknown one changes nothing."""
        if not model:
            click.echo(self.model, err=True)
            return
        try:
            name = str(self._state.registry.resolve(model))
            losses: Sequence[Loss] = ()
            if self.messages:
                messages = add_next_message(self.messages)
                planned = plan_request(self._state, messages, name, exact=False, options=self._options)
                losses = planned.request.wire.losses
        except InterlinguaError as error:
            print_error(self._state, error)
            return
        self.model = name
        self._routing = RoutingDecisionRecord(
            mode=RoutingMode.MANUAL, chosen_model=name, reason="user swap via /model command"
        )
        click.echo(f"now {name}", err=True)
        print_ledger(losses, err=True)

    def _report(self, error: InterlinguaError) -> Message | None:
        """Print an error; return the part of the answer that arrived before it."""
        print_error(self._state, error)
        partial: Message | None = error.partial
        return partial

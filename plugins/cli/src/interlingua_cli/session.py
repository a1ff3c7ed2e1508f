"""A chat in progress: turns, swaps, and the file that holds them.

Never lets a failed turn lose what was received or end the chat. The chat command comes in.
An answer that was stopped or failed stays in the conversation with its status; a question without any answer is
taken back, so it can be asked again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.errors import CapabilityError, InterlinguaError
from interlingua.types.factories import user
from interlingua.types.messages import DEFAULT_SESSION, Message, RoutingDecisionRecord, RoutingMode
from interlingua_cli.advice import print_error
from interlingua_cli.answer import print_bill, print_calls, print_stream
from interlingua_cli.conversation import write_conversation
from interlingua_cli.plan import planned
from interlingua_cli.show import print_ledger
from interlingua_cli.state import State
from interlingua_cli.stdio import shown

if TYPE_CHECKING:
    from interlingua.http.client import Client


class Session:
    """The conversation so far and the model that answers next."""

    def __init__(
        self,
        state: State,
        client: Client,
        model: str,
        messages: list[Message],
        file: Path | None,
        options: Mapping[str, Any],
    ) -> None:
        self.messages = messages
        self.model = model
        self._state = state
        self._client = client
        self._file = file
        self._options = options
        self._routing: RoutingDecisionRecord | None = None  # until a swap
        self._session_id = messages[-1].session_id if messages else DEFAULT_SESSION

    def turn(self, text: str) -> None:
        """Ask, print the answer as it comes, keep both."""
        question = user(text, session_id=self._session_id)
        answer = self._answer([*self.messages, question])
        if answer is None or not answer.content:
            click.echo("(no answer; the question is taken back)", err=True)
            return
        self.messages += (question, answer)
        print_calls(answer)
        print_bill(answer)
        self._save()

    def save(self, file: str) -> None:
        """Keep the conversation in this file from now on, or say where it is kept when none is named."""
        path = Path(file).expanduser()
        if not file:
            click.echo(self._file or "nowhere yet: /save FILE keeps it", err=True)
        elif path != self._file and path.exists():
            click.echo(f"error: {path} is there already: name another file", err=True)
        else:
            self._file = path
            self._save()

    def _save(self) -> None:
        """Write the conversation; one that cannot be written goes on, and the next turn tries again."""
        if self._file is None:
            return
        try:
            write_conversation(self._file, self.messages)
        except OSError as error:
            click.echo(
                f"error: {self._file}: {error.strerror}; nothing is lost yet: /save FILE keeps it elsewhere", err=True
            )

    def _answer(self, messages: list[Message]) -> Message | None:
        """Return the answer, what there is of it, or None."""
        try:
            stream = self._client.stream(messages, model=self.model, routing=self._routing, **self._options)
            try:
                with stream:
                    print_stream(stream)
                    return stream.message
            except KeyboardInterrupt:
                return stream.partial
        except InterlinguaError as error:
            if isinstance(error, CapabilityError) and error.path == "streaming":
                return self._whole(messages)
            return self._told(error)

    def _whole(self, messages: list[Message]) -> Message | None:
        """Return the answer of a model that cannot stream, or None."""
        try:
            answer = self._client.send(messages, model=self.model, routing=self._routing, **self._options)
        except KeyboardInterrupt:
            return None
        except InterlinguaError as error:
            return self._told(error)
        click.echo(shown(answer.text_content(), sys.stdout))
        return answer

    def swap(self, model: str) -> None:
        """Go on with another model, showing what the conversation loses there; an unknown one changes nothing."""
        if not model:
            click.echo(self.model, err=True)
            return
        try:
            name = str(self._state.registry.resolve(model))
            losses = planned(self._state, self.messages, name, exact=False, options=self._options).wire.losses \
                if self.messages else ()  # fmt: skip
        except InterlinguaError as error:
            print_error(self._state, error)
            return
        self.model = name
        self._routing = RoutingDecisionRecord(
            mode=RoutingMode.MANUAL, chosen_model=name, reason="user swap via /model command"
        )
        click.echo(f"now {name}", err=True)
        print_ledger(losses, err=True)

    def _told(self, error: InterlinguaError) -> Message | None:
        """Print an error; return what was received before it."""
        print_error(self._state, error)
        partial: Message | None = error.partial
        return partial

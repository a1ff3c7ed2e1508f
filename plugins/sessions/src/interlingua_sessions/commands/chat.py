"""`interlingua chat --session`: the chat command with the conversation in the store instead of a file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import click

from interlingua import InterlinguaError
from interlingua.types import Message
from interlingua_cli.chat import run_chat
from interlingua_cli.output import print_calls, print_error, print_stream, print_usage
from interlingua_cli.state import State
from interlingua_sessions.commands.shared import VARIABLE, session_client, session_in, store_at
from interlingua_sessions.session import Session

_FILES = ("save", "resume")


class StoredChat:
    """A chat whose every message is in the store before the next prompt."""

    def __init__(self, state: State, session: Session, options: Mapping[str, Any]) -> None:
        self._state = state
        self._session = session
        self._options = options

    def turn(self, text: str) -> None:
        """Ask, print the answer as it comes; an answer that was stopped or failed stays with its status."""
        try:
            stream = self._session.stream(text, **self._options)
            try:
                with stream:
                    print_stream(stream)
                    answer = stream.message
            except KeyboardInterrupt:
                answer = stream.partial
        except InterlinguaError as error:
            print_error(self._state, error)
            if not isinstance(error.partial, Message):
                return
            answer = error.partial
        print_calls(answer)
        print_usage(answer)

    def swap(self, model: str) -> None:
        """Switch the session; one that cannot work is refused with the reason, and nothing changes."""
        if not model:
            click.echo(self._session.active_model or "the policy decides", err=True)
            return
        try:
            name = self._session.switch(model, reason="user swap via /model command")
        except InterlinguaError as error:
            print_error(self._state, error)
            return
        click.echo(f"now {name}", err=True)

    def save(self, file: str) -> None:
        """Say where the conversation is: in the store, after every message."""
        how = f"`interlingua session export {self._session.id} {file or 'FILE'}` writes a file"
        click.echo(f"the session is in the store already; {how}", err=True)


def with_session(chat: click.Command) -> click.Command:
    """Return core's chat with `--session` and `--store`; the given command stays as it is."""
    changed = copy.copy(chat)
    session = click.Option(("--session",), metavar="SESSION",
                           help="Go on with this stored session, or begin it; MODEL may be left out.")  # fmt: skip
    store = click.Option(("--store", "place"), metavar="PLACE", envvar=VARIABLE,
                         help="Where --session is kept; see interlingua session --help.")  # fmt: skip
    changed.params = [_optional(parameter) for parameter in chat.params] + [session, store]
    changed.callback = _callback(chat)
    return changed


def _optional(parameter: click.Parameter) -> click.Parameter:
    if not isinstance(parameter, click.Argument):
        return parameter
    optional = copy.copy(parameter)
    optional.required = False
    return optional


def _callback(chat: click.Command) -> Callable[..., Any]:
    original = chat.callback
    assert original is not None  # noqa: S101  core's chat does something

    @click.pass_context
    def callback(ctx: click.Context, /, session: str | None, place: str | None, **given: Any) -> Any:
        if session is not None:
            return _talk(ctx.obj, session, place, **given)
        if given["model"] is None:
            raise click.UsageError(f"Missing argument 'MODEL'. {ctx.obj.describe_models()}.", ctx)
        return ctx.invoke(original, **given)

    return callback


def _talk(
    state: State,
    session_id: str,
    place: str | None,
    *,
    model: str | None,
    url: str | None,
    instructions: str | None,
    options: Mapping[str, Any],
    **files: Any,
) -> None:
    if any(files[name] is not None for name in _FILES):
        raise click.UsageError("--session keeps the conversation in the store: leave --save and --resume out")
    state.ledger_shown = True
    with store_at(place) as store, session_client(state, store, session_id, model, url) as client:
        session = session_in(state, store, session_id, client, system=instructions)
        if model is not None and session.active_model != str(state.registry.resolve(model)):
            session.switch(model, reason="named when the chat began")
        run_chat(StoredChat(state, session, options))

"""A conversation that goes on, `Talk`: in memory here, in a store where interlingua-sessions is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import click

from interlingua.errors import InterlinguaError
from interlingua.types import (
    DEFAULT_SESSION,
    ContentBlock,
    Message,
    RoutingDecision,
    RoutingMode,
    Usage,
    system,
    user,
)
from interlingua_cli.config import data_folder
from interlingua_cli.input import write_conversation
from interlingua_cli.schema import OUTPUT_NAME
from interlingua_cli.show import Show
from interlingua_cli.state import State

if TYPE_CHECKING:
    from interlingua._http.client import Client
    from interlingua.plugins import Loss
    from interlingua_cli.arguments import Arguments
    from interlingua_cli.tools import Tools
    from interlingua_output import Output

SWAP_REASON = "user swap via /model command"
NO_STORE = "conversations are kept by interlingua-sessions: pip install interlingua-sessions"


class Talk(Protocol):
    """A conversation that questions are asked in."""

    @property
    def without_answer(self) -> str:
        """What is said to a person where a question got no answer."""

    @property
    def place(self) -> str | None:
        """Where the conversation is kept; None for nowhere."""

    @property
    def model(self) -> str:
        """Canonical id of the model that answers, or a word for who decides."""

    def ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        """Ask, print what arrives, and return the last answer, which is part of the conversation then.

        One that was stopped has its status; calls of tools are run and asked on with.

        Raises:
            InterlinguaError: what the client raises; what came of an answer is kept.
            KeyboardInterrupt: nothing of an answer came.
        """

    def ask_for(
        self, content: str | Sequence[ContentBlock], schema: Mapping[str, Any], tools: Tools | None
    ) -> tuple[Any, Message, Usage]:
        """Ask for JSON of a schema; return it, the message, and what all attempts took.

        The question and the answer are part of the conversation then, failed attempts are not.

        Raises:
            InvalidOutputError: no answer fits the schema.
            InterlinguaError: what else the client raises.
        """

    def swap(self, model: str) -> Sequence[Loss]:
        """Go on with another model; return what the conversation loses there.

        Raises:
            InterlinguaError: there is no such model, or it cannot go on; nothing changes.
        """

    def save(self, path: Path) -> None:
        """Write the conversation to a file."""


class LogError(InterlinguaError):
    """The store of conversations cannot be opened; the message says what to do."""


class Log(Protocol):
    """Where conversations are kept; interlingua-sessions has one."""

    def newest(self) -> str | None:
        """Return the id of the conversation that was used last; None where there is none."""

    def messages(self, conversation: str) -> list[Message]:
        """Return what a model is sent of a conversation.

        Raises:
            CallerError: there is no such conversation.
        """

    def model_of(self, conversation: str) -> str | None:
        """Return the model that answers in a conversation; None where none has answered.

        Raises:
            CallerError: there is no such conversation.
        """

    def arguments(self, conversation: str) -> Arguments:
        """Return what the last question of a conversation was asked with; nothing where that is not known."""

    def open(
        self,
        state: State,
        conversation: str | None,
        *,
        model: str,
        is_named: bool,
        instructions: str | None,
        arguments: Arguments,
    ) -> AbstractContextManager[Talk]:
        """Open a conversation, or begin one.

        Args:
            state: of the run.
            conversation: its id; None begins one.
            model: who answers.
            is_named: the model was named for this run, and is not only the conversation's own.
            instructions: system prompt of a conversation that has none.
            arguments: of every question; kept with the conversation.

        Raises:
            LogError: the store cannot be opened.
        """


@attrs.define
class MemoryTalk:
    """A conversation in memory and, when a file is named, in that file after each turn.

    An answer that was stopped or failed stays in the conversation with its status; a question without any answer is
    removed, so it can be asked again.
    """

    _state: State
    _client: Client
    model: str
    messages: list[Message] = attrs.field(factory=list)
    file: Path | None = None
    _options: Mapping[str, Any] = attrs.field(factory=dict)
    _routing: RoutingDecision | None = None  # until a swap

    @property
    def without_answer(self) -> str:
        """As `Talk.without_answer`."""
        return "(no answer; the question is taken back)"

    @property
    def place(self) -> str | None:
        """As `Talk.place`."""
        return None if self.file is None else str(self.file)

    def ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        """As `Talk.ask`."""
        asked = [*self.messages, self._question(content)]
        try:
            if tools is None:
                answer = self._answer(asked, show)
                asked.append(answer)
            else:
                from interlingua_agents import MemoryTurn  # noqa: PLC0415  who has tools has it

                answer = tools.loop().run(MemoryTurn(self._client, asked, model=self.model, **self._arguments()))
        except InterlinguaError as error:
            if tools is None and isinstance(error.partial, Message) and error.partial.content:
                asked.append(error.partial)
            raise
        finally:
            if len(asked) > len(self.messages) + 1:
                self._keep(asked)
        return answer

    def ask_for(
        self, content: str | Sequence[ContentBlock], schema: Mapping[str, Any], tools: Tools | None
    ) -> tuple[Any, Message, Usage]:
        """As `Talk.ask_for`."""
        if tools is not None:
            run = tools.ask_for(
                answer_of(schema), self._question(content), model=self.model, options=self._options,
                history=self.messages, client=self._client,
            )  # fmt: skip
            self._keep([*self.messages, *run.messages])
            return run.output, run.stop.message, run.usage
        asked = [*self.messages, self._question(content)]
        answer = self._client.send(asked, output=answer_of(schema), model=self.model, **self._arguments())
        self._keep([*asked, *answer.messages])
        return answer.value, answer.message, answer.usage

    def _question(self, content: str | Sequence[ContentBlock]) -> Message:
        return user(content, session_id=self.messages[-1].session_id if self.messages else DEFAULT_SESSION)

    def _keep(self, messages: list[Message]) -> None:
        self.messages = messages
        if self.file is not None:
            self._save_again(self.file)

    def _answer(self, messages: Sequence[Message], show: Show) -> Message:
        arguments = {"model": self.model, **self._arguments()}
        return show.take(
            lambda: self._client.stream(messages, **arguments), lambda: self._client.send(messages, **arguments)
        )

    def _arguments(self) -> dict[str, Any]:
        return {"routing": self._routing, **self._options}

    def swap(self, model: str) -> Sequence[Loss]:
        """As `Talk.swap`."""
        name = str(self._state.registry.resolve(model))
        losses = losses_of_swap(self._state, self.messages, name, self._options)
        self.model = name
        self._routing = RoutingDecision(mode=RoutingMode.MANUAL, chosen_model=name, reason=SWAP_REASON)
        return losses

    def save(self, path: Path) -> None:
        """Keep the conversation in this file from now on."""
        self.file = path
        self._save_again(path)

    def _save_again(self, path: Path) -> None:
        """Write the conversation; when that fails the chat continues, and the next turn tries again."""
        try:
            write_conversation(path, self.messages)
        except OSError as error:
            text = f"error: {path}: {error.strerror}; nothing is lost yet: /save FILE keeps it elsewhere"
            click.echo(text, err=True)


def answer_of(schema: Mapping[str, Any]) -> Output[Any]:
    """Return the output that asks for JSON of a schema."""
    from interlingua_output import Output  # noqa: PLC0415  loaded when a schema is given

    return Output(schema, name=OUTPUT_NAME)


def losses_of_swap(
    state: State, messages: Sequence[Message], model: str, options: Mapping[str, Any] | None = None
) -> Sequence[Loss]:
    """Return the ledger of a conversation at another model, its next question included; nothing is sent."""
    if not messages:
        return ()
    from interlingua_cli.plan import add_next_message, plan_request  # noqa: PLC0415  it loads the client

    exchange = plan_request(state, add_next_message(messages), model, exact=False, options=options)
    return exchange.request.wire.losses


@contextmanager
def open_talk(
    state: State,
    conversation: str | None,
    *,
    model: str,
    is_named: bool,
    instructions: str | None,
    arguments: Arguments,
    keep: bool,
) -> Iterator[Talk]:
    """Open the conversation of this run: in the store, or in memory where it is not to be kept, or cannot be.

    Args:
        state: of the run; where interlingua-sessions is missing, that is said once and not again in later runs.
        conversation: id of the one to go on with; None begins one.
        model: who answers.
        is_named: as for `Log.open`.
        instructions: system prompt of a conversation that has none.
        arguments: of every question.
        keep: False where the user wants nothing kept this time.

    Raises:
        LogError: the store that holds the conversation cannot be opened.
    """
    with ExitStack() as stack:
        if keep and state.config.log and state.log is None:
            _announce_no_store(state)
        elif keep and state.config.log and state.log is not None:
            opened = state.log.open(
                state, conversation, model=model, is_named=is_named, instructions=instructions, arguments=arguments
            )
            try:
                yield stack.enter_context(opened)
                return
            except LogError as error:
                if conversation is not None:
                    raise
                click.echo(f"warning: this is not kept: {error}", err=True)
        messages = state.log.messages(conversation) if conversation and state.log else []
        if instructions and not messages:
            messages.append(system(instructions))
        client = stack.enter_context(state.client(model, arguments.url))
        yield MemoryTalk(state, client, str(state.registry.resolve(model)), messages, options=arguments.options)


def _announce_no_store(state: State) -> None:
    marker = data_folder(state.environ) / "no-store-announced"
    with suppress(OSError):  # the file is there, or cannot be made
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch(exist_ok=False)
        click.echo(f"(this is not kept: {NO_STORE})", err=True)


def conversation_id(state: State, named: str | None, *, last: bool) -> str | None:
    """Return the id of the conversation to go on with; None begins one.

    Args:
        state: of the run.
        named: `--cid`.
        last: `--continue`.

    Raises:
        click.UsageError: both are given, nothing is kept here, or there is no last one.
    """
    if not last and named is None:
        return None
    if last and named is not None:
        raise click.UsageError("--continue goes on with the last conversation, --cid with another: give one")
    if state.log is None:
        raise click.UsageError(NO_STORE)
    found = named or state.log.newest()
    if found is None:
        raise click.UsageError("there is no conversation to continue yet")
    return found


continue_option = click.option(
    "-c", "--continue", "go_on", is_flag=True,
    help="Go on with the last conversation: its model, tools, options and schema.",
)  # fmt: skip
cid_option = click.option("--cid", "--conversation", "cid", metavar="ID", help="Go on with this conversation.")
plain_option = click.option(
    "--plain", is_flag=True, help="With -c or --cid: without the tools, options, schema and URL it had."
)
no_log_option = click.option("-n", "--no-log", is_flag=True, help="Keep nothing of this in the store.")

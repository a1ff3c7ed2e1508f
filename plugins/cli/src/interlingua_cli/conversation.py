"""A conversation of `send` or `chat`: kept in memory here, or in a store if interlingua-sessions is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

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
from interlingua_cli.arguments import Arguments
from interlingua_cli.config import data_folder
from interlingua_cli.context import CommandContext
from interlingua_cli.input import write_conversation
from interlingua_cli.schema import schema_output
from interlingua_cli.show import Show

if TYPE_CHECKING:
    from interlingua import Client
    from interlingua.plugins import Loss
    from interlingua_cli.tools import Tools

SWAP_REASON = "user swap via /model command"
NO_STORE = "conversations are stored by interlingua-sessions: pip install interlingua-sessions"


class OpenConversation(Protocol):
    """A conversation that accepts questions."""

    @property
    def without_answer(self) -> str:
        """The note to print if a question got no answer."""

    @property
    def keeps_questions(self) -> bool:
        """True if a question that was sent stays in the conversation without an answer."""

    @property
    def place(self) -> str | None:
        """File or session that keeps the conversation; None if it is not kept."""

    @property
    def model(self) -> str:
        """Canonical id of the model that answers, or a word for the policy that chooses one."""

    def ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        """Ask a question, print the answer as it arrives, add both to the conversation and return the answer.

        Tool calls are run and their results sent until the model answers. A cancelled answer has its status.

        Raises:
            InterlinguaError: as `Client.stream`; a partial answer is kept.
            KeyboardInterrupt: Ctrl-C before the answer began.
        """

    def ask_for(
        self, content: str | Sequence[ContentBlock], schema: Mapping[str, Any], tools: Tools | None
    ) -> tuple[Any, Message, Usage]:
        """Ask for JSON of a schema; return the value, its message and the usage of all attempts.

        The question and the valid answer are added to the conversation; failed attempts are not.

        Raises:
            InvalidOutputError: no attempt matched the schema.
            InterlinguaError: as `Client.send`.
        """

    def swap(self, model: str) -> Sequence[Loss]:
        """Continue with another model and return what the conversation loses there.

        Raises:
            InterlinguaError: the model is unknown or cannot continue; nothing changes.
        """

    def save(self, path: Path) -> None:
        """Write the conversation to a file."""


class LogError(InterlinguaError):
    """The store of conversations cannot be opened; the message says what to do."""


class ConversationLog(Protocol):
    """The store of conversations; interlingua-sessions implements it."""

    def newest(self) -> str | None:
        """Return the id of the conversation that was used last and has an answer, or None."""

    def messages(self, conversation: str) -> list[Message]:
        """Return the messages of a conversation as they are sent to a model.

        Raises:
            CallerError: there is no conversation with this id.
        """

    def model_of(self, conversation: str) -> str | None:
        """Return the model that answers in a conversation; None if no model has answered.

        Raises:
            CallerError: there is no conversation with this id.
        """

    def arguments(self, conversation: str) -> Arguments:
        """Return the arguments of a conversation's last question; empty if they are unknown."""

    def open(
        self,
        context: CommandContext,
        conversation: str | None,
        *,
        model: str,
        is_named: bool,
        instructions: str | None,
        arguments: Arguments,
    ) -> AbstractContextManager[OpenConversation]:
        """Open a conversation, or begin one.

        Args:
            context: context of the run.
            conversation: id of the conversation; None begins one.
            model: the model that answers.
            is_named: the user named the model for this run; False if it is the conversation's own.
            instructions: system prompt of a conversation that has none.
            arguments: arguments of every question; kept with the conversation.

        Raises:
            LogError: the store cannot be opened.
        """


def conversation_log(context: CommandContext) -> ConversationLog | None:
    """Return the store that this run keeps conversations in; None if interlingua-sessions is not installed."""
    return cast("ConversationLog | None", context.log)


@attrs.define
class MemoryConversation:
    """A conversation in memory and, with `file`, in that file after each turn.

    A cancelled or failed answer stays in the conversation with its status. A question without any answer is removed,
    so that it can be asked again.
    """

    _context: CommandContext
    _client: Client
    model: str
    messages: list[Message] = attrs.field(factory=list)
    file: Path | None = None
    _options: Mapping[str, Any] = attrs.field(factory=dict)
    _routing: RoutingDecision | None = None  # until a swap

    @property
    def without_answer(self) -> str:
        """As `OpenConversation.without_answer`."""
        return "(no answer; the question is removed)"

    @property
    def keeps_questions(self) -> bool:
        """As `OpenConversation.keeps_questions`."""
        return False

    @property
    def place(self) -> str | None:
        """As `OpenConversation.place`."""
        return None if self.file is None else str(self.file)

    def ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        """As `OpenConversation.ask`."""
        asked = [*self.messages, self._question(content)]
        try:
            if tools is None:
                answer = self._answer(asked, show)
                asked.append(answer)
            else:
                from interlingua_agents.memory import MemoryTurn  # noqa: PLC0415  an optional package; tools need it

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
        """As `OpenConversation.ask_for`."""
        if tools is not None:
            run = tools.ask_for(
                schema_output(schema), self._question(content), model=self.model, options=self._options,
                history=self.messages, client=self._client,
            )  # fmt: skip
            self._keep([*self.messages, *run.messages])
            return run.value, run.stop.message, run.usage
        asked = [*self.messages, self._question(content)]
        answer = self._client.send(asked, output=schema_output(schema), model=self.model, **self._arguments())
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
        """As `OpenConversation.swap`."""
        name = str(self._context.registry.resolve(model))
        from interlingua_cli.plan import losses_at_model  # noqa: PLC0415  it loads the client

        losses = losses_at_model(self._context, self.messages, name, self._options)
        self.model = name
        self._routing = RoutingDecision(mode=RoutingMode.MANUAL, chosen_model=name, reason=SWAP_REASON)
        return losses

    def save(self, path: Path) -> None:
        """Keep the conversation in this file from now on."""
        self.file = path
        self._save_again(path)

    def _save_again(self, path: Path) -> None:
        """Write the conversation; if that fails the chat continues, and the next turn tries again."""
        try:
            write_conversation(path, self.messages)
        except OSError as error:
            text = f"error: {path}: {error.strerror}; still in memory: /save FILE writes it elsewhere"
            click.echo(text, err=True)


@contextmanager
def open_conversation(
    context: CommandContext,
    conversation: str | None,
    *,
    model: str,
    is_named: bool,
    instructions: str | None,
    arguments: Arguments,
    keep: bool,
) -> Iterator[OpenConversation]:
    """Open the conversation of this run: in the store, or in memory if it must not or cannot be stored.

    Args:
        context: context of the run. If interlingua-sessions is missing, a note is printed in the first run only.
        conversation: id of the conversation to continue; None begins one.
        model: the model that answers.
        is_named: as for `ConversationLog.open`.
        instructions: system prompt of a conversation that has none.
        arguments: arguments of every question.
        keep: False to keep the conversation in memory only.

    Raises:
        LogError: the store that holds the conversation cannot be opened.
    """
    log = conversation_log(context)
    with ExitStack() as stack:
        if keep and context.config.log and log is None:
            _announce_no_store(context)
        elif keep and context.config.log and log is not None:
            opened = log.open(
                context, conversation, model=model, is_named=is_named, instructions=instructions, arguments=arguments
            )
            try:
                yield stack.enter_context(opened)
                return
            except LogError as error:
                if conversation is not None:
                    raise
                click.echo(f"warning: not stored: {error}", err=True)
        messages = log.messages(conversation) if conversation and log else []
        if instructions and not messages:
            messages.append(system(instructions))
        client = stack.enter_context(context.client(model, arguments.url))
        yield MemoryConversation(
            context, client, str(context.registry.resolve(model)), messages, options=arguments.options
        )


def _announce_no_store(context: CommandContext) -> None:
    marker = data_folder(context.environ) / "no-store-announced"
    with suppress(OSError):  # the file exists, or cannot be created
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch(exist_ok=False)
        click.echo(f"(not stored: {NO_STORE})", err=True)


def conversation_id(context: CommandContext, named: str | None, *, last: bool) -> str | None:
    """Return the id of the conversation to continue; None begins one.

    Args:
        context: context of the run.
        named: value of `--cid`.
        last: True for `--continue`.

    Raises:
        click.UsageError: both are set, no store is installed, or the store is empty.
    """
    if not last and named is None:
        return None
    if last and named is not None:
        raise click.UsageError("--continue continues the last conversation, --cid another one: pass only one of them")
    log = conversation_log(context)
    if log is None:
        raise click.UsageError(NO_STORE)
    found = named or log.newest()
    if found is None:
        raise click.UsageError(
            "there is no conversation to continue: no answer is stored yet (--cid continues one without an answer)"
        )
    return found


continue_option = click.option(
    "-c", "--continue", "go_on", is_flag=True,
    help="Continue the last conversation that was answered, with its model, tools, options and schema.",
)  # fmt: skip
cid_option = click.option("--cid", "--conversation", "cid", metavar="ID", help="Continue this conversation.")
plain_option = click.option(
    "--plain", is_flag=True, help="With -c or --cid: without its stored tools, options, schema and URL."
)
no_log_option = click.option("-n", "--no-log", is_flag=True, help="Do not store this conversation.")

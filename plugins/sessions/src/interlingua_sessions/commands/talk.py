"""`send` and `chat` with the conversation in the store, and the option `chat --session`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import click

from interlingua import Client
from interlingua.plugins import Loss
from interlingua.types import ContentBlock, Message, MessageStatus, Role, Usage, user
from interlingua_cli.arguments import Arguments
from interlingua_cli.context import CommandContext
from interlingua_cli.conversation import SWAP_REASON, LogError, MemoryConversation, OpenConversation
from interlingua_cli.input import write_conversation
from interlingua_cli.plan import losses_at_model
from interlingua_cli.schema import schema_output
from interlingua_cli.show import Show
from interlingua_cli.tools import Tools
from interlingua_sessions.commands.shared import ARGUMENTS, VARIABLE, arguments_before, model_of, session_in, store_at
from interlingua_sessions.compaction import build_context
from interlingua_sessions.session import Session
from interlingua_sessions.store import EntryKind, Store, StoreError


class StoredConversation:
    """A conversation whose every message is in the store before the next prompt."""

    def __init__(
        self,
        context: CommandContext,
        client: Client,
        store: Store,
        session: Session,
        model: str | None,
        arguments: Arguments,
    ) -> None:
        self._context = context
        self._client = client
        self._store = store
        self._session = session
        self._model = model  # for the next answers alone; None: the session's own
        self._arguments = arguments.to_json()
        self._options = arguments.options

    @property
    def without_answer(self) -> str:
        """The note after a question without an answer; a question that no model could take is not stored."""
        last = self._session.messages[-1:]
        if not last or last[0].role not in (Role.USER, Role.TOOL):
            return "(no answer)"
        again = f"`interlingua session send {self._session.id} --again` asks again"
        return f"(no answer; the question is kept: {again})"

    @property
    def keeps_questions(self) -> bool:
        """As `OpenConversation.keeps_questions`."""
        return True

    @property
    def place(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._model or self._session.active_model or "the policy decides"

    def ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        """Ask and print the answer as it arrives; an answer that was stopped or failed is kept with its status."""
        before = len(self._session.messages)
        try:
            return self._ask(content, show, tools)
        except StoreError as error:
            answer = error.partial
            if answer is None and len(self._session.messages) == before:
                return self._in_memory(error).ask(content, show, tools)
            if not isinstance(answer, Message) or answer.tool_calls or not _is_complete(answer):
                raise
            _report_unstored(error)
            return answer

    def _in_memory(self, error: StoreError) -> MemoryConversation:
        """Return a conversation that continues without the store, which failed before anything was sent."""
        if self._model is None and self._session.active_model is None:
            raise error
        _report_unstored(error)
        history = list(self._session.context())
        return MemoryConversation(self._context, self._client, self.model, history, options=self._options)

    def _ask(self, content: str | Sequence[ContentBlock], show: Show, tools: Tools | None) -> Message:
        self._keep_arguments()
        asked: Any = content if isinstance(content, str) else list(content)
        if tools is not None:
            loop = tools.loop()
            turn = self._session.turn(asked, model=self._model, tools=loop.definitions, **self._options)
            turn.start()
            return loop.run(turn)
        stream = self._session.stream
        before = len(self._session.messages)

        def send() -> Message:
            """Send; a stream that was refused has stored the question."""
            is_stored = len(self._session.messages) > before
            return self._session.send(None if is_stored else asked, model=self._model, **self._options)

        return show.take(lambda: stream(asked, model=self._model, **self._options), send)

    def ask_for(
        self, content: str | Sequence[ContentBlock], schema: Mapping[str, Any], tools: Tools | None
    ) -> tuple[Any, Message, Usage]:
        """As `OpenConversation.ask_for`."""
        session, model = self._session, self._model or self._session.active_model
        question = user(content, session_id=session.id)
        try:
            self._keep_arguments()
            if tools is None:
                session.add(question)
        except StoreError as error:
            return self._in_memory(error).ask_for(content, schema, tools)
        if tools is not None:
            run = tools.ask_for(schema_output(schema), question, model=model, options=self._options, session=session)
            return run.value, run.stop.message, run.usage
        answer = self._client.send(session.context(), output=schema_output(schema), model=model, **self._options)
        try:
            for message in answer.messages:
                session.add(attrs.evolve(message, session_id=session.id))
        except StoreError as error:
            _report_unstored(error)
        return answer.value, answer.message, answer.usage

    def _keep_arguments(self) -> None:
        """Store the arguments of the next questions if they changed."""
        name = self._session.id
        if self._arguments != arguments_before(self._store, name):
            self._store.append_entry(name, EntryKind.CUSTOM, custom_type=ARGUMENTS, data=self._arguments)

    def swap(self, model: str) -> Sequence[Loss]:
        """Switch the session's model; a model that cannot continue is refused with the reason, and nothing changes."""
        name = self._session.switch(model, reason=SWAP_REASON)
        self._model = None
        return losses_at_model(self._context, self._session.context(), str(name), self._options)

    def save(self, path: Path) -> None:
        """Write the context that a model is sent; the conversation stays in the store."""
        write_conversation(path, self._session.context())
        click.echo(f"{path} holds the conversation so far; session {self._session.id} continues", err=True)


def _is_complete(message: Message) -> bool:
    return message.metadata.status is MessageStatus.COMPLETE


def _has_answer(store: Store, session_id: str) -> bool:
    return any(message.role is Role.ASSISTANT for message in store.messages(session_id))


def _report_unstored(error: StoreError) -> None:
    click.echo(f"warning: the question and its answer are not stored: {error}", err=True)


class StoredConversations:
    """The store as the command line's log; satisfies `interlingua_cli.conversation.ConversationLog`.

    Args:
        place: place of the store; None for the user's own store.
        may_begin: True to create a conversation whose id does not exist.
    """

    def __init__(self, place: str | None, *, may_begin: bool = False) -> None:
        self._place = place
        self._may_begin = may_begin

    def newest(self) -> str | None:
        """As `ConversationLog.newest`."""
        with self._store() as store:
            return next((one.id for one in store.sessions() if _has_answer(store, one.id)), None)

    def messages(self, conversation: str) -> list[Message]:
        """As `ConversationLog.messages`."""
        with self._store() as store:
            store.session(conversation)
            return list(build_context(list(store.messages(conversation)), store.entries(conversation)))

    def model_of(self, conversation: str) -> str | None:
        """As `ConversationLog.model_of`."""
        with self._store() as store:
            return model_of(store, conversation)

    def arguments(self, conversation: str) -> Arguments:
        """As `ConversationLog.arguments`."""
        with self._store() as store:
            return Arguments.from_json(arguments_before(store, conversation))

    @contextmanager
    def open(
        self,
        context: CommandContext,
        conversation: str | None,
        *,
        model: str,
        is_named: bool,
        instructions: str | None,
        arguments: Arguments,
    ) -> Iterator[OpenConversation]:
        """As `ConversationLog.open`."""
        with self._store() as store, context.client(model, arguments.url) as client:
            if conversation is None:
                context.registry.provider(context.registry.resolve(model).provider)  # or an empty session would stay
                try:
                    session = Session.open(store, client=client, system=instructions, workspace=str(Path.cwd()))
                    session.switch(model, reason="named when the conversation began")
                except StoreError as error:
                    raise LogError(str(error)) from error
                yield StoredConversation(context, client, store, session, None, arguments)
                return
            if not self._may_begin:
                store.session(conversation)  # a wrong id creates nothing
                click.echo(f"(continues {conversation}, {context.registry.resolve(model)})", err=True)
            session = session_in(context, store, conversation, client, system=instructions)
            for_once = model if is_named and not self._may_begin else None
            if is_named and self._may_begin and session.active_model != str(context.registry.resolve(model)):
                session.switch(model, reason="named when the chat began")
            yield StoredConversation(context, client, store, session, for_once, arguments)

    def _store(self) -> Store:
        try:
            return store_at(self._place)
        except StoreError as error:
            raise LogError(str(error)) from error
        except OSError as error:
            raise LogError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error


def with_store(command: click.Command) -> click.Command:
    """Return a copy of `send` that keeps conversations in the store."""
    return _changed(command, [], lambda place, given: StoredConversations(place))


def with_session(chat: click.Command) -> click.Command:
    """Return a copy of `chat` with the store and `--session`."""
    session = click.Option(("--session",), metavar="SESSION",
                           help="Go on with this stored session, or begin it; MODEL may be left out.")  # fmt: skip

    def make_log(place: str | None, given: dict[str, Any]) -> StoredConversations:
        named = given.pop("session")
        if named is not None:
            if any(given[name] for name in ("save", "resume", "go_on", "cid", "no_log")):
                text = "--session keeps the conversation in the store: leave --save, --resume, -c, --cid and -n out"
                raise click.UsageError(text)
            given["cid"] = named
        return StoredConversations(place, may_begin=named is not None)

    return _changed(chat, [session], make_log)


def _changed(
    command: click.Command,
    options: Sequence[click.Option],
    make_log: Callable[[str | None, dict[str, Any]], StoredConversations],
) -> click.Command:
    """Return a copy of a command with `--store` and these options, which are taken by what makes its log."""
    changed = copy.copy(command)
    store = click.Option(("--store", "place"), metavar="PLACE", envvar=VARIABLE,
                         help="Where conversations are kept; see interlingua session --help.")  # fmt: skip
    changed.params = [*command.params, *options, store]
    original = command.callback
    assert original is not None  # noqa: S101  these commands do something

    @click.pass_context
    def callback(ctx: click.Context, /, place: str | None, **given: Any) -> Any:
        ctx.obj.log = make_log(place, given)
        return ctx.invoke(original, **given)

    changed.callback = callback
    return changed

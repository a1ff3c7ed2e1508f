"""`transcript import`, `export` and `resume`: other agents' sessions in the session store, and back."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from shlex import join, quote
from typing import Any

import attrs
import click
import orjson

from interlingua.codec import dumps_message
from interlingua.plugins import Loss
from interlingua.types import Message
from interlingua_cli.arguments import Arguments
from interlingua_cli.chat import TerminalChat, run_chat
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import option_option, url_option
from interlingua_cli.output import json_option, losses_to_json, print_ledger
from interlingua_cli.plan import add_next_message, plan_request
from interlingua_cli.show import Show
from interlingua_sessions import EntryKind, SessionExistsError, SessionNotFoundError, Store, build_context
from interlingua_sessions.commands.shared import session_client, session_in, store_at, store_option
from interlingua_sessions.commands.talk import StoredConversation
from interlingua_transcripts.commands.progress import over_files
from interlingua_transcripts.commands.shared import (
    check_alone,
    name_secrets,
    opened_session,
    redact_option,
    session_files,
    sources_argument,
    stem_of,
    strict_option,
    system_option,
    why_unread,
)
from interlingua_transcripts.commands.writing import report_unwritten, write_session
from interlingua_transcripts.entries import open_messages
from interlingua_transcripts.imported import content_id, is_uuid, uuid_of
from interlingua_transcripts.lazy import LazyMessages
from interlingua_transcripts.opened import OpenTranscript
from interlingua_transcripts.secrets import SecretSearch
from interlingua_transcripts.system import session_format
from interlingua_transcripts.transcript import HeldSession, Transcript, TranscriptError
from interlingua_transcripts.writing import change_folder, transcript_of, write_pieces

ENTRY = "transcript"  # custom type of the entry that says where a stored session came from
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # an id that is a part of a path

_context_option = click.option(
    "--context",
    "as_context",
    is_flag=True,
    help="Only what the model would see next: after a compaction, not all of it.",
)


@click.command("import")
@sources_argument
@system_option("--system", text="The system that wrote the files; by default it is detected from the content.")
@click.option("--id", "session_id", metavar="SESSION", help="Id of the new session, instead of the file's own.")
@_context_option
@redact_option
@store_option
@plugin_option
@click.pass_context
def import_command(
    ctx: click.Context,
    sources: tuple[Path, ...],
    system: str | None,
    session_id: str | None,
    as_context: bool,
    redact: bool,
    place: str | None,
) -> None:
    """Make stored sessions of session files.

    Each gets the id it had, so a file that is imported twice is refused. Every entry is kept with the message it
    stood by, other branches included: `transcript export` writes the session back.
    """
    paths = session_files(sources)
    if session_id is not None and len(paths) != 1:
        raise click.UsageError("--id is the id of one session: pass only one file")
    failed = 0
    with store_at(place) as store, over_files(paths, "importing") as each:
        for path in each:
            try:
                with opened_session(path, system, redact=redact) as session:
                    for name in _import(store, path, session, session_id, as_context):
                        click.echo(name)
            except Exception as error:  # one bad file never stops the others
                if len(paths) == 1:
                    raise
                failed += 1
                click.echo(why_unread(path, error), err=True)
    if len(paths) > 1:
        click.echo(f"{len(paths) - failed:,} imported, {failed:,} not", err=True)
    click.echo("`interlingua transcript resume SESSION --model PROVIDER:NAME` continues one", err=True)
    if failed:
        ctx.exit(1)


def _import(
    store: Store, path: Path, session: OpenTranscript, session_id: str | None = None, as_context: bool = False
) -> Iterator[str]:
    """Store a file's session, or each of its conversations; yield their ids."""
    plan = session.plan
    own = session_id or _id_in_store(session, path)
    names = []
    known: SessionExistsError | None = None
    for facts, messages, updated_at in _conversations(session, own, as_context=as_context):
        name = facts.session_id
        try:
            record = store.import_lines(_lines(session, facts, path, messages, updated_at))
        except SessionExistsError as error:
            how = f"`interlingua transcript resume {name} --model PROVIDER:NAME` continues it"
            known = SessionExistsError(f"session {name} is in the store already; {how}, --id imports a copy")
            if not plan.sessions:
                raise known from error
            continue  # a database gets further sessions
        names.append(name)
        if not as_context and (parts := _seen(session, facts, own)) is not None:
            count = "{:,} of its {:,} messages".format(*parts)
            click.echo(f"{name}: after a compaction its model would see {count}: --context imports these", err=True)
        yield record.id
    if not names:
        raise known or TranscriptError("no message was found in it", path=str(path))


def _id_in_store(session: OpenTranscript, path: Path) -> str:
    """Return the id that a file's session has in a store: its own, or one made of the file's name and content."""
    return session.plan.session_id or f"{session.system.name}-{stem_of(path)}-{content_id(session.entries)}"


def _seen(session: OpenTranscript, facts: HeldSession, own: str) -> tuple[int, int] | None:
    """Return how many messages of a conversation its model would see, and how many it has; None if it sees all."""
    if facts.context is not None:
        at = session.plan.sessions.index(facts)
        return len(facts.context), session.counts[at]
    if facts.session_id != own or session.plan.context is None:
        return None
    seen = session.plan.seen({number: range(count) for number, count in enumerate(session.counts)})
    return len(seen), sum(session.counts)


def _conversations(
    session: OpenTranscript, own: str, *, as_context: bool
) -> Iterator[tuple[HeldSession, Iterable[Message], datetime]]:
    """Yield the facts, the messages and the end of a file's session, or of each of its conversations."""
    plan = session.plan
    facts = HeldSession(own, plan.title, plan.cwd)
    if session.system.several:
        named = plan.sessions or [facts._replace(session_id=f"{own}-{at + 1}") for at in range(len(plan.groups))]
        for of_group, messages in zip(named, session.groups(), strict=True):
            if messages:
                part = of_group.context if as_context else None
                shown = messages if part is None else [messages[at] for at in part]
                yield of_group, shown, messages[-1].created_at
    elif as_context:
        if seen := session.context():
            yield facts, seen, seen[-1].created_at
    elif (updated_at := session.updated_at()) is not None:
        yield facts, session.with_entries(), updated_at


def _lines(
    session: OpenTranscript, facts: HeldSession, path: Path, messages: Iterable[Message], updated_at: datetime
) -> Iterator[str]:
    """Yield a session as lines of the store's own export."""
    plan = session.plan
    first: Message | None = None
    for message in messages:
        if first is None:
            first = message
            times = {"created_at": first.created_at, "updated_at": updated_at}
            yield _line("session", format=1, id=facts.session_id, workspace_path=facts.cwd or "", **times)
        yield dumps_message(message)
    if first is not None:
        data = {"system": session.system.name, "version": plan.version, "session": plan.session_id, "file": path.name}
        about = {"id": first.id, "kind": EntryKind.CUSTOM.value, "custom_type": ENTRY, "text": facts.title or ""}
        yield _line("session_entry", **about, data=data, after=None, created_at=first.created_at)


def _line(record: str, /, **fields: Any) -> str:
    return orjson.dumps({"type": record, **fields}).decode()


@click.command("export")
@click.argument("session")
@system_option("--to", "target", required=True, text="The system it is written for.")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write; else stdout.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@redact_option
@strict_option
@json_option
@store_option
@plugin_option
def export_command(
    session: str,
    target: str,
    out: Path | None,
    force: bool,
    redact: bool,
    strict: bool,
    as_json: bool,
    place: str | None,
) -> None:
    """Write a stored session as another agent's session file.

    For the system that it was imported from, entries whose messages are unchanged are written byte for byte. One line
    on stderr says what the written file does not get; --json prints it as JSON.
    """
    if out is not None and out.is_dir():
        out /= f"{session}{session_format(target).suffix}"
    search = SecretSearch(redact=redact)
    with store_at(place) as store, _stored(store, session, target) as transcript:
        how = {"strict": strict, "as_json": as_json, "to_stdout": out is None}
        report_unwritten(transcript, target, name=session, **how)
        write_session(out, search.through(write_pieces(transcript, target)), target, force=force)
    name_secrets(search.found, redact=redact, name=session)


@contextmanager
def _stored(store: Store, session: str, target: str) -> Iterator[Transcript]:
    """Yield a stored session, its messages read from the store when they are asked for."""
    record = store.session(session)
    messages = _StoredMessages(store, session)
    about = [entry for entry in store.entries(session, EntryKind.CUSTOM) if entry.custom_type == ENTRY]
    facts = {"title": about[0].text or None if about else None, "cwd": record.workspace_path or None}
    with open_messages(messages) as found:
        yield transcript_of(messages, target, session, **facts) if found is None else found


class _StoredMessages(LazyMessages):
    def __init__(self, store: Store, session: str) -> None:
        self._store, self._session = store, session

    def __iter__(self) -> Iterator[Message]:
        return self._store.messages(self._session)

    def one(self, index: int) -> Message:
        after = self.overview.ids[index - 1] if index else None
        return next(self._store.messages(self._session, after=after, limit=1))


@click.command("resume")
@click.argument("source", metavar="SRC")
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="Model that continues in a chat: PROVIDER:NAME.")
@system_option("--in", "agent", text="Agent that continues: claude-code, codex, gemini, opencode, pi or wolo.")
@system_option("--system", text="The format of the file; default: recognised by its content.")
@_context_option
@redact_option
@click.option("--strict", is_flag=True, help="Fail, and ask nothing, if the model cannot take all content.")
@json_option
@url_option
@option_option
@store_option
@plugin_option
@click.pass_obj
def resume_command(
    context: CommandContext,
    source: str,
    model: str | None,
    agent: str | None,
    system: str | None,
    as_context: bool,
    redact: bool,
    strict: bool,
    as_json: bool,
    url: str | None,
    options: Mapping[str, Any],
    place: str | None,
) -> None:
    """Continue a session in a chat with another model, or in another agent.

    SRC is a session file or the id of a stored session. With --model, a file is imported first, and content that the
    model cannot take is shown on stderr before the first question; --json shows it as JSON. With --in, the session is
    written where the agent looks for it, and the command that continues it is printed.
    """
    if agent is not None and model is None:
        _resume_in(agent, source, system, place, redact=redact, strict=strict, as_json=as_json)
        return
    if model is None or agent is not None:
        raise click.UsageError("pass either --model or --in")
    context.ledger_shown = True
    with store_at(place) as store:
        name = _stored_name(store, source, system, as_context=as_context, redact=redact)
        with session_client(context, store, name, model, url) as client:
            session = session_in(context, store, name, client, system=None)
            messages = build_context(list(store.messages(name)), store.entries(name))
            planned = plan_request(
                context, add_next_message(messages), model, exact=False, base_url=url, options=options
            )
            _report_losses(planned.request.wire.losses, model, strict=strict, as_json=as_json)
            if session.active_model != str(context.registry.resolve(model)):
                session.switch(model, reason="named when the session was resumed")
            provider = context.registry.resolve(model).provider
            arguments = Arguments(options=options, url=url, provider=provider)
            run_chat(
                TerminalChat(context, StoredConversation(context, client, store, session, None, arguments), Show())
            )


def _resume_in(
    agent: str, source: str, system: str | None, store_place: str | None, *, redact: bool, strict: bool, as_json: bool
) -> None:
    """Write a session where an agent looks for it, and print the command that continues it there."""
    path = Path(source)
    with ExitStack() as stack:
        if path.is_file():
            opened = stack.enter_context(opened_session(path, system, redact=redact))
            check_alone(opened, source)
            transcript, search = opened.transcript(), None
        else:
            store = stack.enter_context(store_at(store_place))
            transcript, search = stack.enter_context(_stored(store, source, agent)), SecretSearch(redact=redact)
        known = (
            transcript.cwd not in (None, "/") and Path(transcript.cwd or "").is_dir()
        )  # `/` of files that name no folder
        cwd = transcript.cwd if transcript.cwd and known else str(Path.cwd())
        first = next(iter(transcript.messages), None)
        if first is None:
            raise TranscriptError("no message was found in it", path=source)
        own = transcript.session_id
        if own and transcript.system == agent:
            _check_name(own, source)
        elif not is_uuid(own):
            own = uuid_of(f"{transcript.system}\0{own or content_id(transcript.entries)}")
        where = session_format(agent).place(own, cwd, first.created_at, home=Path.home(), environ=os.environ)
        if where is None:
            raise click.UsageError(
                f"{session_format(agent).title} is given no session by a file; use `convert --to {agent}`"
            )
        written = where.path
        if transcript.system == agent and transcript.entries:
            written = written.with_suffix(session_format(agent).suffix_of(transcript.entries[:1]))
        if written.exists():
            click.echo(f"{written} already exists, and is not written again", err=True)
        else:
            transcript = attrs.evolve(transcript, session_id=own)
            if transcript.system == agent and cwd != transcript.cwd:
                transcript = change_folder(transcript, cwd)
            transcript = attrs.evolve(transcript, cwd=cwd)
            report_unwritten(transcript, agent, name=source, strict=strict, as_json=as_json, to_stdout=True)
            pieces = write_pieces(transcript, agent)
            write_session(written, pieces if search is None else search.through(pieces), agent, force=False)
            click.echo(f"written to {written}", err=True)
        if search is not None:
            name_secrets(search.found, redact=redact, name=source)
        commands = [join(command) for command in (where.first, where.command) if command]
        click.echo(" && ".join([f"cd {quote(cwd)}", *commands]))


def _check_name(session_id: str, source: str) -> None:
    """Refuse an id that would lead out of the agent's folder, or be an option of its command.

    Raises:
        TranscriptError: it would.
    """
    if _NAME.fullmatch(session_id) is None:
        raise TranscriptError(f"the session's id {session_id!r:.100} cannot be the name of a file", path=source)


def _report_losses(losses: Sequence[Loss], model: str, *, strict: bool, as_json: bool) -> None:
    """Print what a model does not get of a session.

    Raises:
        TranscriptError: it does not get all, and `strict` is given.
    """
    if as_json:
        click.echo(orjson.dumps({"target": model, "unwritten": losses_to_json(losses)}).decode(), err=True)
    else:
        print_ledger(losses, err=True)
    if losses:
        kinds = ", ".join(
            [f"{number:,} x {kind}" for kind, number in Counter(one.block_type for one in losses).items()]
        )
        line = f"{model} does not get: {kinds}"
        if strict:
            raise TranscriptError(f"{line}; without --strict it is asked nevertheless")
        if not as_json:
            click.echo(line, err=True)


def _stored_name(store: Store, source: str, system: str | None, *, as_context: bool, redact: bool) -> str:
    """Return the id of the stored session that the user means; a file that is not stored yet is imported."""
    path = Path(source)
    if not path.is_file():
        try:
            return store.session(source).id
        except SessionNotFoundError as error:
            raise click.UsageError(f"there is no file and no stored session {source!r}") from error
    with opened_session(path, system, redact=redact) as session:
        check_alone(session, source)
        try:
            return store.session(_id_in_store(session, path)).id
        except SessionNotFoundError:
            *_, name = _import(store, path, session, as_context=as_context)
            click.echo(f"(imported as session {name})", err=True)
            return name

"""`session list`, `session show`, `session switch`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

import attrs
import click

from interlingua.codec import encode_message
from interlingua.types import Message
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_sessions.commands.shared import complete_sessions, store_at, store_option
from interlingua_sessions.store import SessionRecord

_SHORT = 100


@click.command("list")
@click.option("--workspace", metavar="FOLDER", help="Only sessions of this workspace.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of sessions.")
@store_option
@json_option
@plugin_option
def list_command(workspace: str | None, limit: int, place: str | None, as_json: bool) -> None:
    """List sessions, the latest used first."""
    with store_at(place) as store:
        records = list(store.sessions(workspace_path=workspace, limit=limit))
        counts = [store.count_messages(record.id) for record in records]
    if as_json:
        print_json([{**record_json(one), "messages": count} for one, count in zip(records, counts, strict=True)])
        return
    if not records:
        click.echo("no session is here yet: `interlingua chat MODEL --session NAME` begins one", err=True)
        return
    rows = [
        (one.id, count, one.active_model, one.workspace_path or None, f"{one.updated_at:%Y-%m-%d %H:%M}")
        for one, count in zip(records, counts, strict=True)
    ]
    print_table(("session", "messages", "model", "workspace", "last used (UTC)"), rows)


def record_json(record: SessionRecord) -> dict[str, Any]:
    """Return a session's record as JSON."""
    times = {name: getattr(record, name).isoformat() for name in ("created_at", "updated_at")}
    return {**attrs.asdict(record, recurse=False), **times}


@click.command("show")
@click.argument("session", shell_complete=complete_sessions)
@click.option("--limit", type=click.IntRange(1), help="Show only this number of the newest messages.")
@click.option("--whole", is_flag=True, help="Print whole messages with their line breaks.")
@store_option
@json_option
@plugin_option
def show_command(session: str, limit: int | None, whole: bool, place: str | None, as_json: bool) -> None:
    """Show a session's messages, and why each model answered."""
    with store_at(place) as store:
        record = store.session(session)
        newest = list(store.messages(session, newest_first=True, limit=limit))
        if as_json:
            messages = [encode_message(message) for message in reversed(newest)]
            print_json({**record_json(record), "messages": messages})
            return
    rows = [(message.role, _said(message, whole=whole), _why(message)) for message in reversed(newest)]
    print_table(("role", "said", "routing"), rows)
    click.echo(f"{record.id}: active model {record.active_model or 'by policy'}", err=True)


def _said(message: Message, *, whole: bool) -> str:
    parts = [text for text in (message.text,) if text]
    parts += [f"[calls {call.name}({call.input_json})]" for call in message.tool_calls]
    for result in message.tool_results:
        failed = "failed" if result.is_error else "result"
        text = "".join(getattr(block, "text", f"[{block.type}]") for block in result.content)
        parts.append(f"[{failed}] {text}")
    if message.metadata.status != "complete":
        parts.append(f"[{message.metadata.status}]")
    return "\n".join(parts) if whole else _first_line(parts)


def _first_line(parts: Iterable[str]) -> str:
    """Return one line, shortened only on a terminal."""
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= _SHORT or not sys.stdout.isatty() else "".join(islice(line, _SHORT)) + "…"


def _why(message: Message) -> str | None:
    routing = message.metadata.routing
    if routing is None:
        return message.metadata.model
    return f"{routing.chosen_model} ({routing.mode}: {routing.reason})"


@click.command("switch")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("model", type=MODEL, required=False)
@click.option("--reason", help="Kept, and repeated in the record of each answer it decides.")
@click.option("--clear", is_flag=True, help="Let the session's policy decide again.")
@store_option
@plugin_option
@click.pass_obj
def switch_command(
    context: CommandContext, session: str, model: str | None, reason: str | None, clear: bool, place: str | None
) -> None:
    """Use another model for a session from now on.

    Refused, with the reason, if the model cannot carry what the session holds.
    """
    from interlingua_sessions.session import Session  # noqa: PLC0415  it loads the client, which lists need not

    if clear is (model is not None):
        raise click.UsageError("pass either MODEL or --clear")
    with store_at(place) as store, context.client() as client:
        store.session(session)
        name = Session.open(store, session, client=client).switch(model, reason=reason)
    click.echo(f"now {name}" if name else "the policy decides", err=True)

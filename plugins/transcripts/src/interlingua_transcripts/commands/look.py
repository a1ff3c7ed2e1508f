"""`transcript list` and `transcript show`: list the sessions, and print the conversation of one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from os import stat_result
from pathlib import Path
from typing import Any

import click

from interlingua.codec import dumps_message
from interlingua.types import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.streams import escape_controls
from interlingua_transcripts.commands.shared import opened_session, source_argument, system_option
from interlingua_transcripts.loading import load_entry
from interlingua_transcripts.system import SessionFormat, find_files, installed_formats, session_format

_PEEK = 65_536  # bytes of a file that are read for a line of the list
_FIRST = 60  # letters of a session's first words
_SHORT = 500  # letters of a tool result


@click.command("list")
@system_option("--system", text="Sessions of this system only.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of sessions.")
@click.option("--all", "every", is_flag=True, help="All of them.")
@json_option
@plugin_option
@click.pass_obj
def list_command(context: CommandContext, system: str | None, limit: int, every: bool, as_json: bool) -> None:
    """List the sessions on this machine, newest first.

    Only the beginning of each file listed is read.
    """
    systems = [session_format(system)] if system else list(installed_formats().values())
    found = sorted(find_files(systems, context.environ), key=lambda one: -one[1].st_mtime)
    rows = [_row(*one) for one in (found if every else found[:limit])]
    if as_json:
        print_json(rows)
        return
    cells = [
        [row["system"], row["changed"][:16].replace("T", " "), row["bytes"], row["begins"], row["path"]] for row in rows
    ]
    print_table(("system", "changed", "bytes", "begins", "file"), cells, spare=("bytes",))
    if len(found) > len(rows):
        click.echo(f"{len(found) - len(rows):,} more; --all lists them", err=True)
    elif not found:
        click.echo("no session was found; `interlingua transcript show FILE` reads one from anywhere", err=True)


def _row(system: SessionFormat, status: stat_result, path: str) -> dict[str, Any]:
    return {
        "system": system.name,
        "path": path,
        "changed": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds"),
        "bytes": status.st_size,
        "begins": _first_words(Path(path)),
    }


def _first_words(path: Path) -> str | None:
    """Return what the user said first, as far as the beginning of the file tells."""
    try:
        with path.open("rb") as file:
            head = file.read(_PEEK)
    except OSError:
        return None
    for line in head.split(b"\n")[:-1]:
        words = next(_user_words(load_entry(line)), None)
        if words:
            return " ".join(words.split())[:_FIRST]
    return None


def _user_words(value: Any) -> Iterator[str]:
    """Yield the text of an entry's user message, wherever the entry holds it."""
    if not isinstance(value, dict):
        return
    if value.get("role") == "user":
        content = value.get("content", value.get("contents"))
        for part in [content] if isinstance(content, str) else content or ():
            text = part.get("text", part.get("content")) if isinstance(part, dict) else part
            if isinstance(text, str) and not text.lstrip().startswith("<"):
                yield text
        return
    for name in ("message", "payload", "data"):
        yield from _user_words(value.get(name))


@click.command("show")
@source_argument
@system_option("--system", text="The system that wrote the file; by default it is detected from the content.")
@click.option("--context", is_flag=True, help="Only what a model would see next: after a compaction, not all of it.")
@json_option
@plugin_option
def show_command(source: Path, system: str | None, context: bool, as_json: bool) -> None:
    """Print a session's conversation.

    With --json, one canonical message a line, as `explain`, `doctor` and `chat` read them.
    """
    with opened_session(source, system) as session:
        messages = session.context() if context else session
        if as_json:
            for message in messages:
                click.echo(dumps_message(message))
            return
        plan = session.plan
        about = [session.system.name, plan.version, plan.session_id, plan.title, plan.cwd]
        click.echo(f"{' · '.join([escape_controls(text, sys.stdout) for text in about if text])}\n")
        for message in messages:
            click.echo(f"{message.role}{_model_of(message)}")
            for line in _shown(message):
                click.echo(f"  {escape_controls(line, sys.stdout)}")
    for note in islice(session.notes(), 20):
        place = "" if note.entry is None else f"entry {note.entry + 1}: "
        click.echo(f"note: {place}{note.text}", err=True)


def _model_of(message: Message) -> str:
    return f" ({message.metadata.model})" if message.metadata.model else ""


def _shown(message: Message) -> Iterator[str]:
    for block in message.content:
        if isinstance(block, TextBlock):
            yield from block.text.splitlines() or [""]
        elif isinstance(block, ThinkingBlock):
            yield f"[thinking, {len(block.text):,} letters]"
        elif isinstance(block, ToolUseBlock):
            yield f"[call {block.name} {block.input_json[:_SHORT]}]"
        elif isinstance(block, ToolResultBlock):
            text = "\n".join([part.text for part in block.content if isinstance(part, TextBlock)])
            yield from (text[:_SHORT] + (" …" if len(text) > _SHORT else "")).splitlines()
        else:
            yield f"[{block.type}]"

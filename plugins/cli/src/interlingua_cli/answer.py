"""An answer as it arrives, for a person: text at once, reasoning dim, calls and the bill at the end.

Never changes a message. The commands that talk to a model come in.
Text goes to stdout; everything about the text goes to stderr, so an answer can be piped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

import click

from interlingua.types.events import StreamEvent, TextDelta, ThinkingDelta
from interlingua.types.messages import Message, MessageStatus
from interlingua_cli.stdio import shown

_SECOND = 1000


_open: list[TextIO] = []  # where the last line that was printed has no end yet


def end_line() -> None:
    """End the line that an answer is being printed on, where a person sees both: text that is piped stays as it is."""
    if _open and _open[0].isatty():
        _end()


def _end() -> None:
    while _open:
        click.echo(file=_open.pop())


def print_stream(stream: Iterable[StreamEvent]) -> None:
    """Print an open stream's text as it comes, and a line end; reasoning only on a terminal."""
    try:
        for event in stream:
            if type(event) is TextDelta:
                _go_on(sys.stdout)
                click.echo(shown(event.text, sys.stdout), nl=False)
            elif type(event) is ThinkingDelta and sys.stderr.isatty():
                _go_on(sys.stderr)
                click.secho(shown(event.text, sys.stderr), dim=True, nl=False, err=True)
    finally:
        _end()


def _go_on(file: TextIO) -> None:
    """Print on this file from now on; reasoning and text do not share a line."""
    if _open != [file]:
        if _open == [sys.stderr]:
            _end()
        _open[:] = [file]


def print_calls(message: Message) -> None:
    """Print the calls the model asked for; a shell runs none."""
    for call in message.tool_calls():
        click.secho(shown(f"[calls {call.name}({call.input_json})]", sys.stderr), err=True, dim=True)


def print_bill(message: Message) -> None:
    """Print model, tokens, cost and time on one line."""
    metadata, usage = message.metadata, message.metadata.usage
    facts = [metadata.model or "?"]
    if metadata.status is not MessageStatus.COMPLETE:
        facts.append(str(metadata.status))
    elif metadata.stop_reason is not None and metadata.stop_reason != "end_turn":
        facts.append(f"stopped: {metadata.stop_reason}")
    if usage is not None:
        counts = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
        facts += [f"{count:,} {word}" for count, word in counts if count is not None]
        if usage.cost_usd is not None:
            facts.append(f"${usage.cost_usd:f}")
        if usage.latency_ms is not None:
            facts.append(f"{usage.latency_ms / _SECOND:.1f} s")
    click.secho(f"[{' · '.join(facts)}]", err=True, dim=True)

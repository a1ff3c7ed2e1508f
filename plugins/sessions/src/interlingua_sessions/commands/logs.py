"""`interlingua logs`: the questions that were asked and their answers, over all stored conversations."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import click

from interlingua.codec import encode_message
from interlingua.types import Message
from interlingua_cli.config import write_value
from interlingua_cli.output import json_option, mask_credentials, print_facts, print_json
from interlingua_cli.show import find_code
from interlingua_cli.state import MODEL, State, plugin_option
from interlingua_cli.streams import escape_controls
from interlingua_sessions.commands.shared import default_place, store_at, store_option
from interlingua_sessions.store import LoggedTurn, Store

_SHOWN = 3
_SHORT = 100  # characters


@click.group("logs", invoke_without_command=True)
@click.option("-n", "--count", type=click.IntRange(0), metavar="N", help=f"The last N instead of {_SHOWN}; 0 for all.")
@click.option("-q", "--query", metavar="WORDS", help="Those whose question or answers hold all words, the best first.")
@click.option("-l", "--latest", is_flag=True, help="With -q: the latest first.")
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="Those that this model answered.")
@click.option("-c", "--current", is_flag=True, help="Those of the last conversation, all of them.")
@click.option("--cid", "--conversation", "cid", metavar="ID", help="Those of this conversation, all of them.")
@click.option("-r", "--response", is_flag=True, help="Print the last answer alone, as plain text.")
@click.option("-x", "--extract", is_flag=True, help="Print the first code block of the last answer alone.")
@click.option("--xl", "--extract-last", "extract_last", is_flag=True, help="Print its last code block.")
@click.option("-s", "--short", is_flag=True, help="A few lines of YAML each.")
@click.option("-u", "--usage", is_flag=True, help="Print tokens and cost, too.")
@store_option
@json_option
@plugin_option
@click.pass_context
def logs(ctx: click.Context, count: int | None, query: str | None, latest: bool, model: str | None, current: bool,
         cid: str | None, response: bool, extract: bool, extract_last: bool, short: bool, usage: bool,
         place: str | None, as_json: bool) -> None:  # fmt: skip
    """List the last questions and their answers, or search them.

    `send` and `chat` keep them in the store of `interlingua session`; the oldest of those listed comes first.
    """
    ctx.meta[_PLACE] = place
    if ctx.invoked_subcommand is not None:
        return
    state: State = ctx.obj
    alone = response or extract or extract_last
    with store_at(place) as store:
        session_id = _newest_session(store) if current else cid
        if count is None:
            count = 1 if alone else 0 if session_id is not None else _SHOWN
        found = store.turns(session_id, words=(query or "").split())
        if model is not None:
            name = str(state.registry.resolve(model))
            found = (turn for turn in found if any(answer.metadata.model == name for answer in turn.answers))
        turns = _choose(found, 1 if alone else count or None, by_matches=query is not None and not latest)
    if alone:
        _print_answer(turns, code="last" if extract_last else "first" if extract else None)
    elif as_json:
        print_json([_turn_json(turn) for turn in reversed(turns)])
    elif not turns:
        click.echo("nothing is found" if query or model else "nothing is kept here yet", err=True)
    elif short:
        click.echo("\n".join(line for turn in reversed(turns) for line in _yaml_lines(turn, usage=usage)))
    else:
        click.echo("\n\n".join(_markdown(turn, usage=usage) for turn in reversed(turns)))


_PLACE = __name__  # in the context: where the group's options say the store is


def _where(place: str | None) -> str:
    return str(default_place()) if place is None else mask_credentials(place)


def _newest_session(store: Store) -> str:
    turn = next(store.turns(), None)
    if turn is None:
        raise click.UsageError("there is no conversation yet")
    return turn.question.session_id


def _choose(turns: Iterable[LoggedTurn], count: int | None, *, by_matches: bool) -> list[LoggedTurn]:
    """Return so many turns, what is to be shown last first: the newest, or those that match best."""
    if by_matches:
        turns = sorted(turns, key=lambda turn: turn.matches, reverse=True)
    return list(islice(turns, count))


def _print_answer(turns: list[LoggedTurn], code: str | None) -> None:
    if not turns or not turns[0].answers:
        raise click.ClickException("there is no answer")
    text = turns[0].answers[-1].text_content()
    if code is not None:
        block = find_code(text, last=code == "last")
        if block is None:
            raise click.ClickException("the answer holds no code block")
        text = block
    click.echo(escape_controls(text, sys.stdout))


def _markdown(turn: LoggedTurn, *, usage: bool) -> str:
    at = f"{turn.question.created_at:%Y-%m-%d %H:%M:%S}"
    lines = [f"# {at} UTC  conversation: {turn.question.session_id}{_models(turn)}", "", "## Prompt", ""]
    lines += [_text(turn.question), "", "## Answer", ""]
    lines.append("\n\n".join(filter(None, map(_text, turn.answers))) or "(none)")
    if usage:
        lines += ["", "## Usage", "", *(f"{name}: {value}" for name, value in _usage(turn).items())]
    return "\n".join(lines)


def _text(message: Message) -> str:
    """Return a message's text, its media and calls named, and its status where it is not whole."""
    parts = [escape_controls(message.text_content(), sys.stdout)]
    parts += [f"[{block.type}]" for block in message.content if hasattr(block, "media_type")]
    parts += [escape_controls(f"[calls {call.name}({call.input_json})]", sys.stdout) for call in message.tool_calls()]
    if message.metadata.status != "complete":
        parts.append(f"[{message.metadata.status}]")
    return "\n".join(filter(None, parts))


def _models(turn: LoggedTurn) -> str:
    names = dict.fromkeys(answer.metadata.model for answer in turn.answers if answer.metadata.model)
    return f"  model: {', '.join(names)}" if names else ""


def _usage(turn: LoggedTurn) -> dict[str, Any]:
    """Return tokens and cost of a turn's answers together; None where one of them did not say."""
    reported = [answer.metadata.usage for answer in turn.answers if answer.metadata.usage is not None]
    found: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        values = [getattr(usage, name) for usage in reported]
        known = [value for value in values if value is not None]
        found[name] = sum(known) if known and len(known) == len(values) else None
    return found


def _yaml_lines(turn: LoggedTurn, *, usage: bool) -> Iterator[str]:
    """Yield a turn as a YAML list item of one line each; JSON's strings are YAML's too."""
    answer = turn.answers[-1] if turn.answers else None
    facts: dict[str, Any] = {
        "model": answer.metadata.model if answer else None,
        "datetime": f"{turn.question.created_at:%Y-%m-%d %H:%M:%S}",
        "conversation": turn.question.session_id,
        "prompt": _shorten(turn.question.text_content()),
        "answer": _shorten(answer.text_content()) if answer else None,
    }
    if usage:
        facts |= {name: None if value is None else str(value) for name, value in _usage(turn).items()}
    for number, (name, value) in enumerate(facts.items()):
        yield f"{'  ' if number else '- '}{name}: {json.dumps(value, ensure_ascii=False)}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"


def _turn_json(turn: LoggedTurn) -> dict[str, Any]:
    answer = turn.answers[-1] if turn.answers else None
    return {
        "conversation": turn.question.session_id,
        "id": answer.id if answer else None,
        "datetime": turn.question.created_at.isoformat(),
        "model": answer.metadata.model if answer else None,
        "prompt": turn.question.text_content(),
        "answer": answer.text_content() if answer else None,
        **_usage(turn),
        "messages": [encode_message(message) for message in (turn.question, *turn.messages)],
    }


@logs.command("on")
@click.pass_obj
def on(state: State) -> None:
    """Keep questions and answers from now on."""
    click.echo(f"on ({write_value(state.environ, 'log', value=True)})", err=True)


@logs.command("off")
@click.pass_obj
def off(state: State) -> None:
    """Keep nothing from now on; what is kept stays."""
    click.echo(f"off ({write_value(state.environ, 'log', value=False)})", err=True)


@logs.command("path")
@click.pass_context
def path_command(ctx: click.Context) -> None:
    """Print where they are kept."""
    click.echo(_where(ctx.meta[_PLACE]))


@logs.command("status")
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Print whether they are kept, where, and how many conversations there are."""
    place = ctx.meta[_PLACE]
    with store_at(place) as store:
        facts = {
            "log": "on" if ctx.obj.config.log else "off",
            "path": _where(place),
            "conversations": sum(1 for _ in store.sessions()),
        }
    print_json(facts) if as_json else print_facts(facts)

"""`interlingua logs`: the questions that were asked and their answers, over all stored conversations."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import attrs
import click

from interlingua.codec import encode_message
from interlingua.types import Message
from interlingua_cli.arguments import Arguments
from interlingua_cli.config import write_value
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.output import json_option, mask_credentials, print_facts, print_json, print_json_lines
from interlingua_cli.schema import OUTPUT_NAME, given_schema, schema_multi_option, schema_option
from interlingua_cli.show import find_code
from interlingua_cli.streams import escape_controls
from interlingua_sessions.commands.search import indexing
from interlingua_sessions.commands.shared import arguments_before, default_place, store_at, store_option
from interlingua_sessions.store import LoggedTurn, Store

_SHOWN = 3
_SHORT = 100  # characters


@click.group("logs", invoke_without_command=True)
@click.option("-n", "--count", type=click.IntRange(0), metavar="N", help=f"The last N instead of {_SHOWN}; 0 for all.")
@click.option("-q", "--query", metavar="WORDS", help="Those whose question or answers hold all words, the best first.")
@click.option("-l", "--latest", is_flag=True, help="With -q: the latest first.")
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="Those that this model answered.")
@click.option("-T", "--tool", "tools", metavar="NAME", multiple=True,
              help="Those in which this tool ran; may be repeated, for all of them.")  # fmt: skip
@click.option("--tools", "any_tool", is_flag=True, help="Those in which a tool ran.")
@schema_option
@schema_multi_option
@click.option("-c", "--current", is_flag=True, help="Those of the last conversation, all of them.")
@click.option("--cid", "--conversation", "cid", metavar="ID", help="Those of this conversation, all of them.")
@click.option("--id-gt", metavar="ID", help="Those after this id, which --json and -s print.")
@click.option("--id-gte", metavar="ID", help="Those from this id on.")
@click.option("-r", "--response", is_flag=True, help="Print the last answer alone, as plain text.")
@click.option("-x", "--extract", is_flag=True, help="Print the first code block of the last answer alone.")
@click.option("--xl", "--extract-last", "extract_last", is_flag=True, help="Print its last code block.")
@click.option("-s", "--short", is_flag=True, help="A few lines of YAML each.")
@click.option("-u", "--usage", is_flag=True, help="Print tokens and cost, too.")
@click.option("-t", "--truncate", is_flag=True, help=f"Cut prompts and answers after {_SHORT} characters.")
@click.option("--data", is_flag=True, help="Print the JSON of the answers to a schema, one a line; all, unless -n.")
@click.option("--data-array", is_flag=True, help="The same as one JSON array.")
@click.option("--data-key", metavar="KEY", help="The same, each object of the list under this key alone.")
@click.option("--data-ids", is_flag=True, help="The same, each with its response_id and conversation_id.")
@store_option
@json_option
@plugin_option
@click.pass_context
def logs(ctx: click.Context, /, count: int | None, latest: bool, response: bool, extract: bool, extract_last: bool,
         short: bool, usage: bool, truncate: bool, data: bool, data_array: bool, data_key: str | None, data_ids: bool,
         place: str | None, as_json: bool, **given: Any) -> None:  # fmt: skip
    """List the last questions and their answers, or search them.

    `send` and `chat` keep them in the store of `interlingua session`; the oldest of those listed comes first.
    """
    ctx.meta[_PLACE] = place
    if ctx.invoked_subcommand is not None:
        return
    alone = response or extract or extract_last
    wants_data = data or data_array or data_key is not None or data_ids
    _refuse_together({"--json": as_json, "-s": short, "-r, -x and --xl": alone, "--data": wants_data})
    wanted = _Wanted(ctx.obj, **given)
    with store_at(place) as store:
        if wanted.query is not None:
            with indexing() as progress:
                store.update_index(progress)
        session_id = _newest_session(store) if wanted.current else wanted.cid
        if count is None:
            count = 1 if alone else 0 if session_id is not None or wants_data else _SHOWN
        found = wanted.find(store, session_id)
        turns = _choose(found, 1 if alone else count or None, by_matches=wanted.query is not None and not latest)
    turns.reverse()
    if alone:
        _print_answer(turns, code="last" if extract_last else "first" if extract else None)
    elif wants_data:
        values = [value for turn in turns for value in _data(turn, key=data_key, with_ids=data_ids)]
        print_json(values) if data_array else print_json_lines(values)
    elif as_json:
        print_json([_turn_json(turn, truncate=truncate) for turn in turns])
    elif not turns:
        click.echo("nothing is found" if wanted.is_filter else "nothing is kept here yet", err=True)
    elif short:
        click.echo("\n".join(line for turn in turns for line in _yaml_lines(turn, usage=usage)))
    else:
        click.echo("\n\n".join(_markdown(turn, usage=usage, truncate=truncate) for turn in turns))


def _refuse_together(forms: Mapping[str, bool]) -> None:
    given = [name for name, is_given in forms.items() if is_given]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} are two forms of output: use one of them")


@attrs.frozen
class _Turn:
    """A turn, what it was asked with, and the tools that ran in it."""

    logged: LoggedTurn
    arguments: Mapping[str, Any]
    tools: frozenset[str]

    @property
    def question(self) -> Message:
        return self.logged.question

    @property
    def answer(self) -> Message | None:
        return self.logged.answers[-1] if self.logged.answers else None

    @property
    def id(self) -> str:
        """Id of the answer, else of the question."""
        return (self.answer or self.question).id


@attrs.frozen
class _Wanted:
    """Which turns are listed."""

    _context: CommandContext
    query: str | None
    model: str | None
    tools: tuple[str, ...]
    any_tool: bool
    schema: str | None
    schema_multi: str | None
    current: bool
    cid: str | None
    id_gt: str | None
    id_gte: str | None

    @property
    def is_filter(self) -> bool:
        return any(value for name, value in attrs.asdict(self, recurse=False).items() if name != "_context")

    def find(self, store: Store, session_id: str | None) -> Iterator[_Turn]:
        """Yield the turns, the newest first."""
        model = None if self.model is None else str(self._context.registry.resolve(self.model))
        schema = given_schema(self._context.environ, self.schema, self.schema_multi)
        tools = {name.rpartition(":")[2] for name in self.tools}
        for logged in store.turns(session_id, words=(self.query or "").split(), tools=tools):
            arguments = arguments_before(store, logged.question.session_id, logged.question.id)
            turn = _Turn(logged, arguments, _ran(logged, of_schema="schema" in arguments))
            if (
                (model is None or any(answer.metadata.model == model for answer in logged.answers))
                and tools <= turn.tools
                and (turn.tools or not self.any_tool)
                and (schema is None or turn.arguments.get("schema") == schema)
                and (self.id_gt is None or turn.id > self.id_gt)
                and (self.id_gte is None or turn.id >= self.id_gte)
            ):
                yield turn


def _ran(turn: LoggedTurn, *, of_schema: bool) -> frozenset[str]:
    """Return the names of the tools whose results a turn holds, without the tool of a typed answer."""
    names = {call.id: call.name for answer in turn.answers for call in answer.tool_calls}
    results = (block for message in turn.messages for block in message.tool_results)
    ran = frozenset(names.get(block.tool_use_id, block.tool_name) or "" for block in results)
    return ran - {_output_tool(ran)} if of_schema else ran


def _output_tool(names: Collection[str]) -> str:
    """Return the name of the tool that takes an answer with a schema; it differs from a user's own `answer`."""
    apart = f"{OUTPUT_NAME}_answer"
    return apart if apart in names else OUTPUT_NAME


def _data(turn: _Turn, *, key: str | None, with_ids: bool) -> Iterator[Any]:
    """Yield the JSON of a turn's answer, or the objects of its list under a key; nothing if it holds none."""
    value = _read_data(turn)
    if value is None:
        return
    listed = value.get(key) if isinstance(value, dict) and key is not None else None
    for item in listed if isinstance(listed, list) else [value]:
        ids = {"response_id": turn.id, "conversation_id": turn.question.session_id} if with_ids else {}
        yield {**item, **ids} if isinstance(item, dict) else item


def _read_data(turn: _Turn) -> Any:
    answer, schema = turn.answer, turn.arguments.get("schema")
    if answer is None:
        return None
    calls = {call.name: call.input for call in answer.tool_calls}
    value = calls.get(_output_tool(calls))
    text = answer.text
    for part in (text, find_code(text, last=True) or "", text[text.find("{") : text.rfind("}") + 1]):
        with suppress(ValueError):
            value = json.loads(part) if value is None else value
    if schema is None:
        return value if isinstance(value, (dict, list)) else None
    from interlingua_output.schema import OutputType  # noqa: PLC0415  few ask for the data of answers

    read, problems = OutputType(schema).read(value)
    return None if problems else read


_PLACE = __name__  # in the context: where the group's options say the store is


def _where(place: str | None) -> str:
    return str(default_place()) if place is None else mask_credentials(place)


def _newest_session(store: Store) -> str:
    turn = next(store.turns(), None)
    if turn is None:
        raise click.UsageError("there is no conversation yet")
    return turn.question.session_id


def _choose(turns: Iterable[_Turn], count: int | None, *, by_matches: bool) -> list[_Turn]:
    """Return `count` turns, in reverse order of output: the newest turns, or the best matches."""
    if by_matches:
        turns = sorted(turns, key=lambda turn: turn.logged.matches, reverse=True)
    return list(islice(turns, count))


def _print_answer(turns: list[_Turn], code: str | None) -> None:
    if not turns or turns[0].answer is None:
        raise click.ClickException("there is no answer")
    text = turns[0].answer.text
    if code is not None:
        block = find_code(text, last=code == "last")
        if block is None:
            raise click.ClickException("the answer holds no code block")
        text = block
    click.echo(escape_controls(text, sys.stdout))


def _markdown(turn: _Turn, *, usage: bool, truncate: bool) -> str:
    cut = _shorten if truncate else str
    at = f"{turn.question.created_at:%Y-%m-%d %H:%M:%S}"
    lines = [f"# {at} UTC  conversation: {turn.question.session_id}  id: {turn.id}{_models(turn.logged)}"]
    if used := Arguments.from_json(turn.arguments).describe():
        lines += ["", escape_controls(used, sys.stdout)]
    lines += ["", "## Prompt", "", cut(_text(turn.question)), "", "## Answer", ""]
    lines.append("\n\n".join(cut(text) for text in map(_text, turn.logged.answers) if text) or "(none)")
    if usage:
        lines += ["", "## Usage", "", *(f"{name}: {value}" for name, value in _usage(turn.logged).items())]
    return "\n".join(lines)


def _text(message: Message) -> str:
    """Return a message's text, its media and calls, and its status if it is incomplete."""
    parts = [escape_controls(message.text, sys.stdout)]
    parts += [f"[{block.type}]" for block in message.content if hasattr(block, "media_type")]
    parts += [escape_controls(f"[calls {call.name}({call.input_json})]", sys.stdout) for call in message.tool_calls]
    if message.metadata.status != "complete":
        parts.append(f"[{message.metadata.status}]")
    return "\n".join(filter(None, parts))


def _models(turn: LoggedTurn) -> str:
    names = dict.fromkeys(answer.metadata.model for answer in turn.answers if answer.metadata.model)
    return f"  model: {', '.join(names)}" if names else ""


def _usage(turn: LoggedTurn) -> dict[str, Any]:
    """Return the summed tokens and cost of a turn's answers; None if an answer reports no usage."""
    reported = [answer.metadata.usage for answer in turn.answers if answer.metadata.usage is not None]
    found: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        values = [getattr(usage, name) for usage in reported]
        known = [value for value in values if value is not None]
        found[name] = sum(known) if known and len(known) == len(values) else None
    return found


def _yaml_lines(turn: _Turn, *, usage: bool) -> Iterator[str]:
    """Yield a turn as a YAML list item of one line each; JSON's strings are YAML's too."""
    answer = turn.answer
    facts: dict[str, Any] = {
        "model": answer.metadata.model if answer else None,
        "datetime": f"{turn.question.created_at:%Y-%m-%d %H:%M:%S}",
        "conversation": turn.question.session_id,
        "id": turn.id,
        **({"tools": sorted(turn.tools)} if turn.tools else {}),
        "prompt": _shorten(turn.question.text),
        "answer": _shorten(answer.text) if answer else None,
    }
    if usage:
        facts |= {name: None if value is None else str(value) for name, value in _usage(turn.logged).items()}
    for number, (name, value) in enumerate(facts.items()):
        yield f"{'  ' if number else '- '}{name}: {json.dumps(value, ensure_ascii=False)}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"


def _turn_json(turn: _Turn, *, truncate: bool) -> dict[str, Any]:
    answer, cut = turn.answer, _shorten if truncate else str
    messages = [encode_message(message) for message in (turn.question, *turn.logged.messages)]
    return {
        "conversation": turn.question.session_id,
        "id": turn.id,
        "datetime": turn.question.created_at.isoformat(),
        "model": answer.metadata.model if answer else None,
        "prompt": cut(turn.question.text),
        "answer": cut(answer.text) if answer else None,
        **_usage(turn.logged),
        "tools": sorted(turn.tools),
        "arguments": turn.arguments,
        **({} if truncate else {"messages": messages}),
    }


@logs.command("on")
@click.pass_obj
def on(context: CommandContext) -> None:
    """Store questions and answers from now on."""
    click.echo(f"on ({write_value(context.environ, 'log', value=True)})", err=True)


@logs.command("off")
@click.pass_obj
def off(context: CommandContext) -> None:
    """Store no more questions and answers; stored ones remain."""
    click.echo(f"off ({write_value(context.environ, 'log', value=False)})", err=True)


@logs.command("path")
@click.pass_context
def path_command(ctx: click.Context) -> None:
    """Print the path of the store."""
    click.echo(_where(ctx.meta[_PLACE]))


@logs.command("status")
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Print whether the store is on, its path, and the number of conversations."""
    place = ctx.meta[_PLACE]
    with store_at(place) as store:
        facts = {
            "log": "on" if ctx.obj.config.log else "off",
            "path": _where(place),
            "conversations": sum(1 for _ in store.sessions()),
        }
    print_json(facts) if as_json else print_facts(facts)

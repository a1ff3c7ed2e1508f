"""The command `interlingua decide`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import click

from interlingua.plugins import loads
from interlingua_cli.completion import complete_files
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import PairCommand, option_option, read_conversation, url_option
from interlingua_cli.output import json_option, losses_to_json, print_json, print_ledger, print_table, print_usage
from interlingua_decisions.questions import Choice, Locate, Question, Questions, Scale, YesNo
from interlingua_decisions.values import Decision, Undecided

_KINDS: dict[str, type[Question]] = {kind.kind: kind for kind in (YesNo, Choice, Scale, Locate)}


@click.command("decide", cls=PairCommand)
@click.argument("conversation", shell_complete=complete_files)
@click.option("--to", "model", type=MODEL, required=True, metavar="MODEL", help="The model, PROVIDER:NAME or an alias.")
@click.option(
    "--questions",
    "file",
    type=click.File("rb"),
    required=True,
    help='JSON: {"NAME": {"kind": "yes_no", "text": …}, …}.',
)
@url_option
@option_option
@json_option
@plugin_option
@click.pass_obj
def decide(
    context: CommandContext, conversation: str, model: str, file: Any, url: str | None, options: Mapping[str, Any],
    as_json: bool,
) -> None:  # fmt: skip
    """Ask typed questions about a conversation.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. A question has a kind, a text, and what
    belongs to its kind: yes_no (yes and no say what they mean), choice (options: a list, or descriptions by name),
    scale (levels: a list) or locate.
    """
    questions = read_questions(file.read())
    with context.client(model, url) as client:
        answer = client.decide(read_conversation(conversation), questions, **options)
    if as_json:
        decided = {name: _as_json(decision) for name, decision in answer.value.items()}
        usage = answer.usage
        facts = {"model": answer.message.model, "input_tokens": usage.input_tokens, "cost_usd": usage.cost_usd}
        print_json({"decisions": decided, **facts, "losses": losses_to_json(answer.losses)})
        return
    rows = [(name, decision.value, *_words(decision)) for name, decision in answer.value.items()]
    print_table(("question", "decision", "probability", "why not"), rows)
    print_ledger(answer.losses, err=True)
    print_usage(answer.message)


def read_questions(text: bytes) -> Questions:
    """Read questions from JSON.

    Raises:
        click.UsageError: the string is not JSON, or a question is invalid; the message names it.
    """
    try:
        found = loads(text)
    except ValueError as error:
        raise click.UsageError(f"the questions are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError("the questions must be an object: a name and a question each")
    made: dict[str, Question] = {}
    for name, fields in found.items():
        kind = _KINDS.get(str(fields.get("kind"))) if isinstance(fields, dict) else None
        if kind is None:
            raise click.UsageError(f"question {name!r}: kind must be one of {', '.join(_KINDS)}")
        given = {field: value for field, value in fields.items() if field != "kind"}
        try:
            made[name] = kind(**given)
        except TypeError as error:
            wanted = ", ".join(field.name for field in attrs.fields(kind))
            raise click.UsageError(f"question {name!r} takes {wanted}, not {', '.join(given) or 'nothing'}") from error
    return Questions(made)


def _as_json(decision: Decision) -> dict[str, Any]:
    shown = attrs.asdict(decision, filter=lambda field, value: field.name != "raw" and value is not None)
    return {"value": None, **shown}


def _words(decision: Decision) -> tuple[str | None, str | None]:
    """Return the probability of the decision, and why there is none."""
    if isinstance(decision, Undecided):
        return None, f"{decision.reason}{decision.detail and f': {decision.detail}'}"
    shares = getattr(decision, "probabilities", None)
    share = getattr(decision, "probability", None)
    if shares is not None:
        share = max(shares.values() if isinstance(shares, Mapping) else shares)
    return None if share is None else f"{share:g}", None

"""`explain`: what a conversation would lose, hold and cost at another model, before the swap.

Never sends anything. The command group comes in.
Tokens are an estimate of the target's adapter, and the cost is that of the input alone.
"""

from __future__ import annotations

from typing import Any

import click

from interlingua_cli.conversation import read_conversation, read_tools
from interlingua_cli.plan import estimate, planned, swap
from interlingua_cli.show import json_option, losses_json, print_json, print_ledger
from interlingua_cli.state import State, plugin_option


@click.command("explain")
@click.argument("conversation")
@click.option("--to", "model", required=True, metavar="MODEL", help="The target, PROVIDER:NAME or an alias.")
@click.option("--tools", metavar="FILE", help="Tool definitions: a JSON array, canonical or in a wire's wrapping.")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, conversation: str, model: str, tools: str | None, as_json: bool) -> None:
    """Show what a conversation loses and costs at a model.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. Nothing is sent.
    """
    state.ledger_shown = True
    definitions = read_tools(tools) if tools else []
    exchange = planned(state, read_conversation(conversation), model, tools=definitions, exact=False)
    facts = {
        "model": f"{exchange.provider.key}:{exchange.options.model}",
        "api": exchange.wire.api,
        "assumed": exchange.capabilities.assumed,
        **estimate(exchange),
    }
    facts["lost_cache"] = swap(exchange, facts["input_tokens"])
    if as_json:
        print_json({**facts, "losses": losses_json(exchange.wire.losses)})
        return
    print_ledger(exchange.wire.losses)
    click.echo(_sentence(facts))


def _sentence(facts: dict[str, Any]) -> str:
    window = facts["max_context_tokens"]
    fits = "" if window is None else f" of {window:,}" + ("" if facts["fits"] else ", which does not fit")
    price = facts["input_cost_usd"]
    cost = f"cost unknown: {facts['cost_note']}" if price is None else f"about ${price:f}"
    cost += _of_it(facts["lost_cache"])
    assumed = "; what it can carry is assumed" if facts["assumed"] else ""
    return f"{facts['model']}: about {facts['input_tokens']:,} input tokens{fits}; {cost}{assumed}"


def _of_it(lost: dict[str, Any]) -> str:
    """Say what of the cost is the lost cache's."""
    if not lost["tokens"]:  # nothing is swapped, or nothing was cached
        return ""
    counted = f"{'' if lost['source'] == 'usage' else 'about '}{lost['tokens']:,} tokens that {lost['from']} had cached"
    if lost["cost_usd"] is None:
        return f"; what reading {counted} anew costs is unknown: {lost['cost_note']}"
    return f", of it ${lost['cost_usd']:f} for reading {counted} anew"

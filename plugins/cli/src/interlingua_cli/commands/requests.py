"""`explain` and `wire`: what a conversation would become and cost at another model; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from interlingua._json import loads
from interlingua_cli.completion import complete_files
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import PairCommand, option_option, read_conversation, read_tools, url_option
from interlingua_cli.output import json_option, losses_to_json, print_json, print_ledger
from interlingua_cli.plan import add_next_message, describe_request, estimate_cost, estimate_lost_cache, plan_request


@click.command("explain")
@click.argument("conversation", shell_complete=complete_files)
@click.option(
    "--to", "model", type=MODEL, required=True, metavar="MODEL", help="The target, PROVIDER:NAME or an alias."
)
@click.option("--tools", metavar="FILE", help="Tool definitions: a JSON array, canonical or in a wire's wrapping.")
@json_option
@plugin_option
@click.pass_obj
def explain(context: CommandContext, conversation: str, model: str, tools: str | None, as_json: bool) -> None:
    """Show what a conversation loses and costs at a model.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. Nothing is sent.
    """
    context.ledger_shown = True
    definitions = read_tools(tools) if tools else []
    messages = add_next_message(read_conversation(conversation))
    options = {"allow_loss": True}  # what `send` would refuse is a row here
    request = plan_request(context, messages, model, tools=definitions, exact=False, options=options).request
    facts = {
        "model": f"{request.provider.key}:{request.options.model}",
        "api": request.wire.api,
        "assumed": request.target.capabilities.assumed,
        **estimate_cost(request),
    }
    facts["lost_cache"] = estimate_lost_cache(request, facts["input_tokens"])
    if as_json:
        print_json({**facts, "losses": losses_to_json(request.wire.losses)})
        return
    print_ledger(request.wire.losses)
    click.echo(_format_sentence(facts))


def _format_sentence(facts: dict[str, Any]) -> str:
    window = facts["max_context_tokens"]
    fits = "" if window is None else f" of {window:,}" + ("" if facts["fits"] else ", which does not fit")
    price = facts["input_cost_usd"]
    cost = f"cost unknown: {facts['cost_note']}" if price is None else f"about ${price:f}"
    cost += _format_lost_cache(facts["lost_cache"])
    assumed = "; what it can carry is assumed" if facts["assumed"] else ""
    return f"{facts['model']}: about {facts['input_tokens']:,} input tokens{fits}; {cost}{assumed}"


def _format_lost_cache(lost: dict[str, Any]) -> str:
    """Describe the part of the cost that the lost cache causes."""
    if not lost["tokens"]:  # nothing is swapped, or nothing was cached
        return ""
    if lost["source"] == "usage":
        counted = f"{lost['tokens']:,} tokens that {lost['from']} had cached"
    else:  # the answer does not say what was cached
        counted = f"about {lost['tokens']:,} tokens that {lost['from']} may have cached"
    if lost["cost_usd"] is None:
        return f"; the cost of reading {counted} again is unknown: {lost['cost_note']}"
    return f", of it ${lost['cost_usd']:f} for reading {counted} again"


@click.command("wire", cls=PairCommand)
@click.argument("conversation", shell_complete=complete_files)
@click.option(
    "--to", "model", type=MODEL, required=True, metavar="MODEL", help="The target, PROVIDER:NAME or an alias."
)
@click.option("--tools", metavar="FILE", help="Tool definitions: a JSON array, canonical or in a wire's wrapping.")
@click.option("--stream", is_flag=True, help="Ask for a stream.")
@url_option
@option_option
@json_option
@plugin_option
@click.pass_obj
def wire(context: CommandContext, conversation: str, model: str, tools: str | None, stream: bool, url: str | None,
         options: Mapping[str, Any], as_json: bool) -> None:  # fmt: skip
    """Print the exact request for a conversation, and its ledger.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. Nothing is sent; auth headers, which are
    added when a request leaves, are not shown. With --json, body is the parsed body and body_text its exact text.
    """
    context.ledger_shown = True
    definitions = read_tools(tools) if tools else []
    messages = read_conversation(conversation)
    exchange = plan_request(context, messages, model, tools=definitions, stream=stream, base_url=url, options=options)
    method, address, headers = describe_request(exchange)
    request = exchange.request.wire
    if as_json:
        print_json({
            "method": method, "url": address, "headers": headers, "api": request.api, "stream": request.stream,
            "body": loads(request.body), "body_text": request.body.decode(), "losses": losses_to_json(request.losses),
        })  # fmt: skip
        return
    click.echo(f"{method} {address}")
    for name, text in headers.items():
        click.echo(f"{name}: {text}")
    click.echo(f"\n{request.body.decode()}")
    print_ledger(request.losses, err=True)

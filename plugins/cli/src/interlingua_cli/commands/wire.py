"""`wire`: the exact request a conversation becomes, and its ledger.

Never sends anything and never prints a secret. The command group comes in.
The body is printed as it would be sent, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from interlingua.json import loads
from interlingua_cli.conversation import read_conversation, read_tools
from interlingua_cli.plan import as_sent, planned
from interlingua_cli.show import json_option, losses_json, print_json, print_ledger
from interlingua_cli.state import State, plugin_option
from interlingua_cli.typed import option_option


@click.command("wire")
@click.argument("conversation")
@click.option("--to", "model", required=True, metavar="MODEL", help="The target, PROVIDER:NAME or an alias.")
@click.option("--tools", metavar="FILE", help="Tool definitions: a JSON array, canonical or in a wire's wrapping.")
@click.option("--stream", is_flag=True, help="Ask for a stream.")
@click.option("--url", metavar="BASE", help="Another base URL for the provider.")
@option_option
@json_option
@plugin_option
@click.pass_obj
def command(state: State, conversation: str, model: str, tools: str | None, stream: bool, url: str | None,
            options: Mapping[str, Any], as_json: bool) -> None:  # fmt: skip
    """Print the exact request for a conversation, and its ledger.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. Nothing is sent; auth headers, which are
    added when a request leaves, are not shown. With --json, body is the parsed body and body_text its exact text.
    """
    state.ledger_shown = True
    definitions = read_tools(tools) if tools else []
    messages = read_conversation(conversation)
    exchange = planned(state, messages, model, tools=definitions, stream=stream, base_url=url, options=options)
    method, address, headers = as_sent(exchange)
    request = exchange.wire
    if as_json:
        print_json({
            "method": method, "url": address, "headers": headers, "api": request.api, "stream": request.stream,
            "body": loads(request.body), "body_text": request.body.decode(), "losses": losses_json(request.losses),
        })  # fmt: skip
        return
    click.echo(f"{method} {address}")
    for name, text in headers.items():
        click.echo(f"{name}: {text}")
    click.echo(f"\n{request.body.decode()}")
    print_ledger(request.losses, err=True)

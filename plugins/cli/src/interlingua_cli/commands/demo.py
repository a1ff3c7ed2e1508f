"""`demo`: one conversation that crosses providers and comes back, replayed or live."""

from __future__ import annotations

from typing import Any

import click

from interlingua._http.client import Client
from interlingua.codec import encode_message
from interlingua.testing import MemoryTransport
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.demo.printer import DemoPrinter
from interlingua_cli.demo.replay import RecordedAnswers
from interlingua_cli.demo.session import (
    Step,
    Swap,
    UserTurn,
    crossing_scenario,
    live_scenario,
    local_scenario,
    recorded_scenario,
    run_demo,
)
from interlingua_cli.output import json_option, losses_to_json, print_json


def step_to_json(step: Step) -> dict[str, Any]:
    """Return one step as plain JSON."""
    if isinstance(step, UserTurn):
        return {"type": "turn", "number": step.number, "model": step.model, "message": encode_message(step.message)}
    if isinstance(step, Swap):
        facts = {**step.estimate, "lost_cache": dict(step.lost_cache), "kept": step.kept}
        return {"type": "ledger", "model": step.model, "losses": losses_to_json(step.losses), **facts}
    return {"type": "message", "message": encode_message(step.message)}


@click.command("demo")
@click.option("--live", metavar="MODEL,MODEL", help="Talk to these two models, PROVIDER:NAME each.")
@click.option("--live-url", metavar="URL", help="Talk to a local server at this address, over both recorded APIs.")
@click.option("--recorded", is_flag=True, help="Replay recorded answers of a local server, over two APIs.")
@json_option
@plugin_option
@click.pass_obj
def demo(context: CommandContext, live: str | None, live_url: str | None, recorded: bool, as_json: bool) -> None:
    """Show one conversation that crosses providers.

    A conversation with an image, reasoning and parallel tool calls moves from one service to another, over four APIs,
    and back; for each swap the demo shows the losses, the cost and the savings of the lost prompt cache. It needs
    neither a key nor a network: the answers are written by hand in each service's format, and replayed only for the
    exact request they belong to. --live talks to real models, --recorded replays real answers.
    """
    if live:
        chosen = live_scenario(live)
    elif live_url:
        chosen = local_scenario(live_url)
    else:
        chosen = recorded_scenario() if recorded else crossing_scenario()
    context.ledger_shown = True
    context.models_announced = frozenset(chosen.as_if)  # the closing lines report them
    settings = {**context.settings, **chosen.settings}
    transport = MemoryTransport(RecordedAnswers(chosen.cassette)) if chosen.cassette else None
    with Client(registry=context.registry, settings=settings, transport=transport) as client:
        steps = run_demo(client, chosen.models, chosen.turns, **chosen.options)
        if as_json:
            print_json({"source": chosen.where, "steps": [step_to_json(step) for step in steps]})
            return
        names = {model: context.registry.resolve(other) for model, other in chosen.as_if.items()}
        infos = {model: context.registry.provider(name.provider).model(name.name) for model, name in names.items()}
        printer = DemoPrinter({model: info for model, info in infos.items() if info is not None})
        printer.print_start()
        for step in steps:
            printer.print_step(step)
        printer.print_end(chosen.where)

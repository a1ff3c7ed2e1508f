"""`demo`: the main job in one command, from recordings, from live services or from a local server.

Never holds the session itself (`interlingua_cli.demo` does). The command group comes in.
What is replayed is recorded traffic; what it was recorded from is printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interlingua_cli.show import json_option, print_json
from interlingua_cli.state import State, plugin_option

if TYPE_CHECKING:
    from interlingua.http.client import Client
    from interlingua_cli.demo.cast import Cast


@click.command("demo")
@click.option("--live", metavar="MODEL,MODEL", help="Talk to these two models, PROVIDER:NAME each.")
@click.option("--live-url", metavar="URL", help="Talk to a local server at this address, over both recorded wires.")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, live: str | None, live_url: str | None, as_json: bool) -> None:
    """Show one conversation that crosses providers.

    Three turns: summarise a file with a tool, swap the provider and read another file, swap back. Without options it is
    replayed from recorded exchanges and needs neither a key nor a network.
    """
    from interlingua_cli.demo import cast, script, show  # noqa: PLC0415  help needs none of them

    chosen = cast.live(live) if live else cast.local(live_url) if live_url else cast.recorded()
    state.ledger_shown = True
    state.models_told = frozenset(chosen.as_if)  # in the closing lines
    with _client(state, chosen) as client:
        steps = script.play(client, chosen.models, chosen.turns, **chosen.options)
        if as_json:
            print_json({"source": chosen.where, "steps": [show.as_json(step) for step in steps]})
            return
        priced = {model: state.registry.resolve(other) for model, other in chosen.as_if.items()}
        infos = {model: state.registry.provider(at.provider).model(at.name) for model, at in priced.items()}
        printed = show.Show({model: info for model, info in infos.items() if info is not None})
        for step in steps:
            printed(step)
        printed.end(chosen.where)


def _client(state: State, chosen: Cast) -> Client:
    from interlingua.http.client import Client  # noqa: PLC0415

    settings = {**state.settings, **chosen.settings}
    http_client = None
    if chosen.cassette is not None:
        from interlingua.http.transport import replaying_client  # noqa: PLC0415
        from interlingua_cli.demo.cassette import Cassette  # noqa: PLC0415

        http_client = replaying_client(Cassette(chosen.cassette))
    return Client(registry=state.registry, settings=settings, http_client=http_client)

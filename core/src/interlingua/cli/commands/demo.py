"""`demo`: the main job in one command, from recordings, from live services or from a local server.

Never holds the session itself (`interlingua.cli.demo` does). The command group comes in.
What is replayed is recorded traffic; what it was recorded from is printed.
"""

from __future__ import annotations

from typing import Any

import click

from interlingua.cli.demo.script import LIVE, SMALL
from interlingua.cli.show import json_option, print_json
from interlingua.cli.state import State, plugin_option
from interlingua.errors import CallerError

# the model a llama.cpp server was started with answers under any name
LOCAL = ("anthropic:smollm2-135m-instruct", "openai:smollm2-135m-instruct")
LOCAL_OPTIONS = {"max_tokens": 60, "temperature": 0.0}
CASSETTE = "session.yaml"
_RECORDED = "replayed from cassettes/demo: llama.cpp's server with SmolLM2-135M-Instruct, recorded over both wires"


@click.command("demo")
@click.option("--live", metavar="MODEL,MODEL", help="Talk to these two models, such as anthropic:…,openai:….")
@click.option("--live-url", metavar="URL", help="Talk to a llama.cpp server at this address, over both wires.")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, live: str | None, live_url: str | None, as_json: bool) -> None:
    """Show one conversation that crosses providers.

    Three turns: summarise a file with a tool, swap the provider and read another file, swap back. Without options it is
    replayed from recorded exchanges and needs neither a key nor a network.
    """
    from interlingua.cli.demo import script, show  # noqa: PLC0415  help needs neither

    client, models, options, where = _cast(state, live, live_url)
    state.ledger_shown = True
    printed = show.Show() if not as_json else None
    steps: list[dict[str, Any]] = []
    with client:
        for step in script.play(client, models, LIVE if live else SMALL, **options):
            if printed is not None:
                printed(step)
            else:
                steps.append(show.as_json(step))
    if printed is not None:
        printed.end(where)
    else:
        print_json({"source": where, "steps": steps})


def _cast(state: State, live: str | None, live_url: str | None) -> tuple[Any, tuple[str, ...], dict[str, Any], str]:
    """Choose who plays: a client, two models, options, and the line that says where the answers came from."""
    from interlingua.client import Client  # noqa: PLC0415

    if live:
        models = tuple(name.strip() for name in live.split(","))
        if len(models) != 2 or not all(models):
            raise CallerError("--live takes two models, PROVIDER:NAME each, with a comma between them")
        return Client(registry=state.registry, settings=state.settings), models, {}, "live"
    if live_url:
        base = live_url.rstrip("/").removesuffix("/v1")
        settings = {"anthropic": {"base_url": base}, "openai": {"base_url": f"{base}/v1"}}
        return Client(registry=state.registry, settings=settings), LOCAL, LOCAL_OPTIONS, f"live from {base}"
    from interlingua.cli.demo.cassette import Cassette, find_folder  # noqa: PLC0415
    from interlingua.transport.replay import replaying_client  # noqa: PLC0415

    replayed = replaying_client(Cassette(find_folder() / CASSETTE))
    settings = {"anthropic": {"base_url": "http://recorded"}, "openai": {"base_url": "http://recorded/v1"}}
    client = Client(registry=state.registry, settings=settings, http_client=replayed)
    return client, LOCAL, LOCAL_OPTIONS, _RECORDED

"""`models`: what the catalogues know, without asking the network unless `--live` says so.

Never guesses: a limit or price that is not in a catalogue is an empty cell. The command group comes in.
Prices are list prices of today, USD per million tokens.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from interlingua.catalogue import ModelInfo
from interlingua_cli.show import json_option, print_json, print_table
from interlingua_cli.state import State, plugin_option

_COLUMNS = ("model", "context", "output", "$ in", "$ out", "aliases")


@click.command("models")
@click.argument("provider", required=False)
@click.option("--live", is_flag=True, help="Ask the service which models it has; needs PROVIDER.")
@click.option("--url", metavar="BASE", help="Another base URL for the provider, such as a local server's.")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, provider: str | None, live: bool, url: str | None, as_json: bool) -> None:
    """List the models in the catalogues, or in one provider's."""
    if live:
        _live(state, provider, url, as_json)
        return
    registry = state.registry
    providers = [registry.provider(provider)] if provider else registry.providers()
    now = datetime.now(UTC)
    rows = [_row(each.key, info, now) for each in providers for info in each.models()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"no catalogue comes with {provider}: --live asks the service which models it has", err=True)
        return
    print_table(_COLUMNS, [_cells(row) for row in rows], spare=("aliases",))


def _live(state: State, provider: str | None, url: str | None, as_json: bool) -> None:
    if provider is None:
        raise click.UsageError("--live needs PROVIDER")
    with state.client(f"{provider}:any", url) as client:
        names = client.live_models(provider)
    if as_json:
        print_json([f"{provider}:{name}" for name in names])
        return
    for name in names:
        click.echo(f"{provider}:{name}")


def _row(key: str, info: ModelInfo, now: datetime) -> dict[str, Any]:
    price = info.price_at(now)
    return {
        "model": f"{key}:{info.id}",
        "aliases": list(info.aliases),
        "max_context_tokens": info.max_context_tokens,
        "max_output_tokens": info.max_output_tokens,
        "input_per_mtok_usd": price.input_per_mtok_usd if price else None,
        "output_per_mtok_usd": price.output_per_mtok_usd if price else None,
        "pricing_version": info.pricing_version,
    }


def _cells(row: dict[str, Any]) -> list[Any]:
    names = ("model", "max_context_tokens", "max_output_tokens", "input_per_mtok_usd", "output_per_mtok_usd")
    return [*(row[name] for name in names), " ".join(row["aliases"])]

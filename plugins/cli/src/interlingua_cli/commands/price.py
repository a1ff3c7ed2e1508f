"""`price`: list prices of a model, or the exact cost of given token counts.

Never rounds and never says 0 for a price that is not known. The command group comes in.
Counts are inclusive: cached and written tokens are parts of the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import Any

import attrs
import click

from interlingua.catalogue import ModelInfo
from interlingua.pricing import cost_of
from interlingua.types.messages import Usage
from interlingua_cli.show import json_option, print_facts, print_json
from interlingua_cli.state import State, plugin_option

_COUNT = click.IntRange(min=0)


@click.command("price")
@click.argument("model")
@click.option("--input", "input_tokens", type=_COUNT, metavar="N", help="Input tokens, cached and written included.")
@click.option("--output", "output_tokens", type=_COUNT, metavar="N", help="Output tokens, reasoning included.")
@click.option("--cached", "cached_input_tokens", type=_COUNT, metavar="N", help="Input tokens read from a cache.")
@click.option("--cache-write", "cache_creation_input_tokens", type=_COUNT, metavar="N",
              help="Input tokens written to a cache.")  # fmt: skip
@json_option
@plugin_option
@click.pass_obj
def command(state: State, /, model: str, as_json: bool, **counts: int | None) -> None:
    """Print a model's list prices, or what given tokens cost.

    Prices are in USD per million tokens.
    """
    name = state.registry.resolve(model)
    provider = state.registry.provider(name.provider)
    info = provider.model(name.name)
    if info is None:
        near = get_close_matches(name.name, [known.id for known in provider.models()], n=3)
        hint = f"; there {'are' if near[1:] else 'is'} {', '.join(near)}" if near else ""
        click.echo(f"the catalogue does not know {name}{hint}", err=True)
    asked = any(count is not None for count in counts.values())
    facts: dict[str, Any] = {"model": str(name), "pricing_version": info.pricing_version if info else None}
    facts |= _cost(info, counts) if asked else _prices(info)
    if as_json:
        print_json(facts)
        return
    tiers = facts.pop("tiers", ())
    print_facts(facts)
    for tier in tiers:
        click.echo()
        print_facts(tier)


def _cost(info: ModelInfo | None, counts: Mapping[str, int | None]) -> dict[str, Any]:
    both = {name: counts[name] or 0 for name in ("input_tokens", "output_tokens")}
    usage: Any = {**counts, **both}
    cost = cost_of(Usage(**usage), info, datetime.now(UTC))
    facts = {"cost_usd": cost.cost_usd, "cost_note": cost.cost_note}
    return facts if cost.cost is None else {**facts, **attrs.asdict(cost.cost)}


def _prices(info: ModelInfo | None) -> dict[str, Any]:
    price = info.price_at(datetime.now(UTC)) if info else None
    if price is None:
        return {"note": "no price known"}
    return attrs.asdict(price, value_serializer=_plain)


def _plain(_owner: object, _field: object, value: Any) -> Any:
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value

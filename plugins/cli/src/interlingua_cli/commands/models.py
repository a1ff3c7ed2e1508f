"""`models`, `providers` and `price`: what is installed, what it can do and what it costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import Any

import attrs
import click

from interlingua._catalogue import ModelInfo, load_prices
from interlingua._json import loads
from interlingua._plugins.registry import ProviderEntry
from interlingua._pricing import cost_of
from interlingua.errors import InterlinguaError
from interlingua.types import Usage
from interlingua_cli.completion import complete_models_words
from interlingua_cli.config import prices_path, write_value
from interlingua_cli.context import MODEL, CommandContext, key_state, plugin_option
from interlingua_cli.input import url_option, write_file
from interlingua_cli.output import json_option, mask_credentials, print_facts, print_json, print_table

_MODEL_COLUMNS = ("model", "context", "output", "$ in", "$ out", "aliases")


@click.command("models")
@click.argument(
    "words", nargs=-1, metavar="[PROVIDER | default [MODEL] | update SOURCE]", shell_complete=complete_models_words
)
@click.option("--live", is_flag=True, help="Ask the service which models it has; needs PROVIDER.")
@url_option
@json_option
@plugin_option
@click.pass_obj
def models(context: CommandContext, words: tuple[str, ...], live: bool, url: str | None, as_json: bool) -> None:
    """List the models in the catalogues, or in one provider's.

    `interlingua models default` prints the default model; with MODEL, it sets it. `interlingua models update SOURCE`
    adds the prices in a file or at a URL to yours, which replace those of the catalogues.
    """
    if words[:1] == ("update",):
        _update_prices(context, words[1:])
        return
    if words[:1] == ("default",):
        _default_model(context, words[1:], as_json=as_json)
        return
    if len(words) > 1:
        raise click.UsageError(f"expected at most one PROVIDER, got {' '.join(words)}")
    provider = words[0] if words else None
    if live:
        _list_live(context, provider, url, as_json)
        return
    if url is not None:
        raise click.UsageError("--url is the address for --live: add --live")
    registry = context.registry
    providers = [registry.provider(provider)] if provider else registry.providers()
    now = datetime.now(UTC)
    rows = [_model_row(each.key, each.model(info.id) or info, now) for each in providers for info in each.models()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"{provider} has no catalogue: --live asks the service for its models", err=True)
        return
    print_table(_MODEL_COLUMNS, [_model_cells(row) for row in rows], spare=("aliases",))


def _default_model(context: CommandContext, names: tuple[str, ...], *, as_json: bool) -> None:
    """Print the default model, or set it."""
    if len(names) > 1:
        raise click.UsageError("expected one MODEL")
    if not names:
        if as_json:
            print_json(context.config.default_model)
        elif context.config.default_model is None:
            click.echo("there is no default model: `interlingua models default MODEL` sets it", err=True)
        else:
            click.echo(context.config.default_model)
        return
    MODEL.convert(names[0], None, click.get_current_context())
    context.registry.provider(context.registry.resolve(names[0]).provider)
    path = write_value(context.environ, "default_model", value=names[0])
    click.echo(f"the default is now {names[0]} ({path})", err=True)


def _update_prices(context: CommandContext, sources: tuple[str, ...]) -> None:
    """Check the prices at a place and add them to the user's; of a model in both, the new ones count."""
    from interlingua_cli.attachments import read_place  # noqa: PLC0415  other listings read nothing

    if len(sources) != 1:
        raise click.UsageError("expected one SOURCE, a file or a URL")
    data = read_place(sources[0])
    found = load_prices(data)
    path = prices_path(context.environ)
    old: dict[str, Any] = loads(path.read_bytes()) if path.exists() else {}
    new = loads(data)
    merged: dict[str, list[Any]] = {key: list(rows) for key, rows in old.get("providers", {}).items()}
    for key, rows in new["providers"].items():
        names = {row["id"] for row in rows}
        kept = [row for row in merged.get(key, ()) if row["id"] not in names]
        merged[key] = kept + [{"pricing_version": new["pricing_version"], **row} for row in rows]
    text = json.dumps({"pricing_version": new["pricing_version"], "providers": merged}, ensure_ascii=False, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path.resolve(), f"{text}\n")
    count = sum(map(len, found.values()))
    click.echo(f"{count:,} models of {', '.join(found)} have prices of {new['pricing_version']} ({path})", err=True)
    if unknown := sorted(found.keys() - context.registry.found().keys()):
        click.echo(f"warning: not installed: {', '.join(unknown)}", err=True)


def _list_live(context: CommandContext, provider: str | None, url: str | None, as_json: bool) -> None:
    if provider is None:
        raise click.UsageError("--live needs PROVIDER")
    with context.client(f"{provider}:any", url) as client:
        names = client.list_models(provider)
    if as_json:
        print_json([f"{provider}:{name}" for name in names])
        return
    for name in names:
        click.echo(f"{provider}:{name}")


def _model_row(key: str, info: ModelInfo, now: datetime) -> dict[str, Any]:
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


def _model_cells(row: dict[str, Any]) -> list[Any]:
    names = ("model", "max_context_tokens", "max_output_tokens", "input_per_mtok_usd", "output_per_mtok_usd")
    return [*(row[name] for name in names), " ".join(row["aliases"])]


_PROVIDER_COLUMNS = ("key", "kind", "distribution", "version", "api key", "variables", "apis")
_SPARE = ("kind", "version", "distribution")


@click.command("providers")
@click.option("--directory", is_flag=True, help="List the known distributions instead, installed or not.")
@json_option
@plugin_option
@click.pass_obj
def providers(context: CommandContext, directory: bool, as_json: bool) -> None:
    """List the providers, and whether their keys are set."""
    if directory:
        _list_directory(as_json=as_json)
        return
    registry = context.registry
    rows = [_provider_row(context, found) for found in registry.found().values()]
    keys = {row["key"] for row in rows}
    rows += [{"key": key, "kind": "plugin", "broken": str(error)}
             for key, error in registry.broken.items() if key not in keys]  # fmt: skip
    if as_json:
        print_json(rows)
        return
    print_table(_PROVIDER_COLUMNS, [_provider_cells(row) for row in rows], spare=_SPARE)
    for row in rows:
        if row.get("broken"):
            click.echo(f"{row['key']} is broken: {row['broken']}")


def _list_directory(*, as_json: bool) -> None:
    from interlingua_cli.directory import is_installed, read_directory  # noqa: PLC0415  only this listing reads it

    rows = [{**attrs.asdict(row), "installed": is_installed(row.distribution)} for row in read_directory()]
    if as_json:
        print_json(rows)
        return
    cells = [
        (row["distribution"], row["tier"], "yes" if row["installed"] else None, " ".join(row["keys"]) or row["summary"])
        for row in rows
    ]
    print_table(("distribution", "tier", "installed", "providers, or what it is"), cells)


def _provider_row(context: CommandContext, found: ProviderEntry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": found.key,
        "kind": found.kind,
        "distribution": found.distribution.name,
        "version": found.distribution.version,
    }
    try:
        connection = context.connection(found.key)
    except InterlinguaError as error:
        return {**row, "broken": str(error)}
    return {
        **row,
        "base_url": mask_credentials(connection.base_url),
        "has_key": connection.has_key,
        "key_state": key_state(connection),
        "env": list(connection.env_vars),
        "apis": list(connection.endpoints),
    }


def _provider_cells(row: Mapping[str, Any]) -> list[Any]:
    if row.get("broken"):
        return [row["key"], row["kind"], row.get("distribution"), row.get("version"), "broken", None, None]
    names = ("\n".join(row["env"]), "\n".join(row["apis"]))
    return [row["key"], row["kind"], row["distribution"], row["version"], row["key_state"], *names]


_COUNT = click.IntRange(min=0)


@click.command("price")
@click.argument("model", type=MODEL)
@click.option("--input", "input_tokens", type=_COUNT, metavar="N", help="Input tokens, cached and written included.")
@click.option("--output", "output_tokens", type=_COUNT, metavar="N", help="Output tokens, reasoning included.")
@click.option("--cached", "cached_input_tokens", type=_COUNT, metavar="N", help="Input tokens read from a cache.")
@click.option("--cache-write", "cache_creation_input_tokens", type=_COUNT, metavar="N",
              help="Input tokens written to a cache.")  # fmt: skip
@json_option
@plugin_option
@click.pass_obj
def price(context: CommandContext, /, model: str, as_json: bool, **counts: int | None) -> None:
    """Print a model's list prices, or what given tokens cost.

    Prices are in USD per million tokens.
    """
    name = context.registry.resolve(model)
    provider = context.registry.provider(name.provider)
    info = provider.model(name.name)
    if info is None:
        near = get_close_matches(name.name, [known.id for known in provider.models()], n=3)
        hint = f"; there {'are' if near[1:] else 'is'} {', '.join(near)}" if near else ""
        click.echo(f"the catalogue does not know {name}{hint}", err=True)
    counted = any(count is not None for count in counts.values())
    facts: dict[str, Any] = {"model": str(name), "pricing_version": info.pricing_version if info else None}
    facts |= _cost_facts(info, counts) if counted else _price_facts(info)
    if as_json:
        print_json(facts)
        return
    tiers = facts.pop("tiers", ())
    print_facts(_without_units(facts))
    for tier in tiers:
        click.echo()
        print_facts(_without_units(tier))


def _without_units(facts: dict[str, Any]) -> dict[str, Any]:
    """Return prices with the prices of extra units in the same table."""
    return {name: value for name, value in facts.items() if name != "units"} | dict(facts.get("units") or {})


def _cost_facts(info: ModelInfo | None, counts: Mapping[str, int | None]) -> dict[str, Any]:
    both = {name: counts[name] or 0 for name in ("input_tokens", "output_tokens")}
    usage: Any = {**counts, **both}
    cost = cost_of(Usage(**usage), info, datetime.now(UTC))
    facts = {"cost_usd": cost.cost_usd, "cost_note": cost.cost_note}
    return facts if cost.cost is None else {**facts, **attrs.asdict(cost.cost)}


def _price_facts(info: ModelInfo | None) -> dict[str, Any]:
    price = info.price_at(datetime.now(UTC)) if info else None
    if price is None:
        return {"note": "no price known"}
    return attrs.asdict(
        price, value_serializer=lambda _, __, value: value.isoformat() if isinstance(value, (date, time)) else value
    )

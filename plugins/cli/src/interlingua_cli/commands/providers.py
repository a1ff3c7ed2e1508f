"""`providers`: which providers are installed or configured, and whether each can be used.

Never reaches the network and never shows a key. The command group comes in.
A broken provider is a row with its reason, not the end of the listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from interlingua.errors import InterlinguaError
from interlingua.plugins.registry import ProviderEntry
from interlingua.plugins.wire import ConnectionSettings, WireRequest
from interlingua_cli.show import json_option, print_json, print_table, without_credentials
from interlingua_cli.state import State, plugin_option

_COLUMNS = ("key", "kind", "distribution", "version", "api key", "variables", "apis")


_SPARE = ("version", "distribution")


@click.command("providers")
@json_option
@plugin_option
@click.pass_obj
def command(state: State, as_json: bool) -> None:
    """List the providers, and whether their keys are there."""
    registry = state.registry
    rows = [_row(state, found) for found in registry.found().values()]
    keys = {row["key"] for row in rows}
    rows += [{"key": key, "kind": "plugin", "broken": str(error)}
             for key, error in registry.broken.items() if key not in keys]  # fmt: skip
    for key in sorted(state.config.providers.keys() - {row["key"] for row in rows}):
        click.echo(f"warning: the configuration has settings for {key!r}, and no such provider is here", err=True)
    if as_json:
        print_json(rows)
        return
    print_table(_COLUMNS, [_cells(row) for row in rows], spare=_SPARE)
    for row in rows:
        if row.get("broken"):
            click.echo(f"{row['key']} is broken: {row['broken']}")


def _row(state: State, found: ProviderEntry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": found.key,
        "kind": found.kind,
        "distribution": found.distribution.name,
        "version": found.distribution.version,
    }
    given = {name: value for name, value in state.settings.get(found.key, {}).items() if value is not None}
    try:
        connection = state.registry.provider(found.key).connection(ConnectionSettings(environ=state.environ, **given))
    except InterlinguaError as error:
        return {**row, "broken": str(error)}
    signed = bool(connection.auth(WireRequest(path="/", body=b"", api=""))) if connection.has_key else False
    return {
        **row,
        "base_url": without_credentials(connection.base_url),
        "has_key": connection.has_key,
        "key_state": "found" if signed else "not needed" if connection.has_key else "missing",
        "env": list(connection.env),
        "apis": list(connection.endpoints),
    }


def _cells(row: Mapping[str, Any]) -> list[Any]:
    if row.get("broken"):
        return [row["key"], row["kind"], row.get("distribution"), row.get("version"), "broken", None, None]
    names = (" ".join(row["env"]), " ".join(row["apis"]))
    return [row["key"], row["kind"], row["distribution"], row["version"], row["key_state"], *names]

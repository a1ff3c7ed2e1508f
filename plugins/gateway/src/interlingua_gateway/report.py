"""The report on a configuration: names, the models behind them, their prices, and the names that keys may use."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import attrs
import click

from interlingua import cost_of
from interlingua.errors import InterlinguaError
from interlingua.types import Origin, Usage
from interlingua_gateway.config import ModelRoute
from interlingua_gateway.models import RoutedModel, choose_models
from interlingua_gateway.services import Services

_MILLION = 1_000_000


def printable(text: str) -> str:
    """Return a caller's or a service's text for a terminal: characters that are not printable become escapes."""
    return text if text.isprintable() else "".join([one if one.isprintable() else ascii(one)[1:-1] for one in text])


def report_of(services: Services) -> dict[str, Any]:
    """Return what a gateway serves, as plain values for JSON.

    Its `problems` are what would make requests fail: models that do not exist, and providers without a key.
    """
    config = services.config
    problems = [*services.warnings(), *services.route_problems(config)]
    routes = []
    for route in config.routes:
        row: dict[str, Any] = {"match": route.match, "models": []}
        for name in route.to:
            if "{model}" in name:
                row["models"].append({"model": name})
                continue
            alone = attrs.evolve(config, routes=(ModelRoute(match=name, to=(name,)),))
            with suppress(InterlinguaError):  # it is among the problems
                row["models"] += [
                    _model_row(services, model) for model in choose_models(alone, services.registry, name, "").models
                ]
        routes.append(row)
    return {
        "apis": [
            {"api": api.name, "provider": plugin.key, "paths": [f"{route.method} {route.path}" for route in api.routes]}
            for plugin, api in services.apis
        ],
        "routes": routes,
        "other_names": not config.routes_only,
        "admin_login": None if (login := config.admin_login) is None else attrs.asdict(login),
        "keys": _key_rows(services),
        "problems": list(dict.fromkeys(problems)),
    }


def _model_row(services: Services, model: RoutedModel) -> dict[str, Any]:
    info = services.model_info(Origin(model.provider, "", model.name))
    now = datetime.now(UTC)
    given, made = (
        cost_of(usage, info, now).cost_usd
        for usage in (Usage(input_tokens=_MILLION, output_tokens=0), Usage(input_tokens=0, output_tokens=_MILLION))
    )
    return {
        "model": str(model),
        **({} if model.deployment is None else {"deployment": model.deployment.name}),
        "input_per_mtok_usd": None if given is None else f"{given.normalize():f}",
        "output_per_mtok_usd": None if made is None else f"{made.normalize():f}",
    }


def _key_rows(services: Services) -> list[dict[str, Any]]:
    if services.config.auth != "keys" or services.store is None:
        return []
    return [
        {"id": key.id, "name": key.name, "models": list(key.models), "names": services.model_names(key.models),
         "budget_usd": None if key.budget_usd is None else str(key.budget_usd)}
        for key in services.store.list_keys() if key.revoked is None
    ]  # fmt: skip


def print_report(report: dict[str, Any]) -> None:
    """Print a report for people."""
    for api in [one for one in report["apis"] if one["paths"]]:  # others are served at the paths of another one
        click.echo(f"API {api['api']} of {api['provider']}: {', '.join(api['paths'])}")
    for route in report["routes"]:
        click.echo(f"{route['match']}")
        for model in route["models"]:
            place = f"{model['deployment']} = " if "deployment" in model else ""
            click.echo(f"  {place}{model['model']}{_price_text(model)}")
    if report["other_names"]:
        click.echo("every other name is read as provider:name; routes_only = true refuses it")
    if login := report["admin_login"]:
        click.echo(f"administrators, by {login['issuer']}: {', '.join([*login['emails'], *login['groups']])}")
    for key in report["keys"]:
        budget = f", budget {key['budget_usd']} USD" if key["budget_usd"] else ""
        name = printable(key["name"])
        click.echo(f"key {key['id']} ({name}{budget}): {', '.join(key['models']) or 'every model'}")
    for problem in report["problems"]:
        click.echo(f"problem: {problem}", err=True)


def _price_text(model: dict[str, Any]) -> str:
    if "input_per_mtok_usd" not in model:
        return ""
    given, made = model["input_per_mtok_usd"], model["output_per_mtok_usd"]
    if given is None and made is None:
        return "  no price is known: refused for keys with a budget"
    return f"  {given} USD per million input tokens, {made} output"

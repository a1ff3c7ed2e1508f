"""`session reprice` and `session verify`."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import attrs
import click

from interlingua.catalogue import ModelInfo
from interlingua.types import ModelId
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.state import State, plugin_option
from interlingua_sessions.commands.shared import over_messages, store_at, store_option
from interlingua_sessions.store import Repriced


@click.command("reprice")
@click.argument("session", required=False)
@click.option("--at", type=click.DateTime(("%Y-%m-%d",)), help="Prices of this day instead of each message's own.")
@store_option
@json_option
@plugin_option
@click.pass_obj
def reprice_command(state: State, session: str | None, at: datetime | None, place: str | None, as_json: bool) -> None:
    """Price stored answers anew from today's catalogues.

    Each change is stored as it is printed, beside what it was before; Ctrl-C loses nothing.
    """

    @cache
    def lookup(model: str) -> ModelInfo | None:
        return _info(state, model)

    with store_at(place) as store:
        if session is not None:
            store.session(session)
        with over_messages("looked at", store, session) as progress:
            changed = list(store.reprice(lookup, session_id=session, at=at, progress=progress))
    if as_json:
        print_json([_as_json(one) for one in changed])
        return
    rows = [(one.session_id, one.message_id, one.old.cost_usd, one.new.cost_usd, one.new.pricing_version)
            for one in changed]  # fmt: skip
    print_table(("session", "message", "old USD", "new USD", "prices of"), rows)
    total = sum(((one.new.cost_usd or Decimal(0)) - (one.old.cost_usd or Decimal(0)) for one in changed), Decimal(0))
    click.echo(f"{len(changed):,} repriced, {total:+f} USD", err=True)


def _info(state: State, model: str) -> ModelInfo | None:
    asked: ModelId = state.registry.resolve(model)
    if asked.provider not in state.registry.found():
        return None
    return state.registry.provider(asked.provider).model(asked.name)


def _as_json(one: Repriced) -> dict[str, Any]:
    usages = {name: attrs.asdict(getattr(one, name)) for name in ("old", "new")}
    return {**attrs.asdict(one, recurse=False), **usages, "repriced_at": one.repriced_at.isoformat()}


@click.command("verify")
@click.argument("session", required=False)
@store_option
@json_option
@plugin_option
@click.pass_context
def verify_command(ctx: click.Context, session: str | None, place: str | None, as_json: bool) -> None:
    """Check that stored sessions are whole.

    Exit code 1 when something is wrong that sending would not repair.
    """
    with store_at(place) as store:
        if session is not None:
            store.session(session)
        with over_messages("verified", store, session) as progress:
            findings = list(store.verify(session, progress=progress))
    if as_json:
        print_json([attrs.asdict(finding) for finding in findings])
    elif findings:
        rows = [(one.session_id, one.message_id, one.check, one.message, "repairable" if one.repairable else "broken")
                for one in findings]  # fmt: skip
        print_table(("session", "message", "check", "what is wrong", ""), rows)
    else:
        click.echo("nothing is wrong")
    if any(not finding.repairable for finding in findings):
        ctx.exit(1)

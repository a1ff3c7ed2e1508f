"""`session verify`: is everything that is stored whole.

Never repairs and never asks a service. The group comes in.
What sending would repair by itself is told apart from what nothing repairs.
"""

from __future__ import annotations

import attrs
import click

from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.state import plugin_option
from interlingua_sessions.cli.place import store_at, store_option
from interlingua_sessions.cli.progress import over_messages


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

"""`doctor`: find what a provider would reject in a stored conversation, show the repair as a diff, and write it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from interlingua._request.prepare import RequestDraft
from interlingua.errors import DecodeError
from interlingua.types import Message
from interlingua_cli.completion import complete_files
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.doctor import Diagnosis, check_target, diff_repair, examine, write_repaired
from interlingua_cli.input import file_name
from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.plan import plan_request
from interlingua_cli.streams import escape_controls

_TARGET = "Ask this target too, PROVIDER:NAME or an alias: its limits, its window, what its linter knows."
_REPAIR = "Write the repaired conversation here, and what was taken out beside it."


@click.command("doctor")
@click.argument("conversation", shell_complete=complete_files)
@click.option("--to", "model", type=MODEL, metavar="MODEL", help=_TARGET)
@click.option("--repair", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT", help=_REPAIR)
@click.option("--in-place", is_flag=True, help="Repair the file itself; a copy of it is kept as FILE.bak.")
@json_option
@plugin_option
@click.pass_obj
def doctor(
    context: CommandContext, conversation: str, model: str | None, out: Path | None, in_place: bool, as_json: bool
) -> None:
    """Find what would make a provider reject a conversation, and repair it.

    CONVERSATION is JSON Lines of canonical messages; - is standard input. Nothing is sent and, without --repair or
    --in-place, nothing is written. Lines that are not messages are never removed, and another program's session file
    is recognised and left unchanged. The exit code is 1 if a fault remains: one that only you can fix, or one that a
    repair would fix but was not requested.
    """
    if in_place and (out is not None or conversation == "-"):
        raise click.UsageError("--in-place repairs the examined file: pass a file, and no --repair")
    context.ledger_shown = True
    with click.open_file(conversation, "rb") as lines:
        diagnosis = examine(lines, file_name(conversation))
    if not diagnosis.before:
        raise DecodeError(f"{file_name(conversation)} has no message")
    if model is not None and diagnosis.is_readable:
        target = model

        def plan(messages: Sequence[Message]) -> RequestDraft:
            return plan_request(context, messages, target, exact=False).request

        findings = (*diagnosis.findings, *check_target(diagnosis.messages, plan))
        diagnosis = attrs.evolve(diagnosis, findings=findings)
    diff = list(diff_repair(diagnosis, Path(conversation).name))
    written = []
    if out is not None:
        written = write_repaired(diagnosis, out)
    elif in_place and diagnosis.repairs:
        written = write_repaired(diagnosis, Path(conversation), replace=True)
    if as_json:
        print_json({
            "findings": [attrs.asdict(finding) for finding in diagnosis.findings],
            "repairable": len(diagnosis.repairs),
            "left": len(diagnosis.left),
            "diff": diff,
            "written": [str(path) for path in written],
        })  # fmt: skip
    else:
        _print_diagnosis(diagnosis, diff, written)
    if diagnosis.left or (diagnosis.repairs and not written):
        sys.exit(1)


def _print_diagnosis(diagnosis: Diagnosis, diff: list[str], written: list[Path]) -> None:
    if not diagnosis.findings:
        click.echo("nothing to find")
        return
    rows = [
        (each.line, each.path, each.rule, f"{each.message} [{each.citation}]", each.remedy or each.hint)
        for each in diagnosis.findings
    ]
    print_table(("line", "path", "rule", "what", "remedy"), rows)
    for line in diff:
        click.echo(escape_controls(line, sys.stdout))
    for path in written:
        click.echo(f"wrote {path}", err=True)
    if diagnosis.repairs and not written:
        click.echo("--repair OUT writes the repaired conversation; nothing was changed", err=True)

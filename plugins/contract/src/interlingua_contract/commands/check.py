"""`check`: the whole contract for one provider, from a shell and without a test file.

Never reaches the network and never changes anything. The command group comes in.
Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua_cli.output import json_option, print_json, print_table
from interlingua_cli.state import State, plugin_option

if TYPE_CHECKING:
    from interlingua_contract.report import Report, Result
    from interlingua_contract.rule import Rule


_MARKS = {"pass": "ok", "fail": "FAILED", "skip": "skipped", "deviates": "deviates"}


@click.command("check")
@click.argument("provider")
@click.option(
    "--cassettes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of recorded traffic; by default cassettes/PROVIDER, where there is one.",
)
@click.option("--rule", "numbers", multiple=True, metavar="C07", help="Run only this rule; may be repeated.")
@click.option("--examples", default=40, show_default=True, help="Generated conversations per rule.")
@click.option("--seed", default=0, show_default=True, help="Of the generated conversations.")
@json_option
@plugin_option
@click.pass_obj
def command(
    state: State, provider: str, cassettes: Path | None, numbers: tuple[str, ...], examples: int, seed: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Check a provider plugin against the contract, and show what it supports by evidence."""
    try:
        from interlingua_contract.rules import ALL  # noqa: PLC0415
        from interlingua_contract.runner import run  # noqa: PLC0415  an extra of its own
        from interlingua_contract.subject import Subject  # noqa: PLC0415  an extra of its own
    except ModuleNotFoundError as error:
        raise click.ClickException(f"the contract needs {error.name}: pip install 'interlingua[contract]'") from error
    chosen = _chosen(ALL, numbers)
    folder = cassettes or _usual(provider)
    subject = Subject(provider, folder, registry=state.registry, examples=examples, seed=seed)
    report = run(subject, chosen, _progress)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report, whole=not numbers)
    if folder is None:
        where = f"here is no folder cassettes/{provider}, and --cassettes names none"
        click.echo(f"no recorded traffic was looked at: {where}; what is declared has no evidence without it", err=True)
    if report.failed:
        sys.exit(1)


def _chosen(rules: tuple[Rule, ...], numbers: tuple[str, ...]) -> list[Rule]:
    wanted = {number.upper() for number in numbers}
    unknown = wanted - {rule.number for rule in rules}
    if unknown:
        raise click.BadParameter(f"no rule {', '.join(sorted(unknown))}; there are C01 to {rules[-1].number}")
    return [rule for rule in rules if not wanted or rule.number in wanted]


def _usual(provider: str) -> Path | None:
    folder = Path("cassettes") / provider
    return folder if folder.is_dir() else None


def _progress(result: Result) -> None:
    click.echo(f"{result.rule.number} {_MARKS[result.outcome]:<8} {result.rule.statement}", err=True)


def _show(report: Report, *, whole: bool) -> None:
    excused: dict[str, list[str]] = {}
    for result in report.results:
        if result.outcome == "fail":
            click.echo(f"\n{result.rule.number} {result.rule.statement}")
            for finding in result.findings:
                click.echo(f"  - {finding}")
            click.echo(f"  How to fix: {result.rule.fix}")
        elif result.reason:
            excused.setdefault(f"{_MARKS[result.outcome]}: {result.reason}", []).append(result.rule.number)
    for reason, numbers in excused.items():
        click.echo(f"\n{', '.join(numbers)} {reason}")
    if whole:
        click.echo()
        rows = [
            (row.api, row.capability, "yes" if row.declared else None, " ".join(row.evidence) or row.excuse)
            for row in report.support
            if row.declared or row.evidence
        ]
        print_table(("api", "capability", "declared", "evidence"), rows)
    counts = {mark: sum(result.outcome == name for result in report.results) for name, mark in _MARKS.items()}
    told = ", ".join(f"{count} {mark}" for mark, count in counts.items() if count)
    shipped = f"{report.distribution} {report.version}".strip()
    click.echo(f"{report.provider} ({shipped}): {told}")

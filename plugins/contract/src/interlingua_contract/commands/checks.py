"""`check` proves one provider against the contract; `matrix` swaps histories between all of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua_cli.completion import complete_providers
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.input import write_file
from interlingua_cli.output import json_option, make_console, print_json, print_table

if TYPE_CHECKING:
    from interlingua_contract.matrix.crossing import Cell
    from interlingua_contract.matrix.grid import Matrix
    from interlingua_contract.matrix.serving import ServedCell
    from interlingua_contract.mutation import MutationRun, Verdict
    from interlingua_contract.report import ContractReport, RuleResult
    from interlingua_contract.rule import ContractRule
    from interlingua_contract.subject import Subject

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_MARKS = {"pass": "ok", "fail": "FAILED", "skip": "skipped", "deviates": "deviates"}

_MOST_FINDINGS = 30
"""Findings of a matrix that are printed."""


@click.command("check")
@click.argument("provider", shell_complete=complete_providers)
@click.option(
    "--cassettes",
    type=_FOLDER,
    help="Folder of recorded traffic; by default cassettes/PROVIDER here, or in the project of an editable install.",
)
@click.option("--rule", "numbers", multiple=True, metavar="C07", help="Run only this rule; may be repeated.")
@click.option(
    "--examples",
    type=click.IntRange(1),
    show_default="40, and 4 with --mutate",
    help="Generated conversations per rule.",
)
@click.option("--seed", default=0, show_default=True, help="Of the generated conversations, and of --sample.")
@click.option(
    "--mutate",
    is_flag=True,
    help="Measure the rules: change each value that the plugin returns, and show the changes that no rule notices.",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="With --mutate: try only N of the changes.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="With --mutate: time limit in minutes.")
@click.option("--jobs", type=click.IntRange(1), show_default="all cores", help="Processes that run the rules.")
@click.option("--watch", "watched", is_flag=True, help="Check again when a file changes, the quick rules first.")
@click.option("--quick-first", is_flag=True, hidden=True)
@click.option("--facts", is_flag=True, help="Print the rows of facts.toml as the plugin behaves, and check nothing.")
@click.option(
    "--approve", is_flag=True, help="Write approved.jsonl beside the cassettes: the results of every hook, to be read."
)
@click.option(
    "--badge", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write an SVG badge there."
)
@json_option
@plugin_option
@click.pass_obj
def check(
    context: CommandContext, provider: str, cassettes: Path | None, numbers: tuple[str, ...], examples: int | None,
    seed: int, mutate: bool, sample: int | None, minutes: float | None, jobs: int | None, facts: bool,
    approve: bool, badge: Path | None, as_json: bool, watched: bool, quick_first: bool,
) -> None:  # fmt: skip
    """Check a provider plugin against the contract, and show what it supports by evidence."""
    try:
        from interlingua_contract.report import draw_badge, run  # noqa: PLC0415  imports pytest and hypothesis; only this command needs them
        from interlingua_contract.rules import ALL  # noqa: PLC0415  as above
        from interlingua_contract.subject import Subject, find_cassettes  # noqa: PLC0415  as above
    except ModuleNotFoundError as error:
        raise click.ClickException(f"the contract needs {error.name}: pip install 'interlingua[contract]'") from error
    rules = _select_rules(ALL, numbers)
    folder = cassettes or find_cassettes(context.registry, provider)
    if mutate:
        from interlingua_contract.mutation import MutationRun  # noqa: PLC0415  as above

        whole = minutes is None
        changed = MutationRun(
            provider, folder, registry=context.registry, examples=examples or 4, seed=seed, rules=rules, confirm=whole
        )
        _print_mutation(changed, sample, minutes, jobs, as_json=as_json)
        return
    if sample or minutes:
        raise click.UsageError("--sample and --minutes need --mutate")
    if watched:
        from interlingua_contract.commands.watch import watch  # noqa: PLC0415  only here

        watch(provider, folder, [*(argument for argument in sys.argv[1:] if argument != "--watch"), "--quick-first"])
        return
    subject = Subject(provider, folder, registry=context.registry, examples=examples or 40, seed=seed)
    if facts:
        _print_facts(subject)
        return
    if approve:
        _approve(subject)
        return
    jobs = jobs or os.cpu_count() or 1
    report = run(subject, rules, _print_result, jobs=jobs, quick_first=quick_first)
    if badge:
        write_file(badge, draw_badge(report))
        badge.chmod(0o644)
    if as_json:
        print_json(report.as_json())
    else:
        _print_report(report, whole=not numbers)
    if folder is None:
        where = f"there is no folder cassettes/{provider} here, and --cassettes names none"
        click.echo(f"no recorded traffic was checked: {where}; without it no capability has evidence", err=True)
    if report.failed:
        sys.exit(1)


def _print_facts(subject: Subject) -> None:
    from interlingua_contract.facts import observe_facts, write_facts  # noqa: PLC0415  imported with the subject
    from interlingua_contract.guard import no_network, silence_log  # noqa: PLC0415  as above

    with no_network(), silence_log():
        text = write_facts(observe_facts(subject))
    click.echo(text, nl=False)


def _approve(subject: Subject) -> None:
    from interlingua_contract.approved.table import APPROVED_FILE, write_approved  # noqa: PLC0415  as above
    from interlingua_contract.guard import no_network, silence_log  # noqa: PLC0415  as above

    if subject.folder is None:
        raise click.UsageError("--approve writes beside the cassettes; name their folder with --cassettes")
    with no_network(), silence_log():
        text = write_approved(subject)
    path = subject.folder / APPROVED_FILE
    before = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    write_file(path, text)
    path.chmod(0o644)
    changed = len(set(text.splitlines()) - set(before))
    click.echo(f"{path}: {changed} of {len(text.splitlines())} lines are new; read them")


def _print_mutation(
    run: MutationRun, sample: int | None, minutes: float | None, jobs: int | None, *, as_json: bool
) -> None:
    from interlingua_contract.mutation import measure  # noqa: PLC0415  imported with the run

    def print_verdict(verdict: Verdict) -> None:
        if verdict.fate == "survived":
            click.echo(f"survived: {verdict.mutant}", err=True)

    report = measure(run, sample=sample, seconds=minutes and minutes * 60, jobs=jobs, progress=print_verdict)
    if as_json:
        print_json(report.as_json())
    else:
        click.echo("\n".join(report.lines()))


def _select_rules(rules: tuple[ContractRule, ...], numbers: tuple[str, ...]) -> list[ContractRule]:
    wanted = {number.upper() for number in numbers}
    if unknown := wanted - {rule.number for rule in rules}:
        raise click.BadParameter(
            f"no rule {', '.join(sorted(unknown))}; there are {rules[0].number} to {rules[-1].number}"
        )
    return [rule for rule in rules if not wanted or rule.number in wanted]


def _find_folder(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None


def _print_result(result: RuleResult) -> None:
    click.echo(f"{result.rule.number} {_MARKS[result.outcome]:<8} {result.rule.statement}", err=True)


def _print_report(report: ContractReport, *, whole: bool) -> None:
    excused: dict[str, list[str]] = {}
    for result in report.results:
        if result.outcome == "fail":
            click.echo(f"\n{result.rule.number} {result.rule.statement}")
            for finding in result.findings:
                click.echo("  - " + "\n  ".join(finding.lines()))
            click.echo(f"  How to fix: {result.rule.fix}")
            click.echo(f"  Page: {result.rule.page}")
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
    summary = ", ".join(f"{count} {mark}" for mark, count in counts.items() if count)
    distribution = f"{report.distribution} {report.version}".strip()
    click.echo(f"{report.provider} ({distribution}): {summary}")


@click.command("matrix")
@click.option("--only", metavar="A,B", help="Only these providers (KEY) or wires (KEY/API); at least two wires.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write swap-matrix.md and swap-matrix.html there, with --serve also served-apis.md.",
)
@click.option(
    "--serve", metavar="A,B", help="Also carry the histories through the APIs of these providers, as a gateway."
)
@click.option(
    "--cassettes",
    type=_FOLDER,
    help="Recorded answers, a folder per provider; by default cassettes, if it exists.",
)
@json_option
@plugin_option
@click.pass_obj
def matrix(
    context: CommandContext,
    only: str | None,
    out: Path | None,
    serve: str | None,
    cassettes: Path | None,
    as_json: bool,
) -> None:
    """Swap histories between all installed providers and back.

    Every pair is checked: linter, loss ledger against the wire, prefix, ids. Nothing is sent. Exit code 1 if a pair is
    red.
    """
    from interlingua_contract import matrix as swaps  # noqa: PLC0415  every start of the command line loads this module

    found = swaps.sides(context.registry, filter(None, (only or "").split(",")))
    if len(found) < 2:
        raise click.BadParameter("a swap takes two wires", param_hint="--only")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # before the work, so that a folder that cannot be written fails at once
    folder = cassettes or _find_folder(Path("cassettes"))
    with _progress(len(found) * (len(found) - 1)) as progress:
        done = swaps.Grid(found, cassettes=folder).run(progress)
    pages = {"swap-matrix.md": swaps.markdown_page(done), "swap-matrix.html": swaps.html_page(done)}
    served: tuple[ServedCell, ...] = ()
    if serve:
        apis = swaps.served_apis(context.registry, filter(None, serve.split(",")), folder)
        with _progress(len(apis) * len(found)) as progress:
            served = swaps.serve_histories(apis, found, progress=progress)
        pages["served-apis.md"] = swaps.served_page(served)
    if out is not None:
        for name, text in pages.items():
            write_file(out / name, text)
            (out / name).chmod(0o644)  # a page is readable by every user, unlike a conversation
    print_json(swaps.as_json(done, served)) if as_json else _print_matrix(done)
    if served and not as_json:
        click.echo(swaps.served_totals(served))
    sys.exit(0 if done.green and all(cell.green for cell in served) else 1)


@contextlib.contextmanager
def _progress(pairs: int) -> Iterator[Callable[[Cell | ServedCell], None]]:
    if not sys.stderr.isatty():
        yield lambda cell: None if cell.green else click.echo(f"red: {cell}", err=True)
        return
    from rich.progress import Progress as Bar  # noqa: PLC0415  only at a terminal

    with Bar(console=make_console(err=True), transient=True) as bar:
        task = bar.add_task("pairs", total=pairs)
        yield lambda cell: bar.update(task, advance=1, description=str(cell))


def _print_matrix(matrix: Matrix) -> None:
    from interlingua_contract.matrix.reports import totals  # noqa: PLC0415  loaded by the command

    rows = []
    for side in matrix.sides:
        cells = [cell for cell in matrix.cells if cell.begun == side]
        lost = sum(len(run.losses) for cell in cells for run in cell.runs)
        rows.append((side, sum(cell.green for cell in cells), sum(not cell.green for cell in cells), lost))
    print_table(("begun on", "green", "red", "ledger rows"), rows)
    for finding in matrix.findings[:_MOST_FINDINGS]:
        click.echo(finding)
    if (more := len(matrix.findings) - _MOST_FINDINGS) > 0:
        click.echo(f"... and {more} more (--json lists all)")
    click.echo(totals(matrix))

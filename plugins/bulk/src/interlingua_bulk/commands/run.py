"""`bulk run` and `bulk retry`."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from interlingua import AsyncClient, Retry, Timeout
from interlingua.codec import decode_tool
from interlingua.errors import CallerError
from interlingua.types import ToolDefinition
from interlingua_bulk.answers import last_lines, read_facts
from interlingua_bulk.batches import BatchRun
from interlingua_bulk.commands import batches
from interlingua_bulk.commands.inputs import force_option, input_options, prepare_rows, rows_argument
from interlingua_bulk.rows import read_options
from interlingua_bulk.runner import BulkReport, run
from interlingua_bulk.sender import Limits
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import option_option, read_tools, url_option
from interlingua_cli.output import json_option, print_error, print_json

_EVERY_S = 10.0  # seconds between two progress lines without a terminal


def _check_budget(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    try:
        Limits(budget_usd=value)
    except CallerError as error:
        raise click.BadParameter(error.message) from None
    return value


def pace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that limit requests, tokens and cost."""
    options = (
        click.option("--concurrency", type=click.IntRange(1), default=128, show_default=True,
                     help="Most requests under way; how many there are adapts to the service."),
        click.option("--rpm", type=click.FloatRange(0, min_open=True), help="Most requests a minute, per model."),
        click.option("--tpm", type=click.FloatRange(0, min_open=True), help="Most tokens a minute, per model."),
        click.option("--budget", metavar="USD", callback=_check_budget,
                     help="Most US dollars of this run; an answer of unknown cost stops it."),
        click.option("--attempts", type=click.IntRange(1), default=5, show_default=True,
                     help="Times a row is sent if the service fails; refusals for load do not count."),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Most seconds for one request."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def output_file(out: Path) -> Iterator[Path]:
    """Yield the output's path; for `-` a temporary file that is printed at the end, in the input's order.

    Raises:
        CallerError: the answers could not be printed; the message has the file that they are in.
    """
    if str(out) != "-":
        yield out
        return
    folder = Path(tempfile.mkdtemp(prefix="interlingua-bulk-"))
    path = folder / "answers.jsonl"
    try:
        yield path
    finally:
        if path.exists():
            _print_answers(path)
        shutil.rmtree(folder, ignore_errors=True)


def _print_answers(path: Path) -> None:
    try:
        for line in last_lines(path):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise CallerError(f"the answers could not be printed ({error.strerror}): they are in {path}") from None


@click.command("run")
@rows_argument
@click.option("--out", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), required=True,
              help="The output file; - prints the answers at the end; that run cannot be continued.")  # fmt: skip
@input_options
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="For rows that name none.")
@click.option("--tools", type=click.Path(exists=True, dir_okay=False), help="Tools for rows that bring none, as JSON.")
@pace_options
@click.option("--dedupe", is_flag=True, help="Rows that ask the same share one answer.")
@click.option(
    "--batch-when",
    type=(click.Choice(("cheaper-than",)), click.FloatRange(0, min_open=True)),
    metavar="cheaper-than SHARE",
    help="Submit a row to its service's batch API if that costs less than "
    "this share of single requests, such as 0.6; send the others.",
)
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", help="ray: send from a cluster.")
@click.option("--address", help="Of a Ray cluster; without it Ray runs on this machine.")
@click.option("--actors", type=click.IntRange(1), default=2, show_default=True, help="Processes that send, with ray.")
@force_option
@option_option
@url_option
@json_option
@plugin_option
@click.pass_context
def run_command(
    ctx: click.Context, /, rows: Path, out: Path, model: str | None, tools: str | None, *, options: Mapping[str, Any],
    url: str | None, timeout: float | None, as_json: bool, budget: str | None, rpm: float | None, tpm: float | None,
    attempts: int, dedupe: bool, batch_when: tuple[str, float] | None, engine: str, address: str | None, actors: int,
    form: str | None, prompt: str | None, system: str | None, id_column: str | None, keep: Sequence[str], **more: Any,
) -> None:  # fmt: skip
    """Send every row of a file once, and append the answers to another.

    ROWS holds {"id", "prompt"}, {"id", "messages"} or lines of a batch file, as JSON Lines, CSV, TSV or Parquet, also
    compressed (.gz, .zst); - is standard input. With --prompt it may hold any columns.
    The same command continues an interrupted run. Ctrl-C waits for the open requests; a second Ctrl-C aborts them.
    """
    context: CommandContext = ctx.ensure_object(CommandContext)
    found: Sequence[ToolDefinition] = () if tools is None else read_tools(tools)
    limits = {"requests_per_minute": rpm, "tokens_per_minute": tpm, "budget_usd": budget, "max_attempts": attempts}
    arguments = {"model": model, "options": options, "tools": found, "dedupe": dedupe, **limits, **more}
    if engine == "ray" and batch_when is not None:
        raise click.UsageError("--batch-when is for runs on one machine: use `bulk submit` before a run with Ray")
    if batch_when is not None and (budget is not None or dedupe):
        raise click.UsageError("--budget and --dedupe do not apply to batches: they go without --batch-when")
    if str(out) == "-" and (as_json or engine == "ray" or batch_when):
        raise click.UsageError("--out - prints the answers: it goes with neither --json, --engine ray nor --batch-when")
    with output_file(out) as path:
        source = prepare_rows(rows, path, form, prompt, system, id_column, keep)
        if batch_when is not None:
            asked = {"model": model, "options": options, "tools": found, "force": more["force"]}
            _submit(context, source, path, url, cheaper_than=batch_when[1], **asked)
        if engine == "ray":
            arguments |= {"address": address, "actors": actors}
            _run_on_ray(ctx, context, source, path, url, timeout, arguments, as_json=as_json)
        else:
            _run(ctx, context, source, path, url, timeout, arguments, as_json=as_json)


@click.command("retry")
@click.argument("out", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--failed", is_flag=True, help="Rows whose last line is an error; there is no other choice yet.")
@click.option("--batch", "by_batch", is_flag=True, help="Submit them as a further batch; see `bulk submit`.")
@pace_options
@url_option
@json_option
@plugin_option
@click.pass_context
def retry_command(
    ctx: click.Context, /, out: Path, *, failed: bool, by_batch: bool, url: str | None, timeout: float | None,
    as_json: bool, budget: str | None, rpm: float | None, tpm: float | None, attempts: int, **more: Any,
) -> None:  # fmt: skip
    """Send the failed rows of an output again, with the run's own input, model and options."""
    context: CommandContext = ctx.ensure_object(CommandContext)
    facts = read_facts(out)
    if facts is None:
        raise CallerError(f"{out} is not an output of `bulk run`")
    if not failed:
        raise click.UsageError("say which rows are sent again: --failed")
    if by_batch:
        run = _submit(context, None, out, url, failed=True)
        if as_json:
            print_json(run.batches)
        return
    asked = facts["asked"]
    limits = {"requests_per_minute": rpm, "tokens_per_minute": tpm, "budget_usd": budget, "max_attempts": attempts}
    arguments = {
        "model": asked["model"],
        "options": read_options(asked["options"]),
        "retry_failed": True,
        **limits,
        **more,
    }
    arguments["tools"] = [decode_tool(tool) for tool in asked["tools"]]
    _run(ctx, context, Path(facts["input"]["path"]), out, url, timeout, arguments, as_json=as_json)


def _submit(
    context: CommandContext, rows: Path | None, out: Path, url: str | None, *, failed: bool = False,
    cheaper_than: float | None = None, **arguments: Any,
) -> BatchRun:  # fmt: skip
    """Submit rows of a run as batches, and print how many."""
    if rows is None:
        client = batches.client_for_output(context, out, url)
    else:
        client = batches.make_client(context, arguments.get("model"), url)
    run = BatchRun(out, client, rows, **arguments)
    batches.in_run(run, lambda: run.submit(failed=failed, cheaper_than=cheaper_than, on_batch=batches.show_batch))
    if rows is None:
        batches.print_next(run)
    return run


def _run(
    ctx: click.Context, context: CommandContext, rows: Path, out: Path, url: str | None, timeout: float | None,
    arguments: dict[str, Any], *, as_json: bool,
) -> None:  # fmt: skip
    client = AsyncClient(
        arguments["model"],
        base_url=url,
        registry=context.registry,
        settings=context.settings,
        retry=Retry(max_attempts=1),
        timeout=None if timeout is None else Timeout(total=timeout),
    )
    line = ProgressLine()
    arguments |= {"client": client, "stop": asyncio.Event()}
    try:
        report = run(rows, out, on_progress=line.show, **arguments)
    finally:
        line.end()
    _finish(ctx, context, report, out, as_json=as_json)


def _run_on_ray(
    ctx: click.Context, context: CommandContext, rows: Path, out: Path, url: str | None, timeout: float | None,
    arguments: dict[str, Any], *, as_json: bool,
) -> None:  # fmt: skip
    from interlingua_bulk.ray_engine import run_on_ray  # noqa: PLC0415  for clusters only
    from interlingua_cli.config import prices_path  # noqa: PLC0415  for clusters only

    settings = {key: dict(one) for key, one in context.settings.items()}
    if url is not None and arguments["model"] is not None:
        settings.setdefault(context.registry.resolve(arguments["model"]).provider, {})["base_url"] = url
    registry: dict[str, Any] = {"presets": context.config.presets, "aliases": context.config.aliases}
    if (prices := prices_path(context.environ)).exists():
        registry["prices"] = prices
    client = {"settings": settings, "timeout": None if timeout is None else Timeout(total=timeout)}
    line = ProgressLine()
    try:
        report = run_on_ray(rows, out, client=client, registry=registry, on_progress=line.show, **arguments)
    finally:
        line.end()
    _finish(ctx, context, report, out, as_json=as_json)


def _finish(ctx: click.Context, context: CommandContext, report: BulkReport, out: Path, *, as_json: bool) -> None:
    """Print what a run did, and choose the exit code."""
    is_printed = str(ctx.params["out"]) == "-"  # then `out` is removed: no command can continue it
    if as_json:
        print_json({**report.to_json(), "out": str(out)})
    if report.error is not None:
        print_error(context, report.error)
    if report.stopped is not None and report.error is None:
        again = "" if is_printed else "; run the same command again to continue"
        click.echo(f"stopped: {report.stopped}{again}", err=True)
    if report.in_batches:
        rows = batches.count(report.in_batches, "row")
        click.echo(f"{rows} in batches under way: `interlingua bulk fetch {out}` adds the answers", err=True)
    if is_printed and report.failed:
        click.echo(f"{batches.count(report.failed, 'row')} failed: the output has their errors", err=True)
    else:
        batches.print_failed(out, report.failed)
    if report.stopped == "interrupted":
        ctx.exit(130)
    if report.stopped is not None or report.failed:
        ctx.exit(1)


class ProgressLine:
    """A progress line on stderr, rewritten on a terminal; without a terminal, a line at intervals and at the end."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0
        self._last = self._printed = ""

    def show(self, report: BulkReport) -> None:
        """Show a run's progress."""
        self._last = describe(report)
        if self._terminal:
            click.echo(f"\r\x1b[K{self._last}", nl=False, err=True)
        elif time.monotonic() - self._shown > _EVERY_S:
            self._shown, self._printed = time.monotonic(), self._last
            click.echo(self._last, err=True)

    def end(self) -> None:
        """End the line."""
        if self._last and self._terminal:
            click.echo(err=True)
        elif self._last != self._printed:
            click.echo(self._last, err=True)


def describe(report: BulkReport) -> str:
    """Return a report as one line: done, failed, tokens, cost, rate, time left."""
    finished = report.done + report.failed
    rate = max(finished - report.resumed, 0) / report.seconds if report.seconds else 0.0
    left = report.rows - finished - report.in_batches
    parts = [f"{finished:,}/{report.rows:,} rows", f"{report.failed:,} failed"]
    if report.in_batches:
        parts.append(f"{report.in_batches:,} in batches")
    parts.append(f"{_short(report.input_tokens + report.output_tokens)} tokens")
    parts.append(f"${report.cost_usd:.4f}" + (f" and {report.unpriced:,} unpriced" if report.unpriced else ""))
    parts.append(f"{rate:,.1f} rows/s")
    if left and rate:
        parts.append(f"{_span(left / rate)} left")
    return " · ".join(parts)


def _short(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def _span(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"

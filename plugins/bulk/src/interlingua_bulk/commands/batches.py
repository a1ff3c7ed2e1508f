"""`bulk submit`, `bulk fetch` and `bulk cancel`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from interlingua import AsyncClient, Retry
from interlingua_bulk.answers import FAILED, read_facts
from interlingua_bulk.batch_records import Batch, claimed_rows
from interlingua_bulk.batches import RESPONSE_LIMIT, BatchRun
from interlingua_bulk.commands.inputs import force_option, input_options, prepare_rows, rows_argument
from interlingua_cli.context import MODEL, CommandContext, plugin_option
from interlingua_cli.input import option_option, read_tools, url_option
from interlingua_cli.output import json_option, print_json, print_table

_EVERY_S = 60.0  # seconds between two requests for the status
_SHOWN_S = 10.0  # seconds between two lines of progress while results are read

out_argument = click.argument("out", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command("submit")
@rows_argument
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The output file.")
@input_options
@click.option("-m", "--model", type=MODEL, metavar="MODEL", help="For rows that name none.")
@click.option("--tools", type=click.Path(exists=True, dir_okay=False), help="Tools for rows that bring none, as JSON.")
@force_option
@click.option("--batch-rows", type=click.IntRange(1), default=10_000, show_default=True, help="Most rows of one batch.")
@option_option
@url_option
@json_option
@plugin_option
@click.pass_obj
def submit_command(
    context: CommandContext, /, rows: Path, out: Path, model: str | None, tools: str | None, *, batch_rows: int,
    options: Mapping[str, Any], url: str | None, as_json: bool, force: bool, **table: Any,
) -> None:  # fmt: skip
    """Submit rows to the service's batch API: answers within a day or so, at the batch price.

    Rows that have a line in the output, or are in a batch under way, are not submitted again.
    """
    found = () if tools is None else read_tools(tools)
    source = prepare_rows(rows, out, **table)
    client = make_client(context, model, url)
    run = BatchRun(out, client, source, model=model, options=options, tools=found, force=force)
    made = in_run(run, lambda: run.submit(batch_rows, on_batch=show_batch))
    print_batches(made, as_json=as_json)
    print_next(run)


@click.command("fetch")
@out_argument
@click.option("--wait", is_flag=True, help="Wait until all batches have ended.")
@url_option
@json_option
@plugin_option
@click.pass_context
def fetch_command(ctx: click.Context, /, out: Path, *, wait: bool, url: str | None, as_json: bool) -> None:
    """Add the rows of batches that have ended to the output.

    Exit code 1 while batches are still under way. Failed rows: `bulk retry --failed`.
    """
    run = BatchRun(out, client_for_output(ctx.ensure_object(CommandContext), out, url))
    shown = time.monotonic()

    def show(batch: Batch, rows: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > _SHOWN_S:
            shown = time.monotonic()
            click.echo(f"batch {batch.number}: {rows:,} of {count(batch.rows, 'row')} read", err=True)

    async def fetch() -> list[Batch]:
        left = await run.fetch(show)
        while wait and left:
            finished, rows = (
                sum((one.succeeded or 0) + (one.failed or 0) for one in left),
                sum(one.rows for one in left),
            )
            click.echo(f"{count(len(left), 'batch')} under way: {finished:,} of {count(rows, 'row')} done", err=True)
            await asyncio.sleep(_EVERY_S)
            left = await run.fetch(show)
        return left

    left = in_run(run, fetch)
    print_batches(run.batches, as_json=as_json)
    print_next(run)
    if left:
        ctx.exit(1)


@click.command("cancel")
@out_argument
@url_option
@json_option
@plugin_option
@click.pass_obj
def cancel_command(context: CommandContext, out: Path, *, url: str | None, as_json: bool) -> None:
    """Cancel the open batches of an output; existing answers are fetched as usual."""
    run = BatchRun(out, client_for_output(context, out, url))
    print_batches(in_run(run, run.cancel), as_json=as_json)
    print_next(run)


def make_client(context: CommandContext, model: str | None, url: str | None) -> AsyncClient:
    """Make a client for batches; `url` goes to the provider of `model`."""
    return AsyncClient(
        model,
        base_url=url,
        registry=context.registry,
        settings=context.settings,
        retry=Retry(max_attempts=1),
        max_response_bytes=RESPONSE_LIMIT,
    )


def client_for_output(context: CommandContext, out: Path, url: str | None) -> AsyncClient:
    """Make a client with the model that an output was started with."""
    facts = read_facts(out)
    return make_client(context, None if facts is None else facts["asked"].get("model"), url)


def in_run(run: BatchRun, body: Callable[[], Awaitable[list[Batch]]]) -> list[Batch]:
    """Run an action with the output locked, and close the client."""

    async def main() -> list[Batch]:
        async with run.client, run:
            return await body()

    return asyncio.run(main())


def show_batch(batch: Batch) -> None:
    """Print on stderr that a batch was created."""
    click.echo(f"batch {batch.number}: {count(batch.rows, 'row')} submitted", err=True)


def print_next(run: BatchRun) -> None:
    """Print on stderr which rows of an output have no answer, and the commands for them."""
    out, states = run.out, run.answers.states
    claimed = claimed_rows(run.batches, len(states))
    if held := sum(claimed):
        batches = count(sum(batch.is_open for batch in run.batches), "batch")
        click.echo(
            f"{count(held, 'row')} in {batches} under way: `interlingua bulk fetch {out}` adds the answers", err=True
        )
    print_failed(out, sum(state == FAILED and not held for state, held in zip(states, claimed, strict=True)))
    if left := sum(not state and not held for state, held in zip(states, claimed, strict=True)):
        click.echo(
            f"{count(left, 'row')} not sent: repeat `interlingua bulk submit` or `interlingua bulk run`", err=True
        )


def print_failed(out: Path, failed: int) -> None:
    """Print on stderr how many rows failed, if any did, and the commands for them."""
    if failed:
        click.echo(f"{count(failed, 'row')} failed: `interlingua bulk status {out}` counts the errors, "
                   f"`interlingua bulk retry {out} --failed` sends them again", err=True)  # fmt: skip


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 batch` or `2,000 rows`."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def print_batches(batches: Sequence[Batch], *, as_json: bool = False) -> None:
    """Print batches as a table, or as JSON."""
    if as_json:
        print_json(list(batches))
        return
    columns = ("batch", "model", "rows", "state", "service state", "answered", "failed", "USD", "single USD", "id")
    print_table(
        columns,
        [
            (
                one.number,
                one.model,
                one.rows,
                one.state,
                one.raw_state,
                one.succeeded,
                one.failed,
                one.cost_usd,
                one.single_usd,
                one.id,
            )
            for one in batches
        ],
        spare=("model", "id"),
    )

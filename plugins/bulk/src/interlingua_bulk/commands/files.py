"""`bulk status` and `bulk compact`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from interlingua.errors import CallerError, DecodeError
from interlingua_bulk.answers import compact_answers, read_answers, read_facts
from interlingua_bulk.batch_records import Batch, claimed_rows, count_waiting, read_batches
from interlingua_bulk.batches import BatchRun
from interlingua_bulk.commands.batches import client_for_output, in_run, print_batches
from interlingua_bulk.tables import write_answers
from interlingua_cli.context import CommandContext, plugin_option
from interlingua_cli.output import json_option, print_facts, print_json, print_table


@click.command("status")
@click.argument("out", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", metavar="BASE", help="Another base URL, at which batches are under way.")
@json_option
@plugin_option
@click.pass_obj
def status_command(context: CommandContext, out: Path, *, url: str | None, as_json: bool) -> None:
    """Print the progress of an output and its batches, the cost, and the failures.

    Services are asked only about batches that are under way.
    """
    facts = read_facts(out)
    if facts is None:
        raise CallerError(f"{out} is not an output of `bulk run` or `bulk submit`")
    batches = read_batches(out)[1]
    status = summarize(out, facts, batches)
    if any(batch.state == "submitted" for batch in batches):
        run = BatchRun(out, client_for_output(context, out, url))
        batches = in_run(run, run.status)
    if as_json:
        print_json({**status, "batches": batches})
        return
    if batches:
        print_batches(batches)
    errors, examples = status.pop("errors"), status.pop("examples")
    print_facts({name.replace("_", " "): value for name, value in status.items()})
    if errors:
        none = {"id": "", "message": ""}
        rows = [(count, kind, *(examples.get(kind, none)[name] for name in none)) for kind, count in errors.items()]
        print_table(("failed", "error", "row", "message"), rows)


def summarize(out: Path, facts: dict[str, Any], batches: Sequence[Batch]) -> dict[str, Any]:
    """Return counts, tokens, cost and kinds of errors of an output, with a row of each; a row's last line counts."""
    rows = facts["input"]["rows"]
    states = bytearray(rows)  # of each row: 0, or the place of its kind, from 1
    kinds = ["ok"]
    tokens: Counter[str] = Counter()
    examples: dict[str, dict[str, Any]] = {}
    cost, unpriced = Decimal(0), 0
    for line in read_answers(out):
        if line["index"] >= rows:
            raise DecodeError(f"{out} has a line for row {line['index'] + 1}, but the input has {rows} rows")
        kind = "ok" if line["status"] == "ok" else line["error"]["type"]
        if kind not in kinds:
            kinds.append(kind)
        states[line["index"]] = kinds.index(kind) + 1
        if line["status"] != "ok":
            examples[kind] = {"index": line["index"], "id": line["id"], "message": line["error"]["message"]}
        if line["status"] != "ok" or "shared_with" in line:
            continue
        tokens.update({name: (line["usage"] or {}).get(name, 0) for name in ("input_tokens", "output_tokens")})
        if line["cost_usd"] is None:
            unpriced += 1
        else:
            cost += Decimal(line["cost_usd"])
    counts = Counter({kind: states.count(place) for place, kind in enumerate(kinds, 1)})
    done = counts.pop("ok")
    return {
        "input": facts["input"]["path"],
        "model": facts["asked"].get("model"),
        "rows": rows,
        "done": done,
        "failed": counts.total(),
        "left": rows - done - counts.total(),
        "in_batches": count_waiting(claimed_rows(batches, rows), states),
        "input_tokens": tokens["input_tokens"],
        "output_tokens": tokens["output_tokens"],
        "cost_usd": f"{cost:f}",
        "unpriced": unpriced,
        "errors": {kind: count for kind, count in counts.most_common() if count},
        "examples": {kind: row for kind, row in examples.items() if kinds[states[row["index"]] - 1] == kind},
    }


@click.command("compact")
@click.argument("out", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--parquet", type=click.Path(dir_okay=False, path_type=Path), help="Write a Parquet file instead.")
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV file instead.")
def compact_command(out: Path, parquet: Path | None, csv: Path | None) -> None:
    """Rewrite an output in the input's order, with the last line of each row.

    A table has the text, the cost and the columns of the input that were kept.
    """
    if parquet is not None and csv is not None:
        raise click.UsageError("pass either --parquet or --csv")
    table = parquet or csv
    if table is None:
        rows = compact_answers(out)
    else:
        rows = write_answers(out, table, "parquet" if parquet is not None else "csv")
    click.echo(f"{rows:,} rows", err=True)

"""Label many reviews: python label.py run reviews.csv labels.jsonl."""

import argparse
import csv
import json
import random
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import interlingua_bulk as bulk

LABELS = ("praise", "complaint", "question")
SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": list(LABELS)}},
    "required": ["label"],
    "additionalProperties": False,
}
PROMPT = f"Is this review {', '.join(LABELS[:-1])} or {LABELS[-1]}?\n\n{{text}}"
SENTENCES = {
    "praise": ("I would buy the {} again.", "The {} is wonderful."),
    "complaint": ("The {} broke on the second day.", "I want my money back for the {}."),
    "question": ("Is there a case for the {}?", "How long is the cable of the {}?"),
}


def make(path: Path, rows: int) -> None:
    """Write invented reviews, the same ones each time."""
    draw = random.Random(7)  # noqa: S311  not a secret
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "text"])
        for number in range(rows):
            sentence = draw.choice(SENTENCES[draw.choice(LABELS)])
            table.writerow([f"r{number}", sentence.format(draw.choice(["lamp", "kettle", "telescope"]))])


def run(source: Path, out: Path, model: str, budget: Decimal | None) -> int:
    """Send every review, and return an exit code."""
    rows = bulk.read_table(str(source), bulk.RowTemplate(PROMPT, id="id"))
    report = bulk.run(
        ({**row, "output_schema": SCHEMA} for row in rows),
        str(out),
        model=model,
        budget_usd=budget,
        options={"max_tokens": 50},
    )
    print(f"{report.done} of {report.rows} rows, {report.failed} failed, {report.cost_usd:.4f} USD in this run")
    if report.stopped:
        print(f"stopped: {report.stopped}; run the same command again")
    return 1 if report.stopped or report.failed else 0


def count(out: Path) -> None:
    """Print how many rows have each label."""
    found: Counter[str] = Counter()
    for line in out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[json.loads(row["message"]["content"][0]["text"])["label"] if row["status"] == "ok" else "failed"] += 1
    for label, number in found.most_common():
        print(f"{number:>7} {label}")


def main() -> int:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write invented reviews")
    making.add_argument("path", type=Path)
    making.add_argument("--rows", type=int, default=10_000)
    running = commands.add_parser("run", help="label every review")
    running.add_argument("source", type=Path)
    running.add_argument("out", type=Path)
    running.add_argument("--model", default="openai:gpt-5-mini")
    running.add_argument("--budget", type=Decimal)
    counting = commands.add_parser("count", help="print how many rows have each label")
    counting.add_argument("out", type=Path)
    given = parser.parse_args()
    if given.command == "make":
        make(given.path, given.rows)
    elif given.command == "run":
        return run(given.source, given.out, given.model, given.budget)
    else:
        count(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The driver: our client and the hand-written floor in one run, interleaved, as ratios against the targets.

    python bench.py                     7 rounds, both wires, about five minutes
    python bench.py --brief             3 rounds of two workloads, text and received_first: under a minute
    python bench.py --quick             one round of short answers: is everything right?
    python bench.py --only tool,import  workloads whose name begins so

Every figure is CPU time of the measured process, scaled by the calibration loop beside it; rows of memory are KB.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from common import WORKLOADS
from processes import adapter_rows, cold_rows, import_rows, server, store_rows
from report import Figure, Ratio, ratios_of, table

HERE = Path(__file__).parent
OURS, FLOOR, OTHER = "run_interlingua.py", "floor.py", "run_pycurl.py"
TRANSPORTED = ("text_16k", "text", "think", "small")  # what the second transport is measured with
BRIEF = ("text", "received_first")
WIRES = ("anthropic", "openai")
IMPORT_PAIRS = 11
COLD = ("cold", "cold_first_answer")
MEMORY = ("memory_stream", "memory_history")  # compared with what it was, not with the floor
STORE = ("store_append", "session_cold", "session_open")


def measure(rounds: int, workloads: list[str], wires: list[str], *, quick: bool) -> list[Figure]:
    """Run the rounds; who goes first changes from round to round."""
    figures: list[Figure] = []
    inside = [name for name in workloads if name in WORKLOADS]
    with server() as port:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            order = [(script, wire) for script in (FLOOR, OURS) for wire in wires]
            random.shuffle(order)
            for script, wire in order:
                mine = [name for name in inside if script == OURS or name not in MEMORY]
                if mine:
                    figures += adapter_rows(HERE / script, wire, port, mine, quick=quick, number=number)
                sent = [name for name in inside if script == OURS and name in TRANSPORTED]
                if sent:
                    figures += adapter_rows(HERE / OTHER, wire, port, sent, quick=quick, number=number)
            for script, wire in order:
                wanted = [name for name in COLD if name in workloads]
                figures += cold_rows(HERE / script, wire, port, wanted, number=number)
            stored = [name for name in workloads if name in STORE]
            for side in random.sample(("floor", "ours"), 2) if stored else ():
                figures += store_rows(HERE / "run_store.py", side, stored, quick=quick, number=number)
        if "import" in workloads:
            say("imports")
            for number in range(2 if quick else IMPORT_PAIRS):
                figures += import_rows(number)
    return figures


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


def errors_of(figures: list[Figure]) -> list[str]:
    """Return each error once."""
    return sorted({f"{one.name} {one.wire} {one.workload}: {one.error}" for one in figures if one.error})


def calibration(figures: list[Figure]) -> str:
    """Return the spread of scaled figures over all rounds, a measure of how noisy the run was."""
    by_row: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for one in figures:
        if one.us is not None:
            by_row[one.name, one.wire, one.workload].append(one.us)
    spreads = [max(row) / min(row) for row in by_row.values() if len(row) > 1]
    return f"max/min of one figure over the rounds: median {statistics.median(spreads):.2f}" if spreads else ""


def main() -> int:
    """Run, print, and return 1 when a result was wrong; a target missed is reported, not an error."""
    names = [*WORKLOADS, *COLD, *STORE, "import"]
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int)
    arguments.add_argument("--only", help=f"prefixes of: {', '.join(names)}")
    arguments.add_argument("--wire", choices=WIRES, help="only this one")
    arguments.add_argument("--brief", action="store_true", help=f"3 rounds of {' and '.join(BRIEF)}")
    arguments.add_argument("--quick", action="store_true", help="one round of short answers; its figures mean nothing")
    arguments.add_argument("--json", action="store_true", help="print raw figures and ratios as JSON")
    chosen = arguments.parse_args()
    prefixes = tuple(chosen.only.split(",")) if chosen.only else ("",)
    wanted = [name for name in names if (name in BRIEF if chosen.brief else name.startswith(prefixes))]
    wires = [chosen.wire] if chosen.wire else list(WIRES)
    rounds = 1 if chosen.quick else chosen.rounds or (3 if chosen.brief else 7)
    figures = measure(rounds, wanted, wires, quick=chosen.quick)
    ratios: list[Ratio] = ratios_of(figures)
    errors = errors_of(figures)
    if chosen.json:
        rows = {"figures": [one._asdict() for one in figures], "ratios": [one._asdict() for one in ratios]}
        print(json.dumps(rows | {"errors": errors}, indent=1))
    else:
        print(table(ratios))
        print(calibration(figures))
        print("\n".join(f"ERROR {error}" for error in errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

"""Figures to ratios, ratios to a table with the targets beside them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

FLOOR_NAME = "floor httpx+orjson"
OUR_NAME = "interlingua"
OTHER_NAME = "interlingua pycurl"

TARGETS: dict[str | tuple[str, str], float] = {  # of a workload, or of a workload on one wire
    "text_16k": 2.0,
    "text": 0.5,
    "tool_2000": 0.7,
    "think": 0.5,
    "text, by pycurl": 0.5,
    "think, by pycurl": 0.5,
    "small, by pycurl": 1.0,
    "received_first": 3.5,
    "received_next": 1.05,
    "handmade_first": 3.0,
    "history_first": 3.0,
    "history_next": 1.05,
    "small": 1.15,
    "cold_first_answer": 1.65,
    "store_append": 2.2,
    "session_cold": 5.0,
    "session_open": 1.5,
}
GROWTH_TARGET = 4.4  # tool_8000 as a whole against tool_2000; 4.0 is linear
IMPORT_TARGETS = {"import interlingua": 0.15, "message and codec": 1.0}
MEMORY_TARGET = 1.0
# KB before the redesign of November 2026 (commit 900bf2e, CPython 3.11): what memory is compared with
MEMORY_BEFORE = {
    ("memory_stream", "anthropic"): 188.0,
    ("memory_stream", "openai"): 132.0,
    ("memory_history", "anthropic"): 4502.0,
    ("memory_history", "openai"): 5100.0,
}


class Figure(NamedTuple):
    """One workload in one round: scaled CPU microseconds (per delta, request or process), KB of memory, or an error."""

    name: str
    wire: str
    workload: str
    round: int
    us: float | None
    error: str = ""


class Ratio(NamedTuple):
    """Ours against the floor over all rounds: median of the rounds' ratios, and their spread."""

    what: str
    wire: str
    ours: float
    floor: float
    ratio: float
    least: float
    most: float
    target: float | None

    @property
    def verdict(self) -> str:
        """PASS, MISS, or nothing where there is no target."""
        if self.target is None:
            return ""
        return "PASS" if self.ratio <= self.target else "MISS"


Rounds = dict[int, float]


def ratios_of(figures: Sequence[Figure]) -> list[Ratio]:
    """Compute every ratio that the figures allow, each round's figure over the same round's floor."""
    rounds: dict[tuple[str, str, str], Rounds] = defaultdict(dict)
    for one in figures:
        if one.us is not None:
            rounds[one.workload, one.wire, one.name][one.round] = one.us
    found = []
    for workload, wire in dict.fromkeys((one.workload, one.wire) for one in figures if one.wire != "-"):
        ours, floor = rounds[workload, wire, OUR_NAME], rounds[workload, wire, FLOOR_NAME]
        if before := MEMORY_BEFORE.get((workload, wire)):
            found += _ratio(f"{workload} (KB, before)", wire, ours, dict.fromkeys(ours, before), MEMORY_TARGET)
        else:
            found += _ratio(workload, wire, ours, floor, TARGETS.get((workload, wire), TARGETS.get(workload)))
            other = f"{workload}, by pycurl"
            found += _ratio(other, wire, rounds[workload, wire, OTHER_NAME], floor, TARGETS.get(other))
    for wire in dict.fromkeys(one.wire for one in figures if one.workload == "tool_8000"):
        for name in (OUR_NAME, FLOOR_NAME):
            short, long = rounds["tool_2000", wire, name], rounds["tool_8000", wire, name]
            whole = {number: us * 4 for number, us in long.items()}
            target = GROWTH_TARGET if name == OUR_NAME else None
            found += _ratio(f"tool growth, {name.split()[0]}", wire, whole, short, target)
    return found + _imports(rounds)


def _imports(rounds: dict[tuple[str, str, str], Rounds]) -> list[Ratio]:
    """Median of (import - bare) over median of (import httpx - bare), as the issue words it."""
    bare = rounds["import", "-", "bare python"]
    floor = _less(rounds["import", "-", "import httpx"], bare)
    found = []
    for name, target in IMPORT_TARGETS.items():
        ours = _less(rounds["import", "-", name], bare)
        for one in _ratio(name, "-", ours, floor, target):
            found.append(one._replace(ratio=one.ours / one.floor))
    return found


def _less(rounds: Rounds, base: Rounds) -> Rounds:
    return {number: us - base[number] for number, us in rounds.items() if number in base}


def _ratio(what: str, wire: str, ours: Rounds, floor: Rounds, target: float | None) -> list[Ratio]:
    each = [ours[number] / floor[number] for number in ours if number in floor]
    if not each:
        return []
    middle = statistics.median
    least, most = min(each), max(each)
    return [Ratio(what, wire, middle(ours.values()), middle(floor.values()), middle(each), least, most, target)]


def table(ratios: Sequence[Ratio]) -> str:
    """Return the ratios as a Markdown table."""
    lines = [
        "| workload | wire | ours µs | floor µs | ratio | min..max | target | |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for one in ratios:
        target = "" if one.target is None else f"<= {one.target:g}"
        lines.append(
            f"| {one.what} | {one.wire} | {one.ours:,.4g} | {one.floor:,.4g} | {one.ratio:.2f} |"
            f" {one.least:.2f}..{one.most:.2f} | {target} | {one.verdict} |"
        )
    return "\n".join(lines)

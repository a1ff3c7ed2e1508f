"""Estimates a run's duration and bottleneck by a small simulation, checked against measured runs."""

from __future__ import annotations

import heapq
from random import Random

import attrs

from interlingua.errors import CallerError
from interlingua_bulk.pace import OPENED


@attrs.frozen(kw_only=True)
class SizingPlan:
    """A planned run.

    Attributes:
        rows: how many.
        latency_s: mean time in seconds from sending to the answer.
        cpu_s: processor time in seconds that a row takes of a process.
        tokens: input and output of a row together.
        processes: number of sending processes, each on a separate core.
        concurrency: most requests under way in one of them.
        requests_per_minute: limit of all processes together; None for no limit.
        tokens_per_minute: the service's limit of tokens; no limit if missing.
        usd_per_row: price of a row's tokens; None if unknown.
    """

    rows: int
    latency_s: float
    cpu_s: float = 0.003
    tokens: float = 1000.0
    processes: int = 1
    concurrency: int = 128
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    usd_per_row: float | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if value is not None and value <= 0:
                raise CallerError(f"{name} is a number above 0, not {value!r}")


@attrs.frozen(kw_only=True)
class Estimate:
    """The result of a simulation.

    Attributes:
        rows_per_second: once the run is under way.
        seconds: duration of the whole run.
        bottleneck: `processor`, `concurrency`, `requests_per_minute` or `tokens_per_minute`.
        bounds: rows a second that each of these alone would allow.
        row_seconds: mean seconds that a row spends, once it has a place: `service` (waiting for its answer),
            `processor` (computing, and waiting for its turn) and `limits` (waiting for a rate).
        core_days: processor time of the whole run.
        cost_usd: price of all tokens; None if unknown.
    """

    rows_per_second: float
    seconds: float
    bottleneck: str
    bounds: dict[str, float]
    row_seconds: dict[str, float]
    core_days: float
    cost_usd: float | None


def bounds(plan: SizingPlan) -> dict[str, float]:
    """Return the rows a second that each part would allow on its own."""
    found = {
        "processor": plan.processes / plan.cpu_s,
        "concurrency": plan.processes * plan.concurrency / (plan.latency_s + plan.cpu_s),
    }
    if plan.requests_per_minute is not None:
        found["requests_per_minute"] = plan.requests_per_minute / 60
    if plan.tokens_per_minute is not None:
        found["tokens_per_minute"] = plan.tokens_per_minute / plan.tokens / 60
    return found


def estimate(plan: SizingPlan, *, sample: int | None = None, seed: int = 1) -> Estimate:
    """Simulate the first rows of a run, and extend their rate to all.

    Each process has one processor, that a row needs before it is sent, and places for requests under way: 64 at
    first, twice as many with each round. The rates are shared. Latencies differ by half of their mean.

    Args:
        plan: the run.
        sample: rows to simulate; None for twenty rounds.
        seed: seed of the latencies.
    """
    allowed = bounds(plan)
    chance = Random(seed)  # noqa: S311  a simulation
    count = min(plan.rows, sample or max(20_000, 20 * plan.processes * plan.concurrency))
    first = min(OPENED, plan.concurrency)
    places = [(0.0, process) for process in range(plan.processes) for _ in range(first)]
    heapq.heapify(places)
    open_places = [first] * plan.processes
    processor = [0.0] * plan.processes
    gaps = [1 / allowed[name] for name in ("requests_per_minute", "tokens_per_minute") if name in allowed]
    next_allowed = [0.0] * len(gaps)
    ends: list[float] = []
    spent = {"service": 0.0, "processor": 0.0, "limits": 0.0}
    for _ in range(count):
        free, process = heapq.heappop(places)
        turn = max(free, processor[process])
        processor[process] = ready = turn + plan.cpu_s
        start = max(ready, *next_allowed) if gaps else ready
        next_allowed = [start + gap for gap in gaps]
        latency = plan.latency_s * (0.5 + chance.random())
        end = start + latency
        ends.append(end)
        for part, seconds in (("service", latency), ("processor", ready - free), ("limits", start - ready)):
            spent[part] += seconds
        heapq.heappush(places, (end, process))
        if open_places[process] < plan.concurrency:
            open_places[process] += 1
            heapq.heappush(places, (end, process))
    ends.sort()
    half = count // 2
    measured = (count - half) / (ends[-1] - ends[half - 1]) if half else count / ends[-1]
    rate = min(measured, *allowed.values())
    return Estimate(
        rows_per_second=rate,
        seconds=ends[-1] + (plan.rows - count) / rate,
        bottleneck=min(allowed, key=lambda name: allowed[name]),
        bounds=allowed,
        row_seconds={part: total / count for part, total in spent.items()},
        core_days=plan.rows * plan.cpu_s / 86_400,
        cost_usd=None if plan.usd_per_row is None else plan.rows * plan.usd_per_row,
    )

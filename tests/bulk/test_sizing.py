"""The simulation of a run: its bounds, and measured runs beside what it says of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import CallerError
from interlingua_bulk.sizing import SizingPlan, bounds, estimate
from tests.bulk.loopback import loopback
from tests.bulk.support import run, write_rows


@pytest.mark.parametrize(
    ("facts", "bottleneck", "rate"),
    [
        ({"latency_s": 1.0, "concurrency": 100}, "concurrency", 99.7),
        ({"latency_s": 0.1, "concurrency": 128}, "processor", 333.3),
        ({"latency_s": 0.1, "processes": 4}, "processor", 1333.3),
        ({"latency_s": 2.0, "requests_per_minute": 600}, "requests_per_minute", 10.0),
        ({"latency_s": 2.0, "tokens_per_minute": 60_000, "tokens": 500}, "tokens_per_minute", 2.0),
    ],
)
def test_the_narrowest_part_decides(facts: dict[str, Any], bottleneck: str, rate: float) -> None:
    plan = SizingPlan(rows=100_000_000, **facts)
    found = estimate(plan)

    assert found.bottleneck == bottleneck
    assert found.rows_per_second == pytest.approx(rate, rel=0.05)
    assert found.rows_per_second <= min(bounds(plan).values())
    assert found.seconds == pytest.approx(plan.rows / rate, rel=0.06)


def test_a_short_run_is_held_up_by_its_beginning() -> None:
    short, long = (estimate(SizingPlan(rows=rows, latency_s=5.0, concurrency=512)) for rows in (500, 500_000))

    assert short.seconds > 2 * 500 / long.rows_per_second


def test_a_plan_of_nothing_is_refused() -> None:
    with pytest.raises(CallerError, match="latency_s"):
        SizingPlan(rows=1, latency_s=0)


@pytest.mark.parametrize(
    ("facts", "arguments"),
    [
        ({"latency_s": 0.4, "concurrency": 8}, {"concurrency": 8}),
        ({"latency_s": 0.05, "concurrency": 16, "requests_per_minute": 1200},
         {"concurrency": 16, "requests_per_minute": 1200}),
    ],
    ids=["latency", "rate"],
)  # fmt: skip
def test_measured_runs_are_as_simulated(facts: dict[str, Any], arguments: dict[str, Any], tmp_path: Path) -> None:
    """What the machine has to spare hardly matters here: the first run waits for answers, the second for its turn."""
    rows = write_rows(tmp_path / "in.jsonl", 120)
    with loopback(latency_ms=facts["latency_s"] * 1000) as server:
        run(write_rows(tmp_path / "warm.jsonl", 2), tmp_path / "warm.out", server.url)
        began = time.monotonic()
        run(rows, tmp_path / "out.jsonl", server.url, **arguments)
        took = time.monotonic() - began

    simulated = estimate(SizingPlan(rows=120, **facts)).seconds
    assert 0.75 * simulated < took < 1.6 * simulated, (took, simulated)

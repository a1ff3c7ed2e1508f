"""The simulation of a run: its bounds, and measured runs beside what it says of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from interlingua.errors import CallerError
from interlingua_bulk.sizing import SizingPlan, bounds, estimate
from tests.bulk.loopback import loopback
from tests.bulk.support import lines, run, write_rows
from tests.support import tree


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


def test_the_page_has_the_figures_of_the_simulation() -> None:
    page = (tree.ROOT / "docs/explanation/sizing-bulk-runs.md").read_text(encoding="utf-8")
    rows = page.partition("## A run of 10^9 rows")[2].splitlines()
    tables = [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in rows if "|" in line][2:]
    for latency, processes, requests, tokens, *shown in tables:
        found = estimate(
            SizingPlan(
                rows=10**9,
                latency_s=float(latency),
                processes=int(processes),
                concurrency=256,
                tokens=1200,
                requests_per_minute=float(requests) if requests else None,
                tokens_per_minute=float(tokens) if tokens else None,
                usd_per_row=0.002,
            )
        )
        whole = sum(found.row_seconds.values())
        parts = [f"{100 * found.row_seconds[part] / whole:.0f} %" for part in ("service", "processor", "limits")]
        days = f"{found.seconds / 86_400:.1f}"
        assert shown[:6] == [f"{found.rows_per_second:.0f}", days, *parts, found.bottleneck.replace("_", " ")]
        assert shown[6] in ("", f"{found.cost_usd:.0f}")
    assert len(tables) == 5


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

    simulated = estimate(SizingPlan(rows=120, **facts))
    assert 0.75 * simulated.seconds < took < 1.6 * simulated.seconds, (took, simulated)
    service = sum(line["usage"]["latency_ms"] for line in lines(tmp_path / "out.jsonl")) / 120_000
    assert simulated.row_seconds["service"] == pytest.approx(service, rel=0.35), "the time until each answer"

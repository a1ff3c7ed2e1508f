"""The same rows on a local Ray. Skipped where Ray is not installed; `.ci/run` installs it beside and runs this module.

One Ray serves all tests: it takes seconds to start.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from interlingua_bulk.batch_records import Batch, write_batches
from tests.bulk.loopback import Loopback, loopback
from tests.bulk.support import LOCAL, PRICED, assert_every_row_once, lines, run, write_rows
from tests.support.counts import FULL
from tests.support.waiting import until

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed; .ci/run has it"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]
ROWS, IN_FLIGHT, ACTORS = (20_000 if FULL else 1_000), 32, 2


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    from interlingua_bulk.ray_engine import start_ray

    ray, _ = start_ray(ACTORS)
    yield ray
    ray.shutdown()


def on_ray(rows: Path, out: Path, server: Loopback, **arguments: Any) -> Any:
    from interlingua_bulk.ray_engine import run_on_ray

    client = {"settings": {"vllm": {"base_url": server.url}}}
    return run_on_ray(rows, out, model=LOCAL, client=client, actors=ACTORS, concurrency=IN_FLIGHT, **arguments)


def essence(out: Path) -> dict[int, Any]:
    """Return what has to be equal: all but ids and times that are made for each answer."""
    found = {}
    for line in lines(out):
        message = line.get("message") or {}
        parts = {name: line.get(name) for name in ("status", "id", "error", "cost_usd", "losses", "usage")}
        if parts["usage"]:
            parts["usage"] = {name: count for name, count in parts["usage"].items() if name != "latency_ms"}
        stop = (message.get("metadata") or {}).get("stop_reason")
        found[line["index"]] = (parts, message.get("content"), stop)
    return found


def test_rows_come_back_as_from_one_machine(ray: Any, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", ROWS)
    with loopback(latency_ms=10, bad_rows=[7, 11]) as server:
        one = run(rows, tmp_path / "one.jsonl", server.url, concurrency=IN_FLIGHT)
        before = server.stats()
        many = on_ray(rows, tmp_path / "many.jsonl", server)
        stats = server.stats()

    assert essence(tmp_path / "one.jsonl") == essence(tmp_path / "many.jsonl")
    counts = ("rows", "done", "failed", "input_tokens", "output_tokens", "cost_usd")
    assert [getattr(many, name) for name in counts] == [getattr(one, name) for name in counts]
    assert many.asked == stats["asked"] - before["asked"] == ROWS
    assert not (tmp_path / "many.jsonl.ledger").exists()


def test_a_lost_worker_costs_at_most_what_was_under_way(ray: Any, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    killed: list[int] = []

    with loopback(latency_ms=40) as server:

        def kill() -> None:
            until(lambda: server.stats()["answers"] >= ROWS * 0.35, within=300)
            name = sorted((tmp_path / "out.jsonl.ledger").glob("actor-*"))[0].name
            killed.append(int(name.removeprefix("actor-")))
            os.kill(killed[0], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        on_ray(rows, out, server)
        thread.join()
        stats = server.stats()

    assert len(killed) == 1
    assert_every_row_once(out, ROWS)
    assert stats["extra"] <= IN_FLIGHT, f"{stats['extra']} rows were paid for twice"


def test_rows_of_batches_under_way_are_not_sent(ray: Any, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl"
    write_batches(out, "run", [Batch(0, "openai", "openai:gpt-5.4-mini", "b", [[2, 5], [9, 9]], 5, "submitted")])
    with loopback(latency_ms=1) as server:
        report = on_ray(rows, out, server)

    assert (report.asked, report.done, report.in_batches) == (15, 15, 5)
    assert {line["index"] for line in lines(out)} == set(range(20)) - {2, 3, 4, 5, 9}


def test_a_rate_is_shared_by_the_actors(ray: Any, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 120), tmp_path / "out.jsonl"
    marks: list[float] = []
    with loopback(latency_ms=1) as server:
        began = time.monotonic()
        on_ray(rows, out, server, requests_per_minute=1200, on_progress=lambda _: marks.append(time.monotonic()))

    assert_every_row_once(out, 120)
    assert marks[-1] - began > 120 / 20 * 0.7, "1,200 a minute are 20 a second for all actors together"


def test_equal_rows_share_an_answer_over_all_actors(ray: Any, tmp_path: Path) -> None:
    rows = write_rows(
        tmp_path / "in.jsonl",
        ({"id": f"r{number}", "prompt": f"row {number % 300}: say something"} for number in range(1200)),
    )
    arguments: dict[str, Any] = {"dedupe": True}
    for bad in (7, None):
        with loopback(latency_ms=5, bad_rows=[bad]) as server:
            one = run(rows, tmp_path / "one.jsonl", server.url, concurrency=IN_FLIGHT, **arguments)
            before = server.stats()["asked"]
            many = on_ray(rows, tmp_path / "many.jsonl", server, **arguments)
            asked = server.stats()["asked"] - before

        counts = ("done", "failed", "shared", "asked", "input_tokens", "cost_usd", "resumed")
        assert [getattr(many, name) for name in counts] == [getattr(one, name) for name in counts]
        assert essence(tmp_path / "one.jsonl") == essence(tmp_path / "many.jsonl")
        expected = (1196, 4, 897) if bad else (1200, 0, 3)
        assert (many.done, many.failed, many.shared) == expected
        assert asked == (299 + 4 if bad else 1), "each question once, and the refused row of each id"
        arguments["retry_failed"] = True


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits the size of files, and has SIGINT")
def test_a_full_disk_and_an_interrupt_lose_no_answer(ray: Any, tmp_path: Path) -> None:
    from tests.bulk.test_disks_and_stops import largest_file

    rows, out, shared = write_rows(tmp_path / "in.jsonl", 1500), tmp_path / "out.jsonl", tmp_path / "shared"
    (shared / "of others").mkdir(parents=True)
    with loopback(latency_ms=150) as server:
        with largest_file(200_000):  # the actors have the limit of the process that started Ray
            full = on_ray(rows, out, server, ledger=shared)
        paid = server.stats()["answers"]
        kept = len(lines(out))

        def interrupt() -> None:
            until(lambda: server.stats()["answers"] >= paid + 50, within=300)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        stopped = on_ray(rows, out, server, ledger=shared)
        thread.join()
        answers = server.stats()["answers"]
        left = len(lines(out))
        done = on_ray(rows, out, server, ledger=shared)
        stats = server.stats()

    assert str(full.error) == full.stopped == f"{out} cannot be written: {os.strerror(errno.EFBIG)}"
    assert full.done == kept < full.asked == paid < 1500
    assert (stopped.stopped, stopped.resumed) == ("interrupted", paid)
    assert paid < answers == left < 1500
    assert (done.stopped, done.resumed, stats["extra"]) == (None, answers, 0)
    assert_every_row_once(out, 1500)
    assert [path.name for path in shared.iterdir()] == ["of others"]


def test_a_budget_holds_for_all_actors_together(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlingua_bulk.ray_engine import run_on_ray

    rows, out = write_rows(tmp_path / "in.jsonl", 2000), tmp_path / "out.jsonl"
    with loopback(latency_ms=20, input_tokens=20, output_tokens=1000) as server:
        client = {"settings": {"openai": {"base_url": server.url, "api_key": "test-key"}}}
        options = {"api": "chat", "max_tokens": 1000}
        arguments = {"model": PRICED, "options": options, "actors": ACTORS, "concurrency": 8, "client": client}
        report = run_on_ray(rows, out, budget_usd="3", **arguments)
        answers = server.stats()["answers"]
        paid = sum(Decimal(line["cost_usd"]) for line in lines(out))
        assert report.stopped == "the budget of 3 USD is used up"
        assert len(lines(out)) == answers == report.done
        assert paid == report.cost_usd
        assert Decimal("2.2") < paid <= 3, "at most what waits at each actor is left of it"
        more = run_on_ray(rows, out, budget_usd="3", **arguments)

    assert more.resumed == report.done
    assert Decimal("2.2") < more.cost_usd <= 3


def test_requests_wait_while_those_of_all_actors_may_cost_what_is_left_of_a_budget(ray: Any, tmp_path: Path) -> None:
    from interlingua_bulk.ray_engine import run_on_ray

    rows, out = write_rows(tmp_path / "in.jsonl", 60), tmp_path / "out.jsonl"
    with loopback(latency_ms=20, input_tokens=20, output_tokens=100) as server:  # an eightieth of the most
        client = {"settings": {"openai": {"base_url": server.url, "api_key": "test-key"}}}
        options = {"api": "chat", "max_tokens": 8000}
        report = run_on_ray(rows, out, budget_usd=1, model=PRICED, options=options, actors=ACTORS, client=client)

    assert (report.stopped, report.done) == (None, 60)
    assert report.cost_usd < 1


def test_a_refused_key_stops_the_run_and_it_goes_on_later(ray: Any, tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", 600), tmp_path / "out.jsonl"
    with loopback(latency_ms=5, refuse_from=100) as server:
        report = on_ray(rows, out, server)
        asked = server.stats()["asked"]
    assert report.stopped
    assert asked < 100 + 4 * IN_FLIGHT
    assert len(lines(out)) == 99
    with loopback(latency_ms=1) as server:
        report = on_ray(rows, out, server)

    assert (report.resumed, report.stopped) == (99, None)
    assert_every_row_once(out, 600)


def test_ray_listens_on_this_machine_alone(ray: Any) -> None:
    assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    with contextlib.suppress(FileNotFoundError):  # ss
        listed = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=False).stdout.splitlines()
        loopbacks = ("127.0.0.1:", "[::1]:", "[::ffff:127.0.0.1]:")
        own = [line for line in listed if re.search(r"raylet|gcs_server|ray::", line)]
        open_to_others = [line for line in own if not line.split()[3].startswith(loopbacks)]
        assert not open_to_others, open_to_others

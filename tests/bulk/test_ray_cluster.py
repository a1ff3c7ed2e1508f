"""A Ray cluster of three nodes on this machine that loses two of them, and its limiter.

Its nodes listen on the address of this machine: several of them cannot share 127.0.0.1.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, write_rows
from tests.support.counts import FULL
from tests.support.waiting import until

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed; .ci/run has it"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]
ROWS, IN_FLIGHT, NODES = (5_000 if FULL else 2_000), 16, 3
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")  # else every node but the first is refused
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_health_check_timeout_ms", "2000")
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        yield found
    finally:
        import ray

        ray.shutdown()
        found.shutdown()


def test_nodes_that_are_lost_cost_at_most_what_was_under_way(cluster: Any, tmp_path: Path) -> None:
    import ray

    from interlingua_bulk.ray_engine import run_on_ray

    nodes = [cluster.add_node(**NODE) for _ in range(NODES - 1)]
    ray.init(address=cluster.address, log_to_driver=False)
    rows, out = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    lost: list[str] = []

    with loopback(latency_ms=40) as server:

        def lose() -> None:
            for number, node in enumerate(nodes, 1):
                until(lambda goal=number * 0.25 * ROWS: server.stats()["answers"] >= goal, within=300)
                cluster.remove_node(node, allow_graceful=False)
                lost.append(node.node_id)
            (name,) = ray.util.list_named_actors()
            ray.kill(ray.get_actor(name), no_restart=False)  # as the loss of its node does
            lost.append(name)

        thread = threading.Thread(target=lose)
        thread.start()
        began = time.monotonic()
        client = {"settings": {"vllm": {"base_url": server.url}}}
        report = run_on_ray(
            rows, out, model=LOCAL, client=client, actors=2 * NODES, concurrency=IN_FLIGHT, requests_per_minute=60_000
        )
        thread.join()
        stats = server.stats()

    print(f"{ROWS} rows, lost {lost}, {stats['extra']} paid twice, {time.monotonic() - began:.0f} s")
    assert len(lost) == NODES
    assert (report.done, report.stopped) == (ROWS, None)
    assert_every_row_once(out, ROWS)
    assert stats["extra"] <= 2 * NODES * IN_FLIGHT, f"{stats['extra']} rows were paid for twice"

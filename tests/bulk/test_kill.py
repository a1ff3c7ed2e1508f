"""Runs killed by SIGKILL at random points and begun again: every row once, paid twice at most what was under way."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bulk.loopback import loopback
from tests.bulk.support import LOCAL, assert_every_row_once, lines, write_rows
from tests.support.counts import FULL

ROWS, KILLS, IN_FLIGHT = (5000, 100, 32) if FULL else (600, 4, 16)


@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
def test_killed_runs_lose_nothing_and_pay_twice_for_what_was_under_way_only(tmp_path: Path) -> None:
    rows, out = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    chance = random.Random(16)
    with loopback(latency_ms=20) as server:
        command = [sys.executable, "-m", "interlingua", "bulk", "run", str(rows), "--out", str(out), "--model", LOCAL]
        command += ["--url", server.url, "--concurrency", str(IN_FLIGHT)]
        under_way = before = killed = 0
        for _ in range(KILLS):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            goal = before + chance.randint(0, 2 * ROWS // KILLS // 3)
            while process.poll() is None and server.stats()["answers"] < goal:
                time.sleep(0.01)
            time.sleep(chance.random() * 0.02)
            killed += process.poll() is None
            process.kill()
            process.wait()
            stats = server.stats()
            before = stats["answers"]
            kept = {line["index"] for line in lines(out)} if out.exists() else set()
            under_way += IN_FLIGHT
            assert stats["rows"] - len(kept) <= IN_FLIGHT, "more answers are lost than requests were under way"
        last = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        stats = server.stats()

    assert last.returncode == 0, last.stderr
    assert_every_row_once(out, ROWS)
    assert stats["extra"] <= under_way
    assert killed > KILLS // 2

"""A large run that is killed again and again: `python tests/tools/bench/kills.py FOLDER --rows 1000000 --kills 100`.

Runs `interlingua bulk run` against a loopback service (tests/bulk/loopback.py), ends it by SIGKILL at random times, and
starts it again until all rows are answered. Prints its memory by progress, how long a restart takes until its first
request, and at the end whether each row is once in the output, and how many rows were paid for twice beside the
requests that were under way at the kills.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.bulk.loopback import Loopback, loopback

_EVERY_S = 0.5  # between two readings of the memory


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process; 0 if it has ended."""
    try:
        found = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


class Kills:
    """The lives of one run, and what they took."""

    def __init__(self, folder: Path, server: Loopback, asked: argparse.Namespace) -> None:
        self.rows, self.out = folder / "rows.jsonl", folder / "out.jsonl"
        self.server, self.asked = server, asked
        self.began = time.monotonic()
        self.kills = 0
        self.memory: dict[int, float] = defaultdict(float)  # most, by tenth of the output's size
        self.restarts: list[float] = []

    def live(self, seconds: float | None) -> bool:
        """Run until it ends or so many seconds have passed, then kill it; return True if it ended by itself."""
        before = self.server.stats()["asked"]
        began = time.monotonic()
        command = [sys.executable, "-m", "interlingua", "bulk", "run", str(self.rows), "--out", str(self.out)]
        command += ["--model", "vllm:small", "--url", self.server.url, "--concurrency", str(self.asked.concurrency)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        first: float | None = None
        while process.poll() is None:
            size = self.out.stat().st_size if self.out.exists() else 0
            if first is None and self.server.stats()["asked"] > before:
                first = time.monotonic() - began
                self.restarts.append(first)
            tenth = int(size / (self.asked.rows * self.asked.line) * 10)
            self.memory[tenth] = max(self.memory[tenth], memory_mb(process.pid))
            if first is not None and seconds is not None and time.monotonic() - began - first > seconds:
                process.kill()
                process.wait()
                self.kills += 1
                return False
            time.sleep(min(_EVERY_S, 0.05 if first is None else _EVERY_S, max(seconds or _EVERY_S, 0.01)))
        if process.returncode:
            raise SystemExit(f"the run ended with {process.returncode}")
        return True

    def report(self) -> dict[str, Any]:
        """Return the figures of all lives."""
        found = bytearray(self.asked.rows)
        with self.out.open("rb") as lines:
            for line in lines:
                index = json.loads(line)["index"]
                found[index] = min(found[index] + 1, 255)
        stats = self.server.stats()
        return {
            "rows": self.asked.rows, "once": found.count(1), "missing": found.count(0), "kills": self.kills,
            "paid twice": stats["extra"], "most under way at the kills": self.kills * self.asked.concurrency,
            "seconds": round(time.monotonic() - self.began),
            "memory_mb": {f"{tenth * 10} %": round(self.memory[tenth]) for tenth in sorted(self.memory)},
            "restart_s": [round(seconds, 1) for seconds in (self.restarts[0], max(self.restarts))],
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a run again and again.")
    parser.add_argument("folder", type=Path, help="for input and output; it should be empty")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--every", type=float, default=20.0, help="mean seconds between two kills")
    parser.add_argument("--line", type=int, default=1_300, help="expected bytes of an output line")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(31)
    with (asked.folder / "rows.jsonl").open("w") as file:
        for number in range(asked.rows):
            file.write(f'{{"id": "r{number}", "prompt": "row {number}: say something"}}\n')
    with loopback(latency_ms=5) as server:
        run = Kills(asked.folder, server, asked)
        ended = False
        while not ended and run.kills < asked.kills:
            ended = run.live(chance.uniform(0, 2 * asked.every))
            print(f"{run.kills} kills, {run.out.stat().st_size / 2**20:,.0f} MB", file=sys.stderr, flush=True)
        if not ended:
            run.live(None)
        print(json.dumps(run.report(), indent=1))


if __name__ == "__main__":
    main()

"""Many requests to services that refuse, fail and cut some of them: `python tests/tools/bench/refusals.py`.

At each share of faults the same rows go to the same loopback service (tests/bulk/loopback.py, in its own process), by
`bulk run`'s pace and by a loop of 64 connections, each in its own process. The loop waits as long as a refusal asks, or
half a second, and tries a broken connection again at once. Prints rows a second, from 0.3 to 0.8 of the rows and over
the whole run, start and end included, and the share of requests that were refused; with `--outage`, also the time that
passes after two seconds in which the service refuses everything until answers arrive as fast as before. `--peers`
takes a Python that has litellm and bespokelabs-curator, and measures them too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

RATES = (0.0, 0.01, 0.04, 0.1, 0.2)
KINDS = {
    "429": lambda rate: {"refusals": rate},
    "429, `retry-after: 0`": lambda rate: {"refusals": rate, "at_once": 1.0},
    "500 and 503": lambda rate: {"errors": rate},
    "cut answers": lambda rate: {"cuts": rate},
    "all of them": lambda rate: {"refusals": rate / 2, "at_once": 0.5, "errors": rate / 4, "cuts": rate / 4},
}
CURATOR = """
import json, os, resource, sys, time
os.environ.update(TELEMETRY_ENABLED="0", CURATOR_DISABLE_CACHE="1", CURATOR_DISABLE_RICH_DISPLAY="1")
import tiktoken

class Words:  # its vocabulary would be downloaded
    def encode(self, text, **_):
        return text.split()

tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_: Words()
from bespokelabs import curator
rows, out, url, concurrency = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
given = [json.loads(line)["prompt"] for line in open(rows)]
begun, cpu = time.monotonic(), time.process_time()
llm = curator.LLM(model_name="gpt-4o-mini", backend="openai", backend_params={
    "base_url": url, "api_key": "test-key", "max_concurrent_requests": concurrency, "max_retries": 20,
    "max_requests_per_minute": 10**6, "max_tokens_per_minute": 10**9, "require_all_responses": False})
answers = llm(given)
with open(out, "w") as file:
    file.writelines(json.dumps({"text": text}) + "\\n" for text in answers.dataset["response"])
print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.monotonic() - begun,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
OUTAGE = (6.0, 8.0)  # seconds after the first request


def send(kind: str, python: str, url: str, rows: Path, connections: int) -> dict[str, Any]:
    """Send all rows by one of the programs -> its figures."""
    from tests.tools.bench.bulk import LITELLM

    out = rows.with_name(f"{kind}.out")
    for path in (out, Path(f"{out}.run.json")):
        path.unlink(missing_ok=True)
    places = [str(rows), str(out), url, str(connections)]
    program = str(Path(__file__).with_name("bulk.py"))
    others = {"litellm": LITELLM, "curator": CURATOR}
    start = ["-c", others[kind]] if kind in others else [program, "--measure", kind]
    environ = {**os.environ, "HOME": str(rows.parent)}
    done = subprocess.run([python, *start, *places], capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        raise SystemExit(f"{kind}: {done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    figures["lines"] = sum(1 for _ in out.open())
    return figures


def middle(times: dict[str, int]) -> float:
    """Return the answers a second while the rows from 0.3 to 0.8 of all were answered."""
    found = sorted((int(tenth), count) for tenth, count in times.items())
    ends = [at for (at, _), sofar in zip(found, accumulate(count for _, count in found), strict=True)
            if 0.3 < sofar / sum(times.values()) < 0.8]  # fmt: skip
    return sum(count for at, count in found if at in ends) * 10 / (ends[-1] - ends[0] + 1)


def recovery(times: dict[str, int]) -> float | None:
    """Return the seconds after the outage until half a second brings 0.9 of the answers it brought before."""
    found = {int(tenth): count for tenth, count in times.items()}
    first, last = (int(at * 10) for at in OUTAGE)
    before = statistics.median(sum(found.get(at + n, 0) for n in range(5)) for at in range(first - 20, first - 5))
    for at in range(last, max(found) - 4):
        if sum(found.get(at + n, 0) for n in range(5)) >= 0.9 * before:
            return (at - last) / 10
    return None


def compare(asked: argparse.Namespace) -> None:
    """Measure each kind of fault at each share, and print a line for it."""
    from tests.bulk.loopback import loopback

    programs = {"bulk": sys.executable, "bare": sys.executable}
    programs |= dict.fromkeys(("litellm", "curator"), asked.peers) if asked.peers else {}
    print("| fault | share | " + " | ".join(f"{name}, rows/s | refused" for name in programs) + " |")
    print("|---|--:|" + "--:|--:|" * len(programs))
    plans = [(kind, rate) for kind in asked.kinds for rate in asked.rates if rate or kind == asked.kinds[0]]
    plans += [("outage of 2 s", -1.0)] if asked.outage else []
    with tempfile.TemporaryDirectory() as folder:
        for kind, rate in plans:
            outage = rate < 0
            count = asked.rows if not outage else asked.rows * 2
            rows = Path(folder, "rows.jsonl")
            rows.write_text(
                "".join(f'{{"id": "r{n}", "prompt": "row {n}: say something"}}\n' for n in range(count)), "utf-8"
            )
            faults: dict[str, Any] = {"outage": OUTAGE} if outage else KINDS[kind](rate)
            cells = []
            for name, python in programs.items():
                rates, whole, refused, back = [], [], [], []
                for repeat in range(asked.repeat):
                    settings = {"latency_ms": asked.latency, "retry_after_ms": None, "seed": repeat + 1, **faults}
                    with loopback(**settings) as server:
                        figures = send(name, python, server.url, rows, asked.connections)
                        stats = server.stats()
                    lost = count - figures["lines"]
                    rates.append(middle(stats["times"]))
                    whole.append(count / figures["wall"])
                    refused.append(stats["kinds"].get("429", 0) / stats["asked"])
                    back.append(recovery(stats["times"]) if outage else None)
                text = f"{statistics.median(rates):.0f} / {statistics.median(whole):.0f}"
                if lost:
                    text += f", {lost} lost"
                if outage:
                    text += f", back after {statistics.median(at if at is not None else 99 for at in back):.1f} s"
                cells.append(f"{text} | {statistics.median(refused):.1%}")
            share = "" if outage else f"{rate:.0%}"
            name = "none" if not rate else kind
            print(f"| {name} | {share} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare programs at services that refuse and fail.")
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--latency", type=float, default=300, help="mean milliseconds of an answer")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--outage", action="store_true")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--peers", help="a Python that has litellm and bespokelabs-curator")
    compare(parser.parse_args())


if __name__ == "__main__":
    main()

"""Many requests beside a bare program and another library: `python tests/tools/bench/bulk.py`.

Each of them sends the same rows to the same kind of server (tests/bulk/loopback.py, in its own process, which fails as
services do), writes each answer to a file, and is measured in its own process: processor time a row, wall time,
peak memory. The bare program is httpx and orjson with a loop of tries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

FAULTS = {"latency_ms": 20, "errors": 0.01, "cuts": 0.005, "refuse_every": 500, "retry_after_ms": 30}


async def run_bare(rows: Path, out: Path, url: str, concurrency: int) -> None:
    """Send with httpx and orjson alone, as a program for one service does."""
    import httpx
    import orjson

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    headers = {"content-type": "application/json", "authorization": "Bearer test-key"}
    async with httpx.AsyncClient(limits=limits, timeout=60, headers=headers) as client:
        with rows.open("rb") as lines, out.open("wb") as answers:

            async def work() -> None:
                for line in lines:
                    row = orjson.loads(line)
                    messages = [{"role": "user", "content": row["prompt"]}]
                    body = orjson.dumps({"model": "small", "messages": messages})
                    tries = 0
                    while True:
                        try:
                            response = await client.post(f"{url}/chat/completions", content=body)
                        except httpx.TransportError:
                            tries += 1
                            continue
                        if response.status_code == 200:
                            break
                        await asyncio.sleep(float(response.headers.get("retry-after-ms", 500)) / 1000)
                    answer = orjson.loads(response.content)
                    text = answer["choices"][0]["message"]["content"]
                    answers.write(orjson.dumps({"id": row["id"], "text": text, "usage": answer["usage"]}) + b"\n")

            await asyncio.gather(*(work() for _ in range(concurrency)))


async def run_bulk(rows: Path, out: Path, url: str, concurrency: int) -> None:
    """Send with interlingua-bulk."""
    import interlingua_bulk as bulk
    from interlingua import AsyncClient, Retry

    async with AsyncClient("vllm:small", base_url=url, api_key="test-key", retry=Retry(max_attempts=1)) as client:
        report = await bulk.arun(rows, out, client=client, concurrency=concurrency, max_attempts=20)
    assert (report.done, report.failed, report.stopped) == (report.rows, 0, None), report


LITELLM = """
import json, litellm, resource, sys, time
rows, out, url, concurrency = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
given = [json.loads(line) for line in open(rows)]
litellm.suppress_debug_info = True
begun, cpu = time.monotonic(), time.process_time()
with open(out, "w") as file:
    for at in range(0, len(given), 1000):
        block = given[at : at + 1000]
        answers = litellm.batch_completion(
            model="openai/small", api_base=url, api_key="test-key", max_workers=concurrency, num_retries=5,
            messages=[[{"role": "user", "content": row["prompt"]}] for row in block],
        )
        for row, answer in zip(block, answers):
            if not isinstance(answer, Exception):
                file.write(json.dumps({"id": row["id"], "text": answer.choices[0].message.content}) + "\\n")
print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.monotonic() - begun,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def measure(kind: str, rows: Path, out: Path, url: str, concurrency: int) -> None:
    """Run one of them in this process and print what it took."""
    begun, cpu = time.monotonic(), time.process_time()
    asyncio.run({"bare": run_bare, "bulk": run_bulk}[kind](rows, out, url, concurrency))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.monotonic() - begun, "peak_mb": peak}))


def compare(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all of them one after the other; return a row of figures for each."""
    from tests.bulk.loopback import loopback

    found = []
    with tempfile.TemporaryDirectory() as folder:
        kinds = [arguments.only] if arguments.only else ["bulk", "bare", *(["litellm"] if arguments.litellm else [])]
        for kind in kinds * arguments.repeat:
            count = min(arguments.rows, arguments.litellm_rows) if kind == "litellm" else arguments.rows
            rows, out = Path(folder, f"{kind}.jsonl"), Path(folder, f"{kind}.out")
            rows.write_text(
                "".join(json.dumps({"id": f"r{n}", "prompt": f"row {n}: say something"}) + "\n" for n in range(count))
            )
            out.unlink(missing_ok=True)
            Path(f"{out}.run.json").unlink(missing_ok=True)
            settings = {} if arguments.plain else arguments.faults
            with loopback(**{"latency_ms": 20, **settings}) as server:
                places = [str(rows), str(out), server.url, str(arguments.concurrency)]
                own = [sys.executable, __file__, "--measure", kind, *places]
                command = [arguments.litellm, "-c", LITELLM, *places] if kind == "litellm" else own
                done = subprocess.run(command, capture_output=True, check=True, text=True)
                stats = server.stats()
            ids = [json.loads(line)["id"] for line in out.open()]
            figures = json.loads(done.stdout.splitlines()[-1])
            found.append({"kind": kind, "rows": count, "lines": len(ids), "once": len(set(ids)) == count == len(ids),
                          "sent": stats["asked"], "answered_twice": stats["extra"], "kinds": stats["kinds"],
                          "most": stats["most"], "cpu_us": figures["cpu"] / count * 1e6, **figures})  # fmt: skip
            print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", choices=("bulk", "bare"))
    parser.add_argument("--plain", action="store_true", help="a server that never fails")
    parser.add_argument(
        "--faults", type=json.loads, default=FAULTS, help="of the server, as JSON: settings of tests/bulk/loopback.py"
    )
    parser.add_argument("--litellm", help="a Python that has litellm")
    parser.add_argument("--litellm-rows", type=int, default=10_000)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        kind, rows, out, url, concurrency = arguments.measure
        measure(kind, Path(rows), Path(out), url, int(concurrency))
        return
    found = compare(arguments)
    for kind in ("bulk", "litellm"):
        of_kind = [row["cpu_us"] for row in found if row["kind"] == kind]
        bare = [row["cpu_us"] for row in found if row["kind"] == "bare"]
        if of_kind and bare:
            print(f"{kind}: {min(of_kind) / min(bare):.2f} times the bare program's processor time a row")


if __name__ == "__main__":
    main()

"""Child processes: the replay server, an adapter measuring itself, and whole processes whose CPU time is the figure."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import calibrate
from report import Figure

HERE = Path(__file__).parent
NO_TRIO = "import sys\nsys.modules['trio'] = None\n"
"""Before every source: httpcore imports trio if it is installed, as it is for our tests, and most users have none."""

IMPORTS = {
    "bare python": "pass",
    "import httpx": "import httpx",
    "import interlingua": "import interlingua",
    "message and codec": (
        "import interlingua\n"
        "m = interlingua.Message(role=interlingua.Role.USER, content='hi')\n"
        "assert interlingua.loads_message(interlingua.dumps_message(m)) == m"
    ),
}


@contextlib.contextmanager
def server() -> Iterator[int]:
    """Run the replay server for a `with` block and give its port."""
    child = subprocess.Popen([sys.executable, HERE / "server.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield int(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


def adapter_rows(
    script: Path, wire: str, port: int, workloads: Sequence[str], *, quick: bool, number: int = 0
) -> list[Figure]:
    """Run an adapter's workloads on one wire in a fresh process."""
    command = [str(script), "--port", str(port), "--wire", wire, "--workloads", ",".join(workloads)]
    return _printed(command + ["--quick"] * quick, script.stem, wire, workloads[0], number)


def store_rows(script: Path, side: str, workloads: Sequence[str], *, quick: bool, number: int = 0) -> list[Figure]:
    """Run one side of the store's workloads in a fresh process."""
    command = [str(script), "--side", side, "--workloads", ",".join(workloads)]
    return _printed(command + ["--quick"] * quick, script.stem, "sqlite", workloads[0], number)


def _printed(command: list[str], name: str, wire: str, workload: str, number: int) -> list[Figure]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        return [Figure(name, wire, workload, number, None, done.stderr.strip()[-300:])]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        Figure(row["name"], row["wire"], row["workload"], number, row.get("us"), row.get("error", "")) for row in rows
    ]


def cold_rows(script: Path, wire: str, port: int, wanted: Sequence[str], *, number: int) -> list[Figure]:
    """Run an adapter's COLD, and COLD with COLD_REQ, each in a fresh process."""
    if not wanted:
        return []
    command = [sys.executable, str(script), "--list", "--wire", wire]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    row = json.loads(listed.stdout)
    base = f"http://127.0.0.1:{port}/x/small"
    sources = {"cold": row["cold"], "cold_first_answer": row["cold"] + row["cold_req"]}
    return [
        Figure(row["name"], wire, name, number, *process_cpu(sources[name].replace("{base}", base))) for name in wanted
    ]


def import_rows(number: int) -> list[Figure]:
    """Run one interleaved set of processes that import and leave."""
    return [Figure(name, "-", "import", number, *process_cpu(source)) for name, source in IMPORTS.items()]


@functools.cache
def environment(source: str) -> dict[str, str]:
    """Return the environment of a fresh process whose modules are compiled: this source has run once before."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(Path(sys.prefix, "bench-pycache"))
    subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, check=False)  # errors show below
    return env


def process_cpu(source: str) -> tuple[float | None, str]:
    """Run Python source in a fresh process, with bytecode -> (scaled CPU microseconds, error)."""
    source = NO_TRIO + source
    env = environment(source)
    before = calibrate()
    child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    assert child.stderr is not None
    with child.stderr:
        said = child.stderr.read().decode()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        return None, said.strip()[-300:]
    return (used.ru_utime + used.ru_stime) * 1e6 / ((before + calibrate()) / 2) * 1000, ""

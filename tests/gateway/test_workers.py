"""Several workers on one port share keys, budgets and metrics; one that crashes is replaced; all stop together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.gateway.conftest import Upstream, new_store
from tests.gateway.test_budgets import BODY, MODEL, Charging
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers need fork")


@contextmanager
def _running(upstream: Upstream, folder: Path, config: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    file = folder / "gateway.toml"
    file.write_text(config)
    environ = {**os.environ, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": upstream.url, "HOME": str(folder)}
    environ |= {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(file), "--port", "0"]
    command += ["--workers", "3"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "serving on" in line)
            yield line.split()[2].rstrip(";"), process
        finally:
            process.terminate()


def _children(process: subprocess.Popen[str]) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes in /proc")
def test_workers_share_a_port_a_budget_and_metrics(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", budget_usd=Decimal("0.01"), admin=True)
    service = Charging(seconds=0.01)
    upstream.answers = [service]
    config = f'auth = "keys"\nstore = "{place}"\n[[routes]]\nmatch = "*"\nto = ["{MODEL}"]\nretries = 0\n'
    headers = {"x-api-key": secret}
    with _running(upstream, tmp_path, config) as (url, process):
        until(lambda: httpx.get(f"{url}/health").status_code == 200)
        first = _children(process)
        assert len(first) == 3

        def post(_number: int) -> int:
            return httpx.post(f"{url}/v1/messages", json=BODY, headers=headers, timeout=60).status_code

        with ThreadPoolExecutor(16) as ask:
            found = list(ask.map(post, range(48)))
        assert found.count(200) == service.requests > 5
        assert service.charged <= Decimal("0.01")
        until(lambda: store.spent(key).requests == service.requests)
        assert store.spent(key).cost_usd == service.charged
        counted = f'outcome="ok"}} {found.count(200)}.0'
        until(lambda: counted in httpx.get(f"{url}/metrics", headers=headers).text)

        time.sleep(5.5)  # a worker that ends sooner has not started
        os.kill(first[1], signal.SIGKILL)
        until(lambda: len(_children(process)) == 3 and first[1] not in _children(process))
        assert httpx.get(f"{url}/health").status_code == 200
        left = _children(process)
        process.terminate()
        assert process.wait(30) in (0, 143, -signal.SIGTERM)
        until(lambda: not any(Path(f"/proc/{one}").exists() for one in left))
    store.close()


_SLOW_FORK = """
import os, signal, socket, sys, time
from interlingua_gateway.workers import run_workers

fork = os.fork

def slow():
    process = fork()
    if (process == 0) == (sys.argv[1] == "child"):
        time.sleep(1)
    return process

os.fork = slow
print("forks", flush=True)
with socket.create_server(("127.0.0.1", 0)) as listener:
    run_workers(1, listener, lambda _: signal.pause())
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts processes in /proc")
@pytest.mark.parametrize("slow", ["child", "parent"])
def test_a_stop_reaches_a_worker_that_is_being_started(slow: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _SLOW_FORK, slow], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "forks\n"
            until(lambda: _children(process))
            left = _children(process)
            time.sleep(0.3)  # both processes run, one of them slowly
            process.terminate()
            assert process.wait(10) == 0
            assert not any(Path(f"/proc/{one}").exists() for one in left)
        finally:
            for each in (*_children(process), process.pid) if process.poll() is None else ():
                os.kill(each, signal.SIGKILL)


def test_a_worker_that_is_started_after_a_stop_is_stopped() -> None:
    program = """
import os, signal
from interlingua_gateway.workers import _Workers, fork

workers = _Workers()
workers.stopping = True
print(os.waitstatus_to_exitcode(os.waitpid(fork(signal.pause, workers.note), 0)[1]))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert int(ended.stdout) == -signal.SIGTERM


def test_workers_that_cannot_start_end_the_command(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('store = "mysql://x"\n')
    command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(config), "--workers", "2", "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "store must be" in ended.stderr
    assert "Traceback" not in ended.stderr

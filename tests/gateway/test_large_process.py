"""Requests with a large body are answered by a second process of the command, on the caller's own connection."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlingua_gateway.large_requests import LARGE, is_large
from tests.gateway.conftest import Upstream, new_store, say
from tests.support.loopback import send_bytes
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes in /proc")
JSON = {"content-type": "application/json"}
ROUTE = '[[routes]]\nmatch = "*"\nto = ["llamacpp:{}"]\nretries = 0\n'


def _body(size: int, **more: Any) -> bytes:
    text = 'He said "no".\n' * (size // 17)
    return json.dumps({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}], **more}).encode()


class Command:
    """The command, while it runs.

    Attributes:
        url: its address.
        process: its first process.
        file: the configuration.
        log: what it prints.
    """

    def __init__(self, upstream: Upstream, folder: Path, config: str) -> None:
        self.file, self.log = folder / "gateway.toml", folder / "log"
        self.file.write_text(config)
        environ = {**os.environ, "LLAMACPP_BASE_URL": f"{upstream.url}/v1", "HOME": str(folder)}
        environ |= {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(self.file), "--port", "0"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environ, stderr=log)
        line = until(lambda: next((line for line in self.printed() if line.startswith("serving on")), ""), 60)
        self.url = line.split()[2].rstrip(";")
        self.port = int(self.url.rpartition(":")[2])

    def printed(self) -> list[str]:
        return self.log.read_text().splitlines()

    def second(self) -> int:
        """Return the process for large requests, or 0 before it is started. A child of the command starts it."""
        (starter,) = _children(self.process.pid)
        return next(iter(_children(starter)), 0)

    def post(self, body: Any, **headers: str) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/messages", content=body, headers={**JSON, **headers}, timeout=60)


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _seconds(process: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def command(upstream: Upstream, folder: Path, config: str) -> Iterator[Command]:
    running = Command(upstream, folder, config)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_large_requests_take_no_time_of_the_first_process(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [_read_nothing]
    with command(upstream, tmp_path, ROUTE.format("up-1")) as running:
        assert running.post(_body(100)).status_code == 200
        assert running.post(_body(LARGE * 2)).status_code == 200  # the second one begins
        first, second = running.process.pid, running.second()
        before = _seconds(first), _seconds(second)
        for _ in range(5):
            answer = running.post(_body(25_000_000))
            assert answer.status_code == 200
            assert answer.headers["connection"] == "close"  # the caller's next request comes to the first process
        used = _seconds(first) - before[0], _seconds(second) - before[1]
    assert used[1] > 0.3
    assert used[0] < used[1] / 4


def _read_nothing(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    say("Hello.")(handler, {})


def test_keys_metrics_and_use_are_those_of_the_gateway(upstream: Upstream, tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/g.db"
    store = new_store(place)
    key, secret = store.add_key("Ann", admin=True)
    config = f'auth = "keys"\nstore = "{place}"\n{ROUTE.format("up-1")}'
    with command(upstream, tmp_path, config) as running:
        found = [running.post(_body(size), **{"x-api-key": secret}).status_code for size in (100, 2 * LARGE) * 2]
        assert found == [200] * 4
        assert running.post(_body(2 * LARGE), **{"x-api-key": "another"}).status_code == 401
        until(lambda: store.spent(key).requests == 4)
        metrics = httpx.get(f"{running.url}/metrics", headers={"x-api-key": secret}).text
    assert 'requests_total{api="anthropic",model="llamacpp:up-1",outcome="ok"} 4.0' in metrics
    assert 'outcome="AuthenticationError"} 1.0' in metrics


def test_a_connection_is_passed_however_its_request_arrives(upstream: Upstream, tmp_path: Path) -> None:
    body = _body(2 * LARGE)
    head = (
        b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    )
    head %= len(body)
    get = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with command(upstream, tmp_path, ROUTE.format("up-1")) as running:

        def ask(*parts: bytes, pause: float = 0.0, answers: int = 1) -> bytes:
            with socket.create_connection(("127.0.0.1", running.port), timeout=30) as caller:
                for part in parts:
                    caller.sendall(part)
                    time.sleep(pause)
                found = b""
                while (b"end_turn" not in found or found.count(b"HTTP/1.1 200") < answers) and (
                    got := caller.recv(1 << 16)
                ):
                    found += got
                return found

        assert b"end_turn" in ask(head + body)
        assert b"end_turn" in ask(*[head[at : at + 9] for at in range(0, len(head), 9)], body, pause=0.003)
        assert b"end_turn" in ask(get + head + body, answers=2)  # pipelined: answered by the first process
        assert b"end_turn" in ask(get, head + body, pause=0.3, answers=2)  # on a connection that was used
        assert b"end_turn" in ask(head.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"), body, pause=0.3)
        parts = (body[at : at + 300_000] for at in range(0, len(body), 300_000))
        assert running.post(parts).status_code == 200  # no content-length
        streamed = running.post(_body(2 * LARGE, stream=True))
        assert "message_stop" in streamed.text


def test_a_second_process_that_crashes_is_replaced(upstream: Upstream, tmp_path: Path) -> None:
    large = _body(2 * LARGE)
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(running.post(large).status_code)
        except httpx.TransportError as error:
            found.append(error)

    def kill() -> None:
        before = len(running.printed())
        os.kill(running.second(), signal.SIGKILL)
        until(lambda: any("ended with -9 and is replaced" in line for line in running.printed()[before:]))

    with command(upstream, tmp_path, ROUTE.format("up-1")) as running:
        assert running.post(large).status_code == 200
        kill()  # between requests
        begin = time.monotonic()
        assert running.post(large).status_code == 200  # here, by the first process
        assert running.second() == 0
        assert "in 1 s; until then" in running.printed()[-1]
        until(lambda: running.post(large).status_code == 200 and running.second() != 0)
        assert time.monotonic() - begin > 0.9

        asked = len(upstream.requests)
        upstream.answers = [_answer_late]
        callers = [threading.Thread(target=ask) for _ in range(3)]
        callers[0].start()
        until(lambda: len(upstream.requests) > asked)
        os.kill(running.second(), signal.SIGSTOP)  # it takes no more connections
        for caller in callers[1:]:
            caller.start()
        time.sleep(0.5)
        kill()  # during a request
        for caller in callers:
            caller.join()
        assert isinstance(found[0], httpx.TransportError)  # its caller knows
        assert found[1:] == [200, 200]  # by the process that replaced it
        assert "in 2 s; until then" in running.printed()[-1]


def test_both_processes_read_the_configuration_again_and_end_together(upstream: Upstream, tmp_path: Path) -> None:
    with command(upstream, tmp_path, ROUTE.format("a")) as running:
        for name in ("b", "c"):  # before and after the second process has started the application
            running.file.write_text(ROUTE.format(name))
            before = len(running.printed())
            running.process.send_signal(signal.SIGHUP)
            until(lambda: len(running.printed()) >= before + (2 if name == "c" else 1))  # noqa: B023  at once
            assert running.post(_body(2 * LARGE)).status_code == 200
            assert upstream.requests[-1][1]["model"] == name
        second = running.second()
        upstream.answers = [_answer_late]
        found: list[int] = []
        caller = threading.Thread(target=lambda: found.append(running.post(_body(2 * LARGE)).status_code))
        caller.start()
        until(lambda: len(upstream.requests) == 3)
        running.process.terminate()
        caller.join()
        assert found == [200]
        running.process.wait(30)
        until(lambda: not Path(f"/proc/{second}").exists())


def _answer_late(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    time.sleep(1)
    say("Hello.")(handler, body)


def test_the_log_has_no_characters_that_a_terminal_obeys(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [_refuse_with_an_address]  # which only the log keeps
    with command(upstream, tmp_path, ROUTE.format("up-1")) as running:
        assert running.post(_body(100)).status_code >= 400
        line = until(lambda: next((line for line in running.printed() if "No." in line), ""))
    assert "No.\\x1b[2J\\u202e" in line


def _refuse_with_an_address(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
    error = {"error": {"message": "No.\x1b[2J\u202e Ask http://10.0.0.1/", "type": "invalid_request_error"}}
    send_bytes(handler, 400, "application/json", json.dumps(error).encode())


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], False),
        ([(b"content-length", b"5")], False),
        ([(b"content-length", str(LARGE).encode())], True),
        ([(b"content-length", b"9" * 5_000)], True),
        ([(b"content-length", b"x")], False),
        ([(b"transfer-encoding", b"chunked")], True),
    ],
    ids=range(6),
)
def test_a_request_is_large_by_its_head(headers: list[tuple[bytes, bytes]], found: bool) -> None:
    assert is_large(headers) is found

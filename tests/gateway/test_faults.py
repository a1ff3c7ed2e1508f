"""Failures on the way: services killed in the middle, callers that leave or read slowly, a gateway that stops."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from interlingua_gateway.store import GatewayStore, Key
from tests.gateway.apis import APIS, Api, error_message, last_value
from tests.gateway.conftest import Upstream, chat_chunks, gateway, new_store
from tests.support.postgresql import SKIP_REASON, address, schema
from tests.support.waiting import until

each_api = pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def _begin(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()


def _write(handler: BaseHTTPRequestHandler, chunk: Any) -> None:
    data = chunk if isinstance(chunk, bytes) else b"data: " + json.dumps(chunk).encode() + b"\n\n"
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def _delta(text: str) -> dict[str, Any]:
    return chat_chunks({"role": "assistant", "content": text})[0]


def _kill_after(text: str, *, reset: bool) -> Answer:
    """Send text, then end the connection with no end of the body."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        _begin(handler)
        _write(handler, _delta(text))
        time.sleep(0.1)  # the text is read before the end comes
        if reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True
        handler.connection.close() if reset else handler.connection.shutdown(socket.SHUT_RDWR)

    return answer


class Endless:
    """An answer without end; notes when it could no longer be written.

    Args:
        pause: seconds between deltas.
        size: characters of a delta.
    """

    def __init__(self, pause: float = 0.02, size: int = 4) -> None:
        self.pause, self.text = pause, "x" * size
        self.written = 0
        self.broken = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            _begin(handler)
            while self.written < 100_000_000:
                _write(handler, _delta(self.text))
                self.written += len(self.text)
                time.sleep(self.pause)
        self.broken.set()
        handler.close_connection = True

    def check_is_stopped(self) -> None:
        """Wait until it can no longer be written, and check that less than a second's deltas were written till then."""
        before = self.written
        assert self.broken.wait(30)
        assert (self.written - before) / len(self.text) * self.pause < 1


@each_api
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_stream_whose_service_is_killed_ends_in_an_error(upstream: Upstream, api: Api, reset: bool) -> None:
    upstream.answers = [_kill_after("Hel", reset=reset)]
    with gateway(upstream) as url:
        answer = httpx.post(url + api.path, json=dict(api.body))

    assert answer.status_code == 200
    assert b"Hel" in answer.content
    assert api.finished not in answer.content.replace(b'": ', b'":')
    assert b"[DONE]" not in answer.content
    assert error_message(api, last_value(answer.content))


def _key(store: GatewayStore, environ: dict[str, str]) -> tuple[Key, dict[str, Any]]:
    key, secret = store.add_key("tests")
    return key, {"headers": {"authorization": f"Bearer {secret}"}, **environ}


@each_api
def test_a_caller_that_leaves_stops_the_service_and_pays_for_what_came(
    upstream: Upstream, api: Api, tmp_path: Path
) -> None:
    endless = Endless()
    upstream.answers = [endless]
    store = new_store(f"sqlite:///{tmp_path}/g.db")
    key, given = _key(store, {})
    with gateway(upstream, auth="keys", store=f"sqlite:///{tmp_path}/g.db") as url:
        with httpx.stream("POST", url + api.path, json=api.asking("Say x. " * 10), timeout=60, **given) as answer:
            assert answer.status_code == 200
            pieces = answer.iter_raw()
            while endless.written < 40:
                next(pieces)
        endless.check_is_stopped()
        used = _wait_for_usage(store, key)
    store.close()
    assert used.requests == 1
    assert used.input_tokens >= 10
    assert used.output_tokens >= 5


def _wait_for_usage(store: GatewayStore, key: Key) -> Any:
    until(lambda: store.spent(key).requests)
    return store.spent(key)


def test_a_caller_that_leaves_before_a_whole_answer_stops_the_service(upstream: Upstream) -> None:
    endless = Endless()
    upstream.answers = [endless]
    with gateway(upstream) as url:
        body = {key: value for key, value in APIS[0].body.items() if key != "stream"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/messages", json=body, timeout=0.3)
        endless.check_is_stopped()


def test_a_slow_reader_slows_the_service(upstream: Upstream) -> None:
    endless = Endless(pause=0, size=20_000)
    upstream.answers = [endless]
    with gateway(upstream) as url:
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            host, port = url.removeprefix("http://").split(":")
            caller.connect((host, int(port)))
            body = json.dumps(APIS[0].body).encode()
            head = f"POST {APIS[0].path} HTTP/1.1\r\nhost: {host}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            caller.sendall(head.encode() + body)
            seen = -1
            end = time.monotonic() + 20
            while seen != endless.written and time.monotonic() < end:  # until nothing more is taken
                seen = endless.written
                time.sleep(0.5)
            assert 0 < endless.written < 30_000_000  # what sockets and one write buffer hold
        assert endless.broken.wait(5)


@contextlib.contextmanager
def _process(upstream: Upstream, tmp_path: Path, **config: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `interlingua gateway` in its own process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [f"{name} = {json.dumps(value)}" for name, value in config.items()]
    lines += ["[[routes]]", 'match = "*"', 'to = ["llamacpp:up-1"]', "retries = 0"]
    file = tmp_path / "gateway.toml"
    file.write_text("\n".join(lines))
    environ = {"LLAMACPP_BASE_URL": f"{upstream.url}/v1", "PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(tmp_path)}
    environ["XDG_DATA_HOME"] = str(tmp_path)
    command = [sys.executable, "-m", "interlingua", "gateway", "--config", str(file), "--port", str(port)]
    child = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and child.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield child, f"http://127.0.0.1:{port}"
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def _until_told(end: threading.Event) -> Answer:
    """Answer with a stream that goes on until an event is set, for at most 60 seconds."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        _begin(handler)
        for _ in range(1_200):
            _write(handler, _delta("go "))
            if end.wait(0.05):
                break
        for chunk in chat_chunks()[-2:]:
            _write(handler, chunk)
        _write(handler, b"data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")

    return answer


def _open_streams(stack: contextlib.ExitStack, url: str) -> list[httpx.Response]:
    """Begin a stream of each API. A gateway that has just started may be slow on a busy machine."""
    client = stack.enter_context(httpx.Client(timeout=60))
    return [stack.enter_context(client.stream("POST", url + api.path, json=dict(api.body))) for api in APIS]


def _is_refused(url: str) -> bool:
    try:
        httpx.get(f"{url}/health", timeout=1)
    except httpx.ConnectError:
        return True
    except httpx.TransportError:  # accepted, but not answered
        return False
    return False


def test_a_gateway_that_is_told_to_stop_finishes_its_streams(upstream: Upstream, tmp_path: Path) -> None:
    end = threading.Event()
    upstream.answers = [_until_told(end)]
    with _process(upstream, tmp_path) as (child, url), contextlib.ExitStack() as stack:
        answers = _open_streams(stack, url)
        child.send_signal(signal.SIGTERM)
        until(lambda: _is_refused(url))
        end.set()
        for api, answer in zip(APIS, answers, strict=True):
            assert api.finished in answer.read().replace(b'": ', b'":'), api.name
        assert child.wait(30) == 0
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()


def test_streams_that_do_not_end_in_time_end_in_an_error(upstream: Upstream, tmp_path: Path) -> None:
    upstream.answers = [Endless()]
    with _process(upstream, tmp_path, drain=1.0) as (child, url), contextlib.ExitStack() as stack:
        answers = _open_streams(stack, url)
        child.send_signal(signal.SIGTERM)
        for api, answer in zip(APIS, answers, strict=True):
            data = b""
            with contextlib.suppress(httpx.RemoteProtocolError):
                for piece in answer.iter_raw():
                    data += piece
            assert api.finished not in data.replace(b'": ', b'":'), api.name
            assert b"[DONE]" not in data
            assert error_message(api, last_value(data))
        assert child.wait(30) == 0


def test_a_postgresql_database_that_is_gone_gives_nothing_away(upstream: Upstream) -> None:
    if not (url := address()):
        pytest.skip(SKIP_REASON)
    with schema(url) as own:
        store = new_store(own)
        _, secret = store.add_key("tests", budget_usd=1)
        store.close()
        with gateway(upstream, auth="keys", store=own) as served:
            headers = {"authorization": f"Bearer {secret}"}
            first = httpx.post(served + APIS[1].path, json=dict(APIS[1].body), headers=headers)
            engine = sa.create_engine(own.replace("postgresql://", "postgresql+psycopg://", 1))
            with engine.begin() as connection:
                connection.execute(sa.text("DROP TABLE gateway_used"))
            engine.dispose()
            gone = {api.name: httpx.post(served + api.path, json=dict(api.body), headers=headers) for api in APIS}

    assert first.status_code == 200
    for api in APIS:
        assert gone[api.name].status_code in (503, 529)
        assert "database" in error_message(api, gone[api.name].json())
    assert len(upstream.requests) == 1

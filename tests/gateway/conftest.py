"""A gateway on a loopback port, and a scripted service behind it that answers with the recorded forms of two APIs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
import uvicorn

from interlingua.plugins import Registry
from interlingua_gateway import config_of, create_app
from interlingua_gateway.server import LimitedHttpProtocol
from interlingua_gateway.store import GatewayStore
from tests.support.loopback import loopback, send_bytes
from tests.support.waiting import until

_stores: list[GatewayStore] = []


def new_store(place: str) -> GatewayStore:
    """Open a gateway's store beside the gateway; it is closed when the test ends, if not before."""
    _stores.append(GatewayStore(place))
    return _stores[-1]


@pytest.fixture(autouse=True)
def _close_stores() -> Iterator[None]:
    yield
    while _stores:
        _stores.pop().close()


class Upstream:
    """A service that answers Chat Completions and Messages from a script.

    Attributes:
        url: its address.
        requests: the bodies it got, with their paths.
        answers: functions that write an answer, taken in turn; the last one stays.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[Mapping[str, str]] = []
        self.answers: list[Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]] = [say("Hello.")]
        self._running = ExitStack()
        self.url = self._running.enter_context(loopback(self._answer))

    def _answer(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        body = json.loads(data)
        self.requests.append((handler.path, body))
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        answer(handler, body)

    def close(self) -> None:
        self._running.close()


def chat_chunks(*deltas: Mapping[str, Any], finish: str = "stop") -> Sequence[dict[str, Any]]:
    """Return the chunks of a Chat Completions stream (https://platform.openai.com/docs/api-reference/chat-streaming)."""
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "up-1"}
    parts = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return [
        *({**about, "choices": [part]} for part in [*parts, last]),
        {**about, "choices": [], "usage": usage},
    ]


def say(*pieces: str) -> Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]:
    """Answer with text, whole or streamed as requested."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if body.get("stream"):
            chunks = chat_chunks({"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces))
            data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
            send_bytes(handler, 200, "text/event-stream", data + b"data: [DONE]\n\n")
            return
        message = {"role": "assistant", "content": "".join(pieces)}
        whole = {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "up-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }  # fmt: skip
        send_bytes(handler, 200, "application/json", json.dumps(whole).encode())

    return answer


def refuse(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]:
    """Answer with an error."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        body = {"error": {"message": "not now", "type": "server_error", "code": None}}
        send_bytes(handler, status, "application/json", json.dumps(body).encode(), **headers)

    return answer


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application on a free loopback port; yield its address."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="error", ws="none", http=LimitedHttpProtocol, timeout_graceful_shutdown=5)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the server did not start")
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=15)


@contextmanager
def gateway(
    upstream: Upstream,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    registry: Registry | None = None,
    **config: Any,
) -> Iterator[str]:
    """Serve a gateway whose models are all the scripted service's; yield its address."""
    routes = [{"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]
    settings = settings or {"llamacpp": {"base_url": f"{upstream.url}/v1"}}
    app = create_app(
        config_of({"routes": routes, **config}), registry=registry, settings=settings, environ=environ or {}
    )
    with serving(app) as url:
        yield url


def wait_for_metric(url: str, text: str, key: str = "") -> str:
    """Return a gateway's metrics as soon as they contain a string; they are written after the answer is sent."""
    headers = {"x-api-key": key} if key else {}
    found: str = until(
        lambda: metrics if text in (metrics := httpx.get(f"{url}/metrics", headers=headers).text) else None
    )
    return found

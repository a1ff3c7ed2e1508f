"""The gateway beside a byte passthrough: processor time of each, from /proc, in interleaved rounds on the loopback.

    python gateway.py [--rounds 3] [--streams 1000]

The passthrough is bare Starlette and httpx under the same server; the scripted service and the caller are processes of
their own. Ratios mean something only with the service's pace: paced, each delta is one read; in bursts a read has many.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

_TICK = os.sysconf("SC_CLK_TCK")
_QUESTION = [{"role": "user", "content": "Hi"}]
CHAT = ("/v1/chat/completions", {"model": "m", "messages": _QUESTION})
MESSAGES = ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": _QUESTION})


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up-1"}
    chunk = {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def service() -> Starlette:
    """A service of Chat Completions: `max_tokens` deltas, `top_p` x 1000 milliseconds apart, 64 a write where 0."""

    async def answer(request: Request) -> Response:
        body = await request.json()
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "up-1", "choices": [choice]}
            return Response(json.dumps({**whole, "usage": usage}), media_type="application/json")
        count, pause = body["max_tokens"], body.get("top_p") or 0

        async def stream() -> AsyncIterator[bytes]:
            delta = _chunk({"content": "word "})
            yield _chunk({"role": "assistant", "content": ""})
            for _ in range(count if pause else count // 64):
                yield delta if pause else delta * 64
                await asyncio.sleep(pause)
            yield _chunk({}, "stop") + b"data: [DONE]\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


def passthrough(upstream: str) -> Starlette:
    """Copy bytes of requests and answers."""
    client = httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=None))

    async def copy(request: Request) -> Response:
        headers = {"content-type": "application/json"}
        sent = client.build_request("POST", upstream + CHAT[0], content=await request.body(), headers=headers)
        answer = await client.send(sent, stream=True)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in answer.aiter_raw():
                yield piece
            await answer.aclose()

        kind = {"content-type": answer.headers["content-type"]}
        return StreamingResponse(pieces(), answer.status_code, kind)

    return Starlette(routes=[Route(CHAT[0], copy, methods=["POST"])])


def gateway(upstream: str) -> Starlette:
    """The gateway, with the scripted service for all models."""
    from interlingua_gateway import config_of, create_app

    config = config_of({"routes": [{"match": "*", "to": ["llamacpp:up-1"], "retries": 0}]})
    return create_app(config, settings={"llamacpp": {"base_url": f"{upstream}/v1"}}, environ={})


class Server:
    """One of the applications in a process of its own."""

    def __init__(self, kind: str, upstream: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.child = subprocess.Popen([sys.executable, __file__, "--serve", kind, str(self.port), upstream])
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{kind} did not start")

    def cpu(self) -> float:
        """Return seconds of processor time so far, user and system."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def memory(self) -> int:
        """Return resident bytes."""
        return int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _ask(client: httpx.AsyncClient, url: str, asked: tuple[str, dict[str, Any]], **more: Any) -> int:
    """Return how many words of the text came."""
    answer = await client.post(url + asked[0], json={**asked[1], **more}, timeout=600)
    assert answer.status_code == 200, answer.text
    return answer.text.count("word ")


async def _all(url: str, asked: tuple[str, dict[str, Any]], count: int, at_once: int, **more: Any) -> list[int]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits) as client:
        gate = asyncio.Semaphore(at_once)

        async def one() -> int:
            async with gate:
                return await _ask(client, url, asked, **more)

        return list(await asyncio.gather(*(one() for _ in range(count))))


def _measure(server: Server, asked: tuple[str, dict[str, Any]], work: str) -> float:
    """Return microseconds of the server's processor time for each request or delta."""
    before = server.cpu()
    if work == "small":
        asyncio.run(_all(server.url, asked, 300, 8))
        return (server.cpu() - before) / 300 * 1e6
    count, pause = (1_000, 0.001) if work == "paced" else (19_200, 0)
    words = asyncio.run(_all(server.url, asked, 3, 2, stream=True, max_tokens=count, top_p=pause))
    assert words == [count] * 3, words
    return (server.cpu() - before) / (3 * count) * 1e6


def _report(rounds: int, servers: dict[str, tuple[Server, tuple[str, dict[str, Any]]]]) -> None:
    for server, asked in servers.values():
        asyncio.run(_all(server.url, asked, 50, 8))  # what the first requests load
    for work in ("small", "paced", "bursts"):
        found: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds):
            for name, (server, asked) in servers.items():
                found[name].append(_measure(server, asked, work))
        base = found["passthrough"]
        for name, times in found.items():
            ratio = statistics.median(time / floor for time, floor in zip(times, base, strict=True))
            print(f"{work:7} {name:22} {min(times):8.0f} us  x{ratio:.2f}", flush=True)


def _crowd(server: Server, asked: tuple[str, dict[str, Any]], count: int) -> None:
    """Have many streams open at once; all of them have to come whole."""
    before = server.memory()

    async def run() -> tuple[list[int], int]:
        asking = asyncio.ensure_future(_all(server.url, asked, count, count, stream=True, max_tokens=40, top_p=0.5))
        most = 0
        while not asking.done():
            most = max(most, server.memory())
            await asyncio.wait({asking}, timeout=0.2)
        return asking.result(), most

    words, most = asyncio.run(run())
    lost = sum(number != 40 for number in words)
    print(f"{count} streams at once: {lost} not whole, {(most - before) / count / 1024:.0f} KB a stream")


@contextlib.contextmanager
def _running() -> Iterator[dict[str, Server]]:
    made: dict[str, Server] = {}
    try:
        made["service"] = Server("service")
        for kind in ("passthrough", "gateway"):
            made[kind] = Server(kind, made["service"].url)
        yield made
    finally:
        for server in made.values():
            server.child.kill()
            server.child.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=1_000)
    given = parser.parse_args()
    if given.serve:
        kind, port, upstream = given.serve
        app = service() if kind == "service" else {"passthrough": passthrough, "gateway": gateway}[kind](upstream)
        uvicorn.run(app, port=int(port), log_level="error", access_log=False, ws="none", http="httptools")
        return
    with _running() as servers:
        same = {"passthrough": (servers["passthrough"], CHAT)}
        same["gateway, same API"] = (servers["gateway"], CHAT)
        same["gateway, across APIs"] = (servers["gateway"], MESSAGES)
        _report(given.rounds, same)
        for kind, asked in (("passthrough", CHAT), ("gateway", MESSAGES)):
            print(kind, end=": ")
            _crowd(servers[kind], asked, given.streams)


if __name__ == "__main__":
    main()

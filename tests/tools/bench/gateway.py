"""The gateway beside a byte passthrough: processor time of each, from /proc, in interleaved rounds on the loopback.

    python gateway.py [--rounds 3] [--streams 1000] [--litellm PROGRAM]

The passthrough is bare Starlette and httpx under the same server; the scripted service and the caller are processes of
their own. Ratios mean something only with the service's pace: paced, each delta is one read; in bursts a read has many.
With `--litellm`, LiteLLM's proxy runs in the same rounds: PROGRAM is the `litellm` of an environment of its own, made
by `python -m venv FOLDER` and `FOLDER/bin/pip install 'litellm[proxy]==1.108.7'` (0.8 GB).
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
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

# offline, with no key asked for
_LITELLM = {
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
}  # fmt: skip
_TICK = os.sysconf("SC_CLK_TCK")
_LARGE = 30_000_000  # characters of a large request
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
            deltas = [_chunk({"content": f"word {number} "}) for number in range(64)]  # LiteLLM refuses repetitions
            burst = b"".join(deltas)
            yield _chunk({"role": "assistant", "content": ""})
            for number in range(count if pause else count // 64):
                yield deltas[number % 64] if pause else burst
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
    """One of the applications in a process of its own.

    Args:
        kind: which one.
        upstream: the service behind it.
        program: what runs it, with options; None is this file.
    """

    def __init__(self, kind: str, upstream: str = "", program: Sequence[str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [*program, "--port", str(self.port)] if program else None
        command = command or [sys.executable, __file__, "--serve", kind, str(self.port), upstream]
        quiet = subprocess.DEVNULL if program else None
        self.child = subprocess.Popen(command, env={**os.environ, **_LITELLM}, stdout=quiet, stderr=quiet)
        for _ in range(1_200):
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
    if work in ("small", "large"):
        count, at_once = (1_500, 8) if work == "small" else (4, 2)
        large = {} if work == "small" else {"messages": [{"role": "user", "content": "Q" * _LARGE}]}
        asyncio.run(_all(server.url, asked, count, at_once, **large))
        return (server.cpu() - before) / count * 1e6
    count, pause = (1_000, 0.001) if work == "paced" else (9_600, 0)
    words = asyncio.run(_all(server.url, asked, 3, 2, stream=True, max_tokens=count, top_p=pause))
    assert words == [count] * 3, words
    return (server.cpu() - before) / (3 * count) * 1e6


def _report(rounds: int, servers: dict[str, tuple[Server, tuple[str, dict[str, Any]]]]) -> None:
    for server, asked in servers.values():
        asyncio.run(_all(server.url, asked, 50, 8))  # what the first requests load
    for work in ("small", "paced", "bursts", "large"):
        found: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds):
            for name, (server, asked) in servers.items():
                found[name].append(_measure(server, asked, work))
        base = found["passthrough"]
        for name, times in found.items():
            ratios = sorted(time / floor for time, floor in zip(times, base, strict=True))
            spread = f"x{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"{work:7} {name:22} {min(times):8.0f} to {max(times):6.0f} us  {spread}", flush=True)


def _crowd(server: Server, asked: tuple[str, dict[str, Any]], count: int, before: int) -> None:
    """Have many streams open at once; all of them have to come whole. `before`: the server's bytes when it was idle."""

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


def _stall(server: Server, asked: tuple[str, dict[str, Any]], count: int, before: int) -> None:
    """Have readers that read nothing of a long stream: what is kept for each has to stay small."""
    body = json.dumps({**asked[1], "stream": True, "max_tokens": 64 * 2_000, "top_p": 0}).encode()  # 20 MB
    head = f"POST {asked[0]} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            reader = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            reader.sendall(f"{head}\r\n\r\n".encode() + body)
        used, rests = server.cpu(), 0
        for _ in range(120):
            time.sleep(1)
            used, last = server.cpu(), used
            rests = rests + 1 if used - last < 0.05 else 0
            if rests == 3:
                break
        kept = f"{(server.memory() - before) / count / 1024:.0f} KB a stream"
    print(f"{count} readers that read nothing: {kept}, {'at rest' if rests == 3 else 'still taking more'}")


def _litellm(program: str, upstream: str, folder: str) -> Sequence[str]:
    """Return the command that runs LiteLLM's proxy with the scripted service for its one model."""
    model = {"model": "hosted_vllm/up-1", "api_base": f"{upstream}/v1", "api_key": "k"}
    settings = {
        "model_list": [{"model_name": "m", "litellm_params": model}],
        "router_settings": {"disable_cooldowns": True, "num_retries": 0},
    }
    config = Path(folder) / "litellm.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML
    return [program, "--config", str(config), "--host", "127.0.0.1", "--telemetry", "False"]


@contextlib.contextmanager
def _running(litellm: str | None) -> Iterator[dict[str, Server]]:
    made: dict[str, Server] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            made["service"] = Server("service")
            upstream = made["service"].url
            for kind in ("passthrough", "gateway"):
                made[kind] = Server(kind, upstream)
            if litellm:
                made["LiteLLM"] = Server("LiteLLM", upstream, _litellm(litellm, upstream, folder))
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
    parser.add_argument("--litellm", metavar="PROGRAM")
    given = parser.parse_args()
    if given.serve:
        kind, port, upstream = given.serve
        app = service() if kind == "service" else {"passthrough": passthrough, "gateway": gateway}[kind](upstream)
        http: Any = "httptools"
        if kind == "gateway":  # as its command serves it
            from interlingua_gateway.server import LimitedHttpProtocol

            http = LimitedHttpProtocol
        uvicorn.run(app, port=int(port), log_level="error", access_log=False, ws="none", http=http)
        return
    with _running(given.litellm) as servers:
        asked: dict[str, tuple[Server, Any]] = {"passthrough": (servers["passthrough"], CHAT)}
        for kind in ("gateway", "LiteLLM"):
            if kind in servers:
                asked[f"{kind}, same API"] = (servers[kind], CHAT)
                asked[f"{kind}, across APIs"] = (servers[kind], MESSAGES)
        _report(given.rounds, asked)
        idle = {name: server.memory() for name, server in servers.items()}
        for name, (server, api) in asked.items():
            print(name, end=": ", flush=True)
            _crowd(server, api, given.streams, idle[name.partition(",")[0]])
        for name, (server, api) in list(asked.items())[:3]:
            print(name, end=": ", flush=True)
            _stall(server, api, 40, server.memory())


if __name__ == "__main__":
    main()

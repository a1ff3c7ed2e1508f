"""A server for bulk tests, in its own process: Chat Completions with latency, 429s, 5xx and cut connections.

`python -m tests.bulk.loopback '{"latency_ms": 20, …}'` prints its port. It counts how often each row was answered: a
row says its number in its prompt, as `row 17`. `GET /stats` returns the counts.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from tests.support import tree
from tests.support.terminal import limited

ROW = re.compile(rb"row (\d+)")
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
TEXT = "The quick brown fox jumps over the lazy dog, and the answer to row %d is %d."


class Service:
    """What the server answers, and what it counted."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.random = random.Random(settings.get("seed", 1))
        self.latency = settings.get("latency_ms", 20) / 1000
        self.errors = settings.get("errors", 0.0)  # share of 500 and 503
        self.cuts = settings.get("cuts", 0.0)  # share of connections cut after the work was done
        self.per_second = settings.get("per_second")  # requests; above are 429
        self.retry_after_ms = settings.get("retry_after_ms", 50)  # None for no header
        self.refusals = settings.get("refusals", 0.0)  # share of 429, whatever the rate
        self.at_once = settings.get("at_once", 0.0)  # share of the refusals that ask for no wait: `retry-after: 0`
        self.outage = settings.get("outage")  # from and until, seconds after the first request: all get 429
        self.began: float | None = None
        self.times: Counter[int] = Counter()  # answers in each tenth of a second since
        self.input_tokens, self.output_tokens = settings.get("input_tokens", 20), settings.get("output_tokens", 18)
        self.refuse_every = settings.get("refuse_every")  # after so many answers all get 429 for a while
        self.refuse_for = settings.get("refuse_for_ms", 30) / 1000
        self.refused_until = 0.0
        self.refuse_from = settings.get("refuse_from")  # requests from this one on get 401
        self.fail_from = settings.get("fail_from")  # requests from this one on get 500
        self.bad_rows = set(settings.get("bad_rows", ()))  # rows that draw a 400
        self.level, self.at = float(self.per_second or 0), time.monotonic()
        self.asked: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()
        self.kinds: Counter[str] = Counter()
        self.under_way = self.most = self.total = 0

    def limited(self) -> bool:
        if not self.per_second:
            return False
        now = time.monotonic()
        self.level = min(self.per_second / 4, self.level + (now - self.at) * self.per_second)
        self.at = now
        if self.level < 1:
            return True
        self.level -= 1
        return False

    def answer(self, row: int) -> tuple[str, bytes, bool]:
        """Return the status line's rest with headers, the body, and whether the connection is cut instead."""
        self.asked[row] += 1
        if self.refuse_from is not None and self.asked.total() >= self.refuse_from:
            return self.failure("401 Unauthorized", "invalid_api_key", "authentication_error")
        if self.fail_from is not None and self.asked.total() >= self.fail_from:
            return self.failure("500 Internal Server Error", "server_error", "server_error")
        if row in self.bad_rows:
            return self.failure("400 Bad Request", "bad_row", "invalid_request_error")
        now = time.monotonic()
        self.began = self.began or now
        refused = self.refusals and self.random.random() < self.refusals
        refused = refused or (self.outage and self.outage[0] <= now - self.began < self.outage[1])
        if refused or self.limited() or now < self.refused_until:
            return self.failure("429 Too Many Requests", "rate_limit_exceeded", "requests")
        chance = self.random.random()
        if chance < self.errors:
            status = "500 Internal Server Error" if chance < self.errors / 2 else "503 Service Unavailable"
            return self.failure(status, "server_error", "server_error")
        self.answered[row] += 1
        self.total += 1
        self.times[int((now - self.began) * 10)] += 1
        if self.refuse_every and self.total % self.refuse_every == 0:
            self.refused_until = time.monotonic() + self.refuse_for
        if chance < self.errors + self.cuts:
            self.kinds["cut"] += 1
            return "", b"", True
        self.kinds["200"] += 1
        body = {
            "id": f"chatcmpl-{row}",
            "object": "chat.completion",
            "created": 1764000000,
            "model": "small",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": TEXT % (row, row * row)},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": self.input_tokens,
                "completion_tokens": self.output_tokens,
                "total_tokens": self.input_tokens + self.output_tokens,
            },
        }
        return f"200 OK\r\nx-request-id: req-{row}", json.dumps(body).encode(), False

    def failure(self, status: str, code: str, kind: str) -> tuple[str, bytes, bool]:
        self.kinds[status[:3]] += 1
        headers = status
        if status.startswith("429"):
            if self.at_once and self.random.random() < self.at_once:
                headers += "\r\nretry-after: 0"
            elif self.retry_after_ms is not None:
                headers += f"\r\nretry-after-ms: {self.retry_after_ms}"
        return headers, json.dumps({"error": {"message": status, "type": kind, "code": code}}).encode(), False

    def stats(self) -> dict[str, Any]:
        twice = sorted(row for row, count in self.answered.items() if count > 1)
        return {
            "rows": len(self.answered), "answers": self.answered.total(), "twice": twice[:1000],
            "extra": self.answered.total() - len(self.answered), "kinds": dict(self.kinds), "most": self.most,
            "asked": self.asked.total(), "times": self.times,
        }  # fmt: skip


class Protocol(asyncio.Protocol):
    def __init__(self, service: Service) -> None:
        self.service, self.buffer = service, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        if head.startswith(b"GET"):
            body = json.dumps(self.service.stats()).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()
            return
        length = LENGTH.search(head)
        if length is None or len(rest) < int(length[1]):
            return
        self.buffer = b""
        row = ROW.search(rest)
        service = self.service
        service.under_way += 1
        service.most = max(service.most, service.under_way)
        head_, body, cut = service.answer(int(row[1]) if row else -1)
        delay = service.latency * (0.5 + service.random.random()) if head_.startswith("200") or cut else 0.001
        asyncio.get_running_loop().call_later(delay, self.finish, head_, body, cut)

    def finish(self, head: str, body: bytes, cut: bool) -> None:
        self.service.under_way -= 1
        if cut:
            self.transport.abort()
            return
        self.transport.write(
            f"HTTP/1.1 {head}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        )


async def serve(settings: dict[str, Any]) -> None:
    service = Service(settings)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Protocol(service), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until who started it ends
    server.close()


class Loopback:
    """A running server.

    Attributes:
        url: base URL of its API.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._stats = f"http://127.0.0.1:{port}/stats"

    def stats(self) -> dict[str, Any]:
        with urlopen(self._stats) as answer:  # noqa: S310  our own server
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def loopback(**settings: Any) -> Iterator[Loopback]:
    """Run a server; it ends with the block, or with this process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bulk.loopback", json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tree.ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with limited(process):
            port = int(process.stdout.readline())
        yield Loopback(port)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1]) if sys.argv[1:] else {}))

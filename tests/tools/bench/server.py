"""The replay server: canned answers on 127.0.0.1, keep-alive, no delay, each answer's bytes made once.

    python server.py        prints its port and serves until it is ended

Figures are the client's own processor time, so the server's is not in them.

    POST /x/<scenario>[.blk]/v1/messages | /x/<scenario>[.blk][/v1]/chat/completions

An answer to `"stream": true` comes with one HTTP chunk per SSE event, or in 16 KiB chunks where the path says `.blk`.
"""

from __future__ import annotations

import asyncio
import functools
import re

import data

_STREAM = re.compile(rb'"stream"\s*:\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_PATH = re.compile(rb"POST /x/([a-z0-9]+)(\.blk)?(?:/v1)?/(messages|chat/completions)\b")
_BLOCK = 16 * 1024
_COMMON = (
    b"Date: Sat, 21 Nov 2026 20:00:00 GMT\r\nConnection: keep-alive\r\nCache-Control: no-cache\r\n"
    b"strict-transport-security: max-age=31536000\r\nServer: cloudflare\r\nCF-RAY: 0123456789abcdef-ZRH\r\n"
)
_LIMITS = {
    "messages": (
        b"request-id: req_0123456789abcdef\r\nanthropic-ratelimit-requests-limit: 4000\r\n"
        b"anthropic-ratelimit-requests-remaining: 3999\r\nanthropic-ratelimit-tokens-remaining: 399000\r\n"
    ),
    "chat/completions": (
        b"x-request-id: req_0123456789abcdef\r\nopenai-version: 2020-10-01\r\nopenai-processing-ms: 412\r\n"
        b"x-ratelimit-limit-requests: 10000\r\nx-ratelimit-remaining-tokens: 1999000\r\n"
    ),
}


@functools.cache
def answer(name: str, wire: str, *, blocks: bool, stream: bool) -> bytes:
    """Return the whole HTTP answer."""
    is_messages = wire == "messages"
    if not stream:
        body = data.anthropic_json(name) if is_messages else data.openai_json(name)
        head = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    else:
        events = data.anthropic_events(name) if is_messages else data.openai_events(name)
        whole = b"".join(events)
        chunks = [whole[at : at + _BLOCK] for at in range(0, len(whole), _BLOCK)] if blocks else events
        body = b"".join([b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]) + b"0\r\n\r\n"
        head = b"Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
    return b"HTTP/1.1 200 OK\r\n" + head + _COMMON + _LIMITS[wire] + b"\r\n" + body


def respond(head: bytes, body: bytes) -> bytes:
    """Return the answer to one request."""
    asked = _PATH.match(head)
    if asked is None:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
    name, blocks, wire = asked.groups()
    return answer(name.decode(), wire.decode(), blocks=blocks is not None, stream=bool(_STREAM.search(body)))


class Replay(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out: asyncio.WriteTransport = transport  # type: ignore[assignment]
        self._buffer = bytearray()
        self._wanted = 0

    def data_received(self, received: bytes) -> None:
        self._buffer += received
        while self._buffer and len(self._buffer) >= self._wanted and self._one():
            pass

    def _one(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return False
        head = bytes(self._buffer[:end])
        length = _LENGTH.search(head)
        self._wanted = end + (int(length[1]) if length else 0)
        if len(self._buffer) < self._wanted:
            return False
        self._out.write(respond(head, bytes(self._buffer[end : self._wanted])))
        del self._buffer[: self._wanted]
        self._wanted = 0
        return True


async def main() -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(Replay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

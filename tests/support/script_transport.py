"""Transports in memory that run the scripts of `fault_server`: the protocol of `interlingua.transport`, by hand."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio

from interlingua.transport import HttpRequest, TimeLimits, connection_failed
from tests.support.fault_server import Script, Step

_LARGEST_HEAD = 256 * 1024


class ScriptServer:
    """Scripts for one test; each request gets the next one, the last one again and again."""

    url = "http://memory.test"

    def __init__(self, *scripts: Script) -> None:
        self.requests: list[bytes] = []
        self._scripts = list(scripts)

    def _begin(self, request: HttpRequest) -> Iterator[Step]:
        self.requests.append(request.body)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        return iter(script() if callable(script) else script)

    def transport(self, *, blocking: bool) -> Any:
        return Transport(self) if blocking else AsyncTransport(self)


class _Reply:
    """Reads steps: a head first, then pieces of the body; seconds to wait are returned to the caller."""

    def __init__(self, steps: Iterator[Step], limits: TimeLimits, url: str) -> None:
        self._steps, self._limits, self._url = steps, limits, url
        self._rest, self._left = b"", -1
        self.status, self.headers = 0, dict[str, str]()

    def read_head(self) -> Iterator[float]:
        """Read steps until the head is complete; yield the seconds to wait."""
        seen = b""
        while b"\r\n\r\n" not in seen:
            step = next(self._steps, None)
            if isinstance(step, float):
                yield self._wait(step, self._limits.first_byte, "first_byte")
            elif not isinstance(step, bytes) or len(seen) > _LARGEST_HEAD:
                raise connection_failed(ConnectionResetError("closed before the head"), self._url)
            else:
                seen += step
        text, self._rest = seen.split(b"\r\n\r\n", 1)
        lines = text.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self._left = int(self.headers.get("content-length", -1))

    def read(self) -> bytes | float | None:
        """Return a piece of the body, seconds to wait, or None at the end."""
        step: Step | None = self._rest or next(self._steps, None)
        self._rest = b""
        if isinstance(step, float):
            return self._wait(step, self._limits.between_chunks, "between_chunks")
        if self._left == 0:
            return None
        if isinstance(step, bytes):
            piece = step if self._left < 0 else step[: self._left]
            self._left -= len(piece) if self._left > 0 else 0
            return piece
        if step is not None or self._left > 0:
            raise connection_failed(ConnectionResetError("closed within the body"))
        return None

    def _wait(self, seconds: float, limit: float | None, phase: Any) -> float:
        if limit is not None and seconds > limit:
            self._steps = self._time_out(phase)
            return limit
        return seconds

    def _time_out(self, phase: Any) -> Iterator[Step]:
        raise self._limits.timed_out(phase)
        yield b""

    def abort(self) -> None:
        self._steps = iter(())


class Reply(_Reply):
    def __iter__(self) -> Iterator[bytes]:
        while (piece := self.read()) is not None:
            if isinstance(piece, float):
                time.sleep(piece)
            elif piece:
                yield piece

    def close(self) -> None:
        pass


class Transport:
    def __init__(self, server: ScriptServer) -> None:
        self._server = server

    def open(self, request: HttpRequest, limits: TimeLimits) -> Reply:
        reply = Reply(self._server._begin(request), limits, request.url)
        for seconds in reply.read_head():
            time.sleep(seconds)
        return reply

    def close(self) -> None:
        pass


class AsyncReply(_Reply):
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while (piece := self.read()) is not None:
            if isinstance(piece, float):
                await anyio.sleep(piece)
            elif piece:
                return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        pass


class AsyncTransport:
    def __init__(self, server: ScriptServer) -> None:
        self._server = server

    async def open(self, request: HttpRequest, limits: TimeLimits) -> AsyncReply:
        reply = AsyncReply(self._server._begin(request), limits, request.url)
        for seconds in reply.read_head():
            await anyio.sleep(seconds)
        return reply

    async def aclose(self) -> None:
        pass

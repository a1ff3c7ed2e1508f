"""Transports in memory, and a guard against every other one."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal

from interlingua._http import io
from interlingua.transport import HttpRequest, TimeLimits

_JSON: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})


class MemoryReply:
    """The reply of a `MemoryTransport`.

    Args:
        body: bytes of the body, or an iterable of pieces; an error raised by it simulates a broken connection.
        status: HTTP status.
        headers: response headers; `content-type` is `application/json` unless set here.
        delay: seconds until the headers arrive. The client's time limits apply, to it and to `pause`.
        pause: seconds before each piece of the body.
    """

    def __init__(
        self,
        body: bytes | Iterable[bytes] = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] = _JSON,
        delay: float = 0.0,
        pause: float = 0.0,
    ) -> None:
        self.status = status
        self.headers = {**_JSON, **{name.lower(): value for name, value in headers.items()}}
        self._delay, self._pause = delay, pause
        self._pieces = iter((body,) if isinstance(body, bytes) else body)
        self._closed = threading.Event()
        self._limits = TimeLimits(None)

    def open(self, limits: TimeLimits) -> MemoryReply:
        """Wait until the headers would arrive; return the reply."""
        self._limits = limits
        self._wait(self._delay, limits.first_byte, "first_byte")
        return self

    async def open_async(self, limits: TimeLimits) -> MemoryReply:
        """See `open`."""
        self._limits = limits
        await self._wait_async(self._delay, limits.first_byte, "first_byte")
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self._wait(self._pause, self._limits.between_chunks, "between_chunks")
        if self._closed.is_set():
            raise StopIteration
        return next(self._pieces)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await self._wait_async(self._pause, self._limits.between_chunks, "between_chunks")
        for piece in () if self._closed.is_set() else self._pieces:
            return piece
        raise StopAsyncIteration

    def _wait(self, seconds: float, limit: float | None, phase: Literal["first_byte", "between_chunks"]) -> None:
        """Wait in a thread; `close` wakes it."""
        if seconds:
            self._closed.wait(seconds if limit is None else min(seconds, limit))
            if limit is not None and limit < seconds and not self._closed.is_set():
                raise self._limits.timed_out(phase)

    async def _wait_async(
        self, seconds: float, limit: float | None, phase: Literal["first_byte", "between_chunks"]
    ) -> None:
        if seconds:
            from anyio import sleep  # noqa: PLC0415  only for replies that are delayed

            await sleep(seconds if limit is None else min(seconds, limit))
            if limit is not None and limit < seconds:
                raise self._limits.timed_out(phase)

    def close(self) -> None:
        """End the body."""
        self._closed.set()

    abort = close

    async def aclose(self) -> None:
        """End the body."""
        self.close()


class MemoryTransport:
    """A transport for `Client(transport=…)` that answers by a function.

    Args:
        answer: takes a request and returns the reply or the bytes of a JSON body; may raise an error of a transport.

    Attributes:
        requests: the requests sent.
    """

    def __init__(self, answer: Callable[[HttpRequest], MemoryReply | bytes]) -> None:
        self._answer = answer
        self.requests: list[HttpRequest] = []

    def open(self, request: HttpRequest, limits: TimeLimits) -> MemoryReply:
        """Return the reply to a request."""
        return self._reply(request).open(limits)

    def _reply(self, request: HttpRequest) -> MemoryReply:
        self.requests.append(request)
        answer = self._answer(request)
        return MemoryReply(answer) if isinstance(answer, bytes) else answer

    def close(self) -> None:
        """Do nothing."""


class AsyncMemoryTransport:
    """As `MemoryTransport`, for `AsyncClient(transport=…)`."""

    def __init__(self, answer: Callable[[HttpRequest], MemoryReply | bytes]) -> None:
        self._memory = MemoryTransport(answer)
        self.requests = self._memory.requests

    async def open(self, request: HttpRequest, limits: TimeLimits) -> MemoryReply:
        """Return the reply to a request."""
        return await self._memory._reply(request).open_async(limits)

    async def aclose(self) -> None:
        """Do nothing."""


@contextmanager
def no_network() -> Iterator[None]:
    """Fail every request with an AssertionError that contains its URL, unless a transport in memory answers it."""

    def refuse(transport: object, url: str) -> None:
        if not isinstance(transport, (MemoryTransport, AsyncMemoryTransport)):
            raise AssertionError(f"a request to {url.partition('?')[0]} inside no_network()")

    before, io.network_guard = io.network_guard, refuse
    try:
        yield
    finally:
        io.network_guard = before

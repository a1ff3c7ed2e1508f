"""Tests of applications and plugins without network or keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from interlingua._http import io
from interlingua.transport import HttpRequest, TimeLimits

__all__ = ["AsyncMemoryTransport", "MemoryReply", "MemoryTransport", "no_network"]

_JSON: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})


class MemoryReply:
    """The reply of a `MemoryTransport`.

    Args:
        body: the bytes of the body, or its pieces; one that raises an error stands for a broken connection.
        status: HTTP status.
        headers: response headers; names are lowered, and `content-type` is JSON's unless it is set here.
    """

    def __init__(
        self, body: bytes | Iterable[bytes] = b"", *, status: int = 200, headers: Mapping[str, str] = _JSON
    ) -> None:
        self.status = status
        self.headers = {**_JSON, **{name.lower(): value for name, value in headers.items()}}
        self._pieces = iter((body,) if isinstance(body, bytes) else body)
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._closed:
            raise StopIteration
        return next(self._pieces)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def close(self) -> None:
        """End the body."""
        self._closed = True

    async def aclose(self) -> None:
        """End the body."""
        self._closed = True

    def abort(self) -> None:
        """End the body."""
        self._closed = True


class MemoryTransport:
    """A transport for `Client(transport=…)` that answers by a function.

    Args:
        answer: takes the request and returns its reply, or the bytes of a JSON body; may raise what a transport raises.

    Attributes:
        requests: those that were sent.
    """

    def __init__(self, answer: Callable[[HttpRequest], MemoryReply | bytes]) -> None:
        self._answer = answer
        self.requests: list[HttpRequest] = []

    def open(self, request: HttpRequest, limits: TimeLimits) -> MemoryReply:
        """Return the reply to a request."""
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
        return self._memory.open(request, limits)

    async def aclose(self) -> None:
        """Do nothing."""


@contextmanager
def no_network() -> Iterator[None]:
    """Make every request fail with an AssertionError that names its host, unless a memory transport answers it."""

    def refuse(transport: object, url: str) -> None:
        if not isinstance(transport, (MemoryTransport, AsyncMemoryTransport)):
            raise AssertionError(f"a request to {url.partition('?')[0]} inside no_network()")

    before, io.network_guard = io.network_guard, refuse
    try:
        yield
    finally:
        io.network_guard = before

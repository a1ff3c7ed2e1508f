"""Waiting in the clients' shared coroutines: by blocking the thread, or on the running event loop.

The code of a request is written once, as coroutines that wait by one of two objects. `BlockingIO` blocks the thread and
never suspends, so that `run_without_waiting` can run the coroutine as a function. `AnyIO` suspends, on asyncio or trio.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isawaitable
from typing import Any, TypeVar, cast

from interlingua.errors import APIConnectionError, ProviderError
from interlingua.transport import AsyncReply, HttpRequest, Reply, TimeLimits, Transport

_T = TypeVar("_T")

LAST_SECONDS = 5.0
"""How long a client waits for the answer to a request that ends work at a service."""

network_guard: Callable[[object, str], None] | None = None
"""Called with the transport and the address before each request; `interlingua.testing.no_network` sets it."""


def run_without_waiting(work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that waits by `BlockingIO` only, and so never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("_T", done.value)
    except (ProviderError, APIConnectionError) as error:
        raise error.with_traceback(None)  # noqa: B904  a short traceback: how the client waited is not part of it
    raise AssertionError("a coroutine of the blocking client suspended")


class BlockingIO:
    """Waits by blocking the thread; safe for use from several threads. `AnyIO` has the same methods.

    `close` closes the transport if it is `owned`.
    """

    def __init__(self, transport: Transport, *, owned: bool) -> None:
        self._transport, self._owned = transport, owned
        self._locks: dict[str, threading.Lock] = {}

    async def prepare(self) -> None:
        """Create the transport, if that takes long, before a latency is measured."""

    async def open(self, request: HttpRequest, limits: TimeLimits) -> AsyncReply:
        """Send a request and return its reply."""
        if network_guard is not None:
            network_guard(self._transport, request.url)
        return _BlockingReply(self._transport.open(request, limits))

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def finish(self, work: Awaitable[object]) -> None:
        """Do some last work within a few seconds, also for a caller whose task was cancelled."""
        await work

    async def load(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function that may import modules or read files, without blocking an event loop."""
        return function(*arguments)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a caller's function, which may block or return an awaitable."""
        made = function(*arguments)
        return _await_in_thread(made) if isawaitable(made) else made

    def waiting(self) -> Any:
        """Return something by which this thread waits until another one calls its `wake`."""
        return _ThreadWaiting()

    async def run_together(self, work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
        """Run `count` workers at once, each in a thread, and wait for all."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  few calls are mapped
        from contextvars import copy_context  # noqa: PLC0415

        with ThreadPoolExecutor(count, "interlingua-map") as pool:
            for done in [pool.submit(copy_context().run, run_without_waiting, work()) for _ in range(count)]:
                done.result()

    def lock(self, name: str) -> AbstractAsyncContextManager[Any]:
        """Return the lock of this name."""
        return _locked(self._locks.setdefault(name, threading.Lock()))

    async def close(self) -> None:
        """Close the transport that was created here."""
        if self._owned:
            self._transport.close()


class _BlockingReply:
    """A reply of a blocking transport, as an `AsyncReply` that never suspends."""

    def __init__(self, reply: Reply) -> None:
        self.status, self.headers = reply.status, reply.headers
        self.abort = reply.abort
        self._reply = reply
        self._pieces: Iterator[bytes] = iter(())

    def __aiter__(self) -> _BlockingReply:
        self._pieces = iter(self._reply)
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        self._reply.close()


class _ThreadWaiting:
    def __init__(self) -> None:
        self._event = threading.Event()
        self.wake = self._event.set

    async def wait(self) -> None:
        self._event.wait()


@asynccontextmanager
async def _locked(lock: threading.Lock) -> AsyncIterator[None]:
    with lock:
        yield


def _await_in_thread(made: Awaitable[Any]) -> Any:
    """Return what an awaitable returns; the caller's thread may run a loop, so another thread runs one for it."""
    import asyncio  # noqa: PLC0415  large, and few credentials are awaited
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    async def result() -> Any:
        return await made

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, result()).result()

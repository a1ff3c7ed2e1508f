"""Waiting on the event loop that runs, asyncio's or trio's. Blocking clients do not load this module."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from interlingua._http import io
from interlingua.transport import AsyncReply, AsyncTransport, HttpRequest, TimeLimits

_T = TypeVar("_T")


class _LoopState:
    """The transport and the locks of one event loop."""

    def __init__(self) -> None:
        self.locks: dict[str, anyio.Lock] = {}
        self.transport: AsyncTransport | None = None
        self.keeper: AsyncGenerator[None, None] | None = None  # closes the transport when the loop shuts down


class _TaskWaiting:
    """A task of the running loop that waits; a loop that was closed raises a RuntimeError in `wake`."""

    def __init__(self) -> None:
        loop: Any = anyio.lowlevel.current_token().native_token
        self._event = event = anyio.Event()
        self.wait = event.wait
        self._call: Callable[..., Any] = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def wake(self) -> None:
        self._call(self._event.set)


class AnyIO:
    """Waits on asyncio or trio; one object may serve several event loops, one after the other or at once.

    A `transport` is used on every loop, and stays open; without one, `make` creates one for each, in a thread.
    """

    sleep = staticmethod(anyio.sleep)

    def __init__(self, transport: AsyncTransport | None, make: Callable[[], AsyncTransport]) -> None:
        self._transport, self._make = transport, make
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[Any, _LoopState] = WeakKeyDictionary()

    def _state(self) -> _LoopState:
        """Return what belongs to the running loop."""
        loop: Any = anyio.lowlevel.current_token().native_token
        state = self._loops.get(loop)
        if state is None:
            with self._lock:
                # connections hold their loop, so a loop that was closed without shutting down would stay here
                for other in [other for other in self._loops if getattr(other, "is_closed", bool)()]:
                    del self._loops[other]
                state = self._loops.setdefault(loop, _LoopState())
        return state

    async def prepare(self) -> AsyncTransport:
        """Return the loop's transport; the first time, create it."""
        transport = self._transport or (state := self._state()).transport
        if transport is None:
            async with self.lock("transport"):
                if state.transport is None:
                    library = anyio.lowlevel.current_token().backend_class.__module__.rpartition("_")[2]
                    state.keeper = _keep(state, await self.load(_warm_up, self._make, library))
                    await anext(state.keeper)
                transport = cast("AsyncTransport", state.transport)
        return transport

    async def open(self, request: HttpRequest, limits: TimeLimits) -> AsyncReply:
        """Send a request and return its reply."""
        transport = await self.prepare()
        if io.network_guard is not None:
            io.network_guard(transport, request.url)
        return await transport.open(request, limits)

    async def finish(self, work: Awaitable[object]) -> None:
        """Do some last work within a few seconds, also for a caller whose task was cancelled."""
        with anyio.move_on_after(io.LAST_SECONDS, shield=True):
            await work

    async def load(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function in a thread."""
        return await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a caller's function in a thread, and await what it returns."""
        made: Any = await self.load(function, *arguments)
        return await made if isawaitable(made) else made

    def waiting(self) -> Any:
        """Return something by which this task waits until any thread calls its `wake`."""
        return _TaskWaiting()

    async def run_together(self, work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
        """Run `count` workers at once, each in a task, and wait for all."""
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(work)

    def lock(self, name: str) -> AbstractAsyncContextManager[Any]:
        """Return the running loop's lock of this name."""
        return self._state().locks.setdefault(name, anyio.Lock())

    async def close(self) -> None:
        """Close the running loop's transport, if it was created here."""
        if (keeper := self._state().keeper) is not None:
            await keeper.aclose()


async def _keep(state: _LoopState, transport: AsyncTransport) -> AsyncGenerator[None, None]:
    """Hold a transport until the loop shuts its asynchronous generators down, as asyncio.run and trio.run do."""
    state.transport = transport
    try:
        yield
    finally:
        state.transport = state.keeper = None
        await transport.aclose()


def _warm_up(make: Callable[[], _T], backend: str) -> _T:
    anyio.run(anyio.sleep, 0, backend=backend)  # imports what the first connection would import in the event loop
    return make()

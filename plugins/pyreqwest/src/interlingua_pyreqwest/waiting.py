"""Waits for pyreqwest's asynchronous calls: in asyncio, or in a thread that blocks, with a limit either way.

pyreqwest has blocking calls too, but nothing can end one that waits: no limit of its own, and no other thread. Its
asynchronous calls ask the running loop for a future only and set it from their own thread, so a thread without asyncio
can wait for that future in a queue, which a limit or another thread ends.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import events
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


class Broken(ConnectionAbortedError):
    """The wait was ended by `break_off`."""


class BlockingWait:
    """Waits in the calling thread; one for each answer. Only what pyreqwest and a future need of a loop is here."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]]] = SimpleQueue()

    def run(self, call: Awaitable[_T], limit: float | None) -> _T:
        """Return what a call gives.

        Raises:
            TimeoutError: after `limit` seconds.
            Broken: `break_off` was called.
        """
        end = None if limit is None else time.monotonic() + limit
        steps = call.__await__()
        this: Any = self
        outer = events._get_running_loop()
        try:
            while True:
                events._set_running_loop(this)
                try:
                    future: Any = next(steps)
                except StopIteration as done:
                    value: _T = done.value
                    return value
                finally:
                    events._set_running_loop(outer)
                while future is not None and not future.done():  # None: it can go on at once
                    left = None if end is None else max(end - time.monotonic(), 0)
                    function, arguments = self._calls.get(timeout=left)
                    function(*arguments)
        except Empty:
            raise TimeoutError from None

    def break_off(self) -> None:
        """End the wait that is under way, or the next one; any thread may call it."""
        self._calls.put((_break, ()))

    def create_future(self) -> asyncio.Future[Any]:
        """As a loop."""
        this: Any = self
        return asyncio.Future(loop=this)

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        """As a loop: run it in the thread that waits."""
        self._calls.put((callback, args))

    call_soon = call_soon_threadsafe

    def get_debug(self) -> bool:
        """As a loop."""
        return False


class AsyncWait:
    """Waits in asyncio; one for each answer."""

    _task: asyncio.Task[Any] | None = None
    _broken = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def run(self, call: Awaitable[_T], limit: float | None) -> _T:
        """As `BlockingWait.run`; raises TimeoutError or Broken."""
        task = self._task = asyncio.current_task()
        try:
            async with asyncio.timeout(limit):
                return await call
        except asyncio.CancelledError:
            if not self._broken or task is None:
                raise
            task.uncancel()
            raise Broken from None
        finally:
            self._task = None

    def break_off(self) -> None:
        """As `BlockingWait.break_off`."""
        self._broken = True
        self._loop.call_soon_threadsafe(self._break)

    def _break(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _break() -> None:
    raise Broken

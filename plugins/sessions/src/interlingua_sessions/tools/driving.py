"""A batch run for blocking code: in an event loop of its own thread, its reports handled on the caller's.

Never decides anything: it carries reports and questions between two threads. The loop comes in.
What a caller does with a report (storing, telling listeners, asking a person) so never leaves the caller's thread, and
Ctrl-C reaches it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from types import NoneType
from typing import Any, TypeAlias

import attrs

from interlingua_sessions.tools.batch import Batch
from interlingua_sessions.tools.reports import Ask, Report
from interlingua_sessions.tools.values import Confirmation

MakeBatch: TypeAlias = Callable[[Ask | None, Callable[[Report], None]], Batch]

_PATIENCE = 3.0  # seconds a broken-off batch has to say how its calls ended


@attrs.frozen
class _Question:
    confirmation: Confirmation
    reply: asyncio.Future[bool]


@attrs.frozen
class _End:
    error: BaseException | None


class Blocking:
    """Runs one batch and waits for it.

    Args:
        make: makes the batch, once there is a loop to make it in.
        handle: takes each report; after an interruption it is given the report it was at once more.
        confirm: answers a question; None where nobody can.
    """

    def __init__(
        self, make: MakeBatch, handle: Callable[[Report], None], confirm: Callable[[Confirmation], bool] | None
    ) -> None:
        self._make = make
        self._handle = handle
        self._confirm = confirm
        self._items: list[Any] = []
        self._at = 0
        self._news = threading.Condition()
        self._ready = threading.Event()
        self._cancelled = False
        self._loop: asyncio.AbstractEventLoop
        self._batch: Batch

    def run(self) -> None:
        """Run the batch; when it ends every call has its answer, also when this raises what `handle` raised."""
        threading.Thread(target=lambda: asyncio.run(self._main()), name="interlingua-tools", daemon=True).start()
        try:
            while not isinstance(item := self._next(), _End):
                self._take(item)
                self._at += 1
        except Exception:
            self.cancel()
            raise
        except BaseException:  # Ctrl-C: what the tools have done is still stored
            self.cancel()
            self._drain()
            raise
        if item.error is not None:
            raise item.error

    def cancel(self) -> None:
        """Give up what has no answer yet; may be called from any thread, also before `run`."""
        self._cancelled = True
        if self._ready.is_set():
            with suppress(RuntimeError):  # the loop has ended, and with it the batch
                self._loop.call_soon_threadsafe(self._batch.cancel)

    async def _main(self) -> None:
        error: BaseException | None = None
        try:
            self._loop = asyncio.get_running_loop()
            self._batch = self._make(None if self._confirm is None else self._ask, self._put)
            self._ready.set()
            if self._cancelled:
                self._batch.cancel()
            await self._batch.run()
        except BaseException as caught:  # it is raised again on the caller's thread
            error = caught
        self._put(_End(error))

    async def _ask(self, confirmation: Confirmation) -> bool:
        reply: asyncio.Future[bool] = self._loop.create_future()
        self._put(_Question(confirmation, reply))
        return await reply

    def _take(self, item: Any) -> None:
        if not isinstance(item, _Question):
            self._handle(item)
            return
        assert self._confirm is not None  # noqa: S101  nobody asks otherwise
        said = bool(self._confirm(item.confirmation))
        self._loop.call_soon_threadsafe(_settle, item.reply, said)

    def _drain(self) -> None:
        while not isinstance(item := self._next(_PATIENCE), _End | NoneType):
            if not isinstance(item, _Question):
                self._handle(item)
            self._at += 1

    def _put(self, item: Any) -> None:
        with self._news:
            self._items.append(item)
            self._news.notify()

    def _next(self, timeout: float | None = None) -> Any:
        """Wait for the next item and leave it where it is: an interruption may come before it is handled."""
        with self._news:
            come = self._news.wait_for(lambda: len(self._items) > self._at, timeout)
            return self._items[self._at] if come else None


def _settle(reply: asyncio.Future[bool], said: bool) -> None:
    if not reply.done():
        reply.set_result(said)

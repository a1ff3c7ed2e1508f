"""Saves a streamed answer while it arrives, and does store work in threads for asynchronous code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any, TypeVar

import attrs

from interlingua import InterlinguaError
from interlingua.types import Message, MessageStatus
from interlingua_sessions.turn import SessionState

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Do store work in a worker thread; a task that is cancelled meanwhile ends when the work is done, not before.

    So a task's writes stay in order, and none happens after the task has ended.
    """
    done = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # or asyncio warns that nobody read it
        raise


_log = logging.getLogger("interlingua")


SAVE_EVERY = 0.15
"""Seconds between two saves; with the save itself a kill loses less than 250 ms of text."""


class SnapshotThread:
    """Calls `save` from a thread of its own: at once on the first `touch`, then at most every `SAVE_EVERY` seconds.

    A thread, because text may arrive and then nothing for a minute: no later event would save it.
    """

    def __init__(self, save: Callable[[], None], every: float = SAVE_EVERY) -> None:
        self._save = save
        self._every = every
        self._dirty = Event()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="interlingua-sessions-saver", daemon=True)
        self._started = False

    def touch(self) -> None:
        """Note that something arrived that is not saved yet."""
        self._dirty.set()
        if not self._started:
            self._started = True
            self._thread.start()

    def stop(self) -> None:
        """Save no more, and wait for a save that is running."""
        self._stopped.set()
        self._dirty.set()
        if self._started:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._dirty.wait()
            if self._stopped.is_set():
                return
            self._dirty.clear()
            try:
                self._save()
            except InterlinguaError as error:  # the end of the stream saves all of it, and raises then
                _log.warning("an unfinished answer could not be saved: %s", error)
            self._stopped.wait(self._every)


class AnswerWriter:
    """Stores one streamed answer: as PARTIAL while it grows, then as what became of it.

    Args:
        state: the session.
        snapshot: gives what was received so far; called from the saving thread.
    """

    def __init__(self, state: SessionState, snapshot: Callable[[], Message]) -> None:
        self._state = state
        self._snapshot = snapshot
        self._seen = state.last_id
        self._partial: list[Message] = []  # as it was stored first, behind what others stored meanwhile
        self._saver = SnapshotThread(self._save)
        self.touch = self._saver.touch
        self.stored: Message | None = None

    def settle(self, message: Message) -> Message:
        """Store what became of the answer, once; one without content that is not whole leaves no message."""
        if self.stored is None:
            self._saver.stop()
            named, state = self._named(message), self._state
            if self._partial:
                rows = [*self._partial[:-1], state.store.finish(named)]
            elif named.content or named.metadata.status is MessageStatus.COMPLETE:
                rows = state.store.extend([named], after=state.last_id)
            else:
                rows = []
            state.add_rows(rows)
            self.stored = rows[-1] if rows else named
        return self.stored

    def fail(self, error: InterlinguaError) -> None:
        """Store what an error left; its `partial` is the stored message then."""
        if isinstance(error.partial, Message):
            error.partial = self.settle(error.partial)
        self._saver.stop()

    def _save(self) -> None:
        message = self._snapshot()
        if not message.content or message.metadata.status is not MessageStatus.PARTIAL:
            return
        if self._partial:
            self._state.store.save_partial(self._named(message))
        else:
            self._partial = self._state.store.extend([self._named(message)], after=self._seen)

    def _named(self, message: Message) -> Message:
        """Return a message as this session's, under the id that the answer has in the store."""
        owned = self._state.as_own(message)
        return attrs.evolve(owned, id=self._partial[-1].id) if self._partial else owned

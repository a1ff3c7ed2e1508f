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
from interlingua_sessions.state import SessionState

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Do something brief in a worker thread; a task that is cancelled meanwhile ends when it is done, not before.

    So what one task writes is written in its order, and nothing of it happens behind its back.
    """
    done = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # or asyncio complains that nobody looked
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
        self._begun = False

    def touch(self) -> None:
        """Something came that is not saved yet."""
        self._dirty.set()
        if not self._begun:
            self._begun = True
            self._thread.start()

    def stop(self) -> None:
        """Save no more, and wait for a save that is running."""
        self._stopped.set()
        self._dirty.set()
        if self._begun:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._dirty.wait()
            if self._stopped.is_set():
                return
            self._dirty.clear()
            try:
                self._save()
            except InterlinguaError as error:  # the end of the stream saves the whole and raises what is wrong
                _log.warning("an unfinished answer could not be saved: %s", error)
            self._stopped.wait(self._every)


class AnswerWriter:
    """Saves snapshots of an answer, then its end.

    Args:
        core: the session.
        snapshot: gives what was received so far; called from the saver's thread.
    """

    def __init__(self, core: SessionState, snapshot: Callable[[], Message]) -> None:
        self._core = core
        self._snapshot = snapshot
        self._id: str | None = None
        self._saver = SnapshotThread(self._save)
        self.touch = self._saver.touch
        self.stored: Message | None = None

    def settle(self, message: Message) -> Message:
        """Store what became of the answer, once; one without content that is not whole leaves no message."""
        if self.stored is None:
            self._saver.stop()
            named = self._named(message)
            if named.content or named.metadata.status is MessageStatus.COMPLETE or self._id is not None:
                named = self._core.store.finish(named)
                self._core.take_in([named])
            self.stored = named
        return self.stored

    def fail(self, error: InterlinguaError) -> None:
        """Store what an error left; its `partial` is the stored message then."""
        if isinstance(error.partial, Message):
            error.partial = self.settle(error.partial)
        self._saver.stop()

    def _save(self) -> None:
        message = self._snapshot()
        if message.content and message.metadata.status is MessageStatus.PARTIAL:
            self._id = self._core.store.save_partial(self._named(message)).id

    def _named(self, message: Message) -> Message:
        owned = self._core.owned(message)
        return owned if self._id in (None, owned.id) else attrs.evolve(owned, id=self._id)

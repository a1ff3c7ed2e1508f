"""What a running stream has received is in the store a moment later, whatever becomes of this process.

Never reads from the network and never decides what a message is. The two session streams come in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

from interlingua import InterlinguaError

_log = logging.getLogger("interlingua")
SAVE_EVERY = 0.15
"""Seconds between two saves; with the save itself a kill loses less than 250 ms of text."""


class Saver:
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

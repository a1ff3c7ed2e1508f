"""One streamed answer on its way into the store: PARTIAL while it runs, then what became of it.

Never reads the stream itself. The blocking and the asynchronous session stream come in.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from interlingua import InterlinguaError
from interlingua.types.messages import Message, MessageStatus
from interlingua_sessions.session.core import Core
from interlingua_sessions.session.saving import Saver


class Keeping:
    """Saves snapshots of an answer, then its end.

    Args:
        core: the session.
        snapshot: gives what was received so far; called from the saver's thread.
    """

    def __init__(self, core: Core, snapshot: Callable[[], Message]) -> None:
        self._core = core
        self._snapshot = snapshot
        self._id: str | None = None
        self._saver = Saver(self._save)
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

"""The transaction of every write: nobody else writes the same session beside it.

Never writes anything itself but that the session was used. The store's parts that write come in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interlingua_sessions.store.database import Part
from interlingua_sessions.store.lines import now_stamp
from interlingua_sessions.store.sessions import not_found

_TOUCH = "UPDATE sessions SET updated_at = ? WHERE id = ?"
_HOLD = "UPDATE sessions SET updated_at = updated_at WHERE id = ?"


class Writing(Part):
    """A part that writes. Writing a session's row locks it where the database does not lock whole."""

    @contextmanager
    def writing(self, session_id: str) -> Iterator[None]:
        """Hold a session for writing and note that it was used; raises as `touch`."""
        with self._db.transaction():
            self.touch(session_id)
            yield

    def touch(self, session_id: str) -> None:
        """Hold a session until the end of the transaction, and note that it was used.

        Raises:
            SessionNotFound: it is not there.
        """
        if not self._db.run(_TOUCH, (now_stamp(), session_id)):
            raise not_found(session_id)

    @contextmanager
    def tending(self, session_id: str) -> Iterator[None]:
        """Hold a session for care of what is in it already: this is no use of it."""
        with self._db.transaction():
            self._db.run(_HOLD, (session_id,))
            yield

"""What a store refuses or cannot do.

Never says which database was under it in its class, only in its words.
Every room of this distribution may come in, through `interlingua_sessions.store`.
"""

from __future__ import annotations

from interlingua import CallerError, InterlinguaError


class SessionNotFoundError(CallerError):
    """The store holds no session of this id."""


class SessionExistsError(CallerError):
    """The store holds a session of this id already."""


class StoreError(InterlinguaError):
    """The database failed, or holds what this version cannot read; the message says what to do."""

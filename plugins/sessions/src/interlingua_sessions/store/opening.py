"""Opening a store by the name of its place.

Never reads or writes a message. Whoever has a configured place for sessions comes in, through
`interlingua_sessions.store`.
"""

from __future__ import annotations

from pathlib import Path

from interlingua_sessions.store.api import Store


def open_store(place: str | Path) -> Store:
    """Open a store, making it where it is new and bringing it up to this version.

    Args:
        place: a file for SQLite, or a `postgresql://` URL (extra `interlingua-sessions[postgres]`).

    Raises:
        StoreError: it cannot be opened, or a newer version wrote it; the message says what to do.
    """
    raise NotImplementedError(place)

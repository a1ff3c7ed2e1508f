"""The store itself: its parts over one database.

Never a statement of its own. Opening comes in; everybody else knows only the Protocol.
"""

from __future__ import annotations

from typing import Self

from interlingua_sessions.store.calls import ToolCalls
from interlingua_sessions.store.entries import Entries
from interlingua_sessions.store.exporting import Exporting
from interlingua_sessions.store.importing import Importing
from interlingua_sessions.store.prices import Prices
from interlingua_sessions.store.raw import RawPolicy
from interlingua_sessions.store.verify import Verify


class SqlStore(Importing, Exporting, ToolCalls, Entries, Prices, RawPolicy, Verify):
    """A `Store` on a database; each part is a base class, so that each has its own file."""

    def close(self) -> None:
        """See `Store.close`."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

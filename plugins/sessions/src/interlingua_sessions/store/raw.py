"""The retention of `provider_raw`: its trace may go by size or age, what a replay needs never does.

Never looks inside either part. The store comes in.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from interlingua.types import trim_trace
from interlingua_sessions.store.revising import Revising


class RawPolicy(Revising):
    """See `Store`."""

    def trim_raw(
        self, *, limit: int | None = None, before: datetime | None = None, session_id: str | None = None
    ) -> int:
        """See `Store.trim_raw`."""
        change = (
            partial(trim_trace, before=before) if limit is None else partial(trim_trace, limit=limit, before=before)
        )
        return sum(1 for _ in self.revised(change, lambda _old, _new: None, session_id))

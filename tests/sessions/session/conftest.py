"""A store on each database, as the store's own tests have it."""

from __future__ import annotations

from tests.sessions.store.conftest import place, postgresql_place, store

__all__ = ["place", "postgresql_place", "store"]

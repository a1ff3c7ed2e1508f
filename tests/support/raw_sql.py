"""Statements on a store's database behind the store's back: to see what it wrote, and to break it.

Knows both databases and nothing of the store.
"""

from __future__ import annotations

import sqlite3
from typing import Any


def rows(place: str, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement, commit, and return its rows, if it has any."""
    if place.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(place) as server:
            cursor = server.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
    connection = sqlite3.connect(place)  # foreign keys are not enforced here
    try:
        with connection:
            return connection.execute(sql).fetchall()
    finally:
        connection.close()

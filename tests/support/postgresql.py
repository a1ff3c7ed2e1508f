"""The PostgreSQL server that tests may use: its address from the environment, and a schema of one's own in it.

Nothing here starts a server (.ci/run does) and no test decides by itself what its absence means. Tests of stores come
in, and the bench.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

VARIABLE = "INTERLINGUA_POSTGRES"
SKIP_REASON = f"no PostgreSQL: set {VARIABLE} to a postgresql:// URL (.ci/run starts a server and does)"


def address() -> str | None:
    """Return the URL the environment names, or None."""
    return os.environ.get(VARIABLE) or None


@contextmanager
def schema(url: str) -> Iterator[str]:
    """Make an empty schema and give the URL that lives in it; it is dropped afterwards."""
    import psycopg

    name = f"interlingua_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    try:
        joined = "&" if "?" in url else "?"
        yield f"{url}{joined}options={quote(f'-csearch_path={name}')}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE")

"""A store on each database: every test that takes `store` or `place` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlingua_sessions import Store, open_store
from tests.support import postgresql


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where an empty database is."""
    return str(tmp_path / "store.db") if request.param == "sqlite" else request.getfixturevalue("postgresql_place")


@pytest.fixture
def postgresql_place() -> Iterator[str]:
    """Return where an empty database of a server is."""
    url = postgresql.address()
    if url is None:
        pytest.skip(postgresql.SKIP_REASON)
    with postgresql.schema(url) as own:
        yield own


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """Return an empty store."""
    with open_store(place) as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that half of these tests did not run, where it did not."""
    if postgresql.address() is None:
        terminalreporter.write_line(f"The store's tests ran on SQLite only; {postgresql.SKIP_REASON}.")

"""A store, and clients of the made-up provider whose server a test scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlingua_sessions import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "sessions.db") as opened:
        yield opened

"""The command line's own fixtures, and a place for sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, home, run, server

__all__ = ["Run", "home", "place", "run", "server"]


@pytest.fixture(autouse=True)
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where sessions are kept when nobody says."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.delenv("INTERLINGUA_SESSIONS", raising=False)
    return home / "data" / "interlingua" / "sessions.db"

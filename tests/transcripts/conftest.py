"""The command line's own fixtures, and a place for sessions."""

from __future__ import annotations

from tests.cli.conftest import Run, home, run, server
from tests.sessions.cli.conftest import place

__all__ = ["Run", "home", "place", "run", "server"]

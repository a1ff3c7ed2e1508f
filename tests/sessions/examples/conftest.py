"""What the tests of this folder share: the marker of tests that talk to a model running on this machine.

No fixture of another area lives here. pytest comes in by itself; no test imports this file.
"""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "live: talks to a model on this machine; skipped where there is none")

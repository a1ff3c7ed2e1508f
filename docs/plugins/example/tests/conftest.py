"""How cassettes are recorded and replayed, and where the server is, live or recorded.

`pytest --record-mode=rewrite tests/test_talk.py -k Recorded` records again; without it those tests send nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import parrot_server
import pytest
from interlingua_contract import recorder

pytest_recording_configure = recorder.pytest_recording_configure


@pytest.fixture(scope="module")
def vcr_config() -> dict[str, Any]:
    """Keep only exchanges of this provider, without secrets."""
    return recorder.vcr_config(provider="parrot")


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    """All cassettes are in one folder, where the contract looks for them."""
    return str(Path(__file__).parent / "cassettes")


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    """A cassette is named after its test."""
    return str(request.node.originalname)


@pytest.fixture(scope="session")
def live_url() -> Iterator[str]:
    """Run the service on this machine."""
    with parrot_server.served() as url:
        yield url


@pytest.fixture
def recorded_url(record_mode: str) -> Iterator[str]:
    """Return where the cassettes were recorded; only a recording starts the service there."""
    if record_mode == "none":
        yield f"http://127.0.0.1:{parrot_server.PORT}"
        return
    with parrot_server.served(parrot_server.PORT) as url:
        yield url

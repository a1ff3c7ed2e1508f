"""pytest-recording for the tests of recorded traffic: the cassettes' one configuration and their one folder.

A test without the `vcr` marker notices nothing of it.
"""

from __future__ import annotations

from typing import Any

import pytest
from pytest_recording.plugin import get_default_cassette_name

from tests.support import cassettes
from tests.tools.record.recorded import Recorded

# official SDKs read the same bytes through a transport in memory; only our client's requests are the cassette's
_ORACLES = ["oracle.invalid", "api.anthropic.com"]


@pytest.fixture
def vcr_config() -> dict[str, Any]:
    """Return vcr's options; names of cassettes are whole file names."""
    return {**cassettes.vcr_config(), "path_transformer": str, "ignore_hosts": _ORACLES}


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    """Return the folder above all providers' cassettes."""
    return str(cassettes.FOLDER)


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    """Return the cassette of the recorded scenario that the test is given as `one`."""
    marker = request.node.get_closest_marker("default_cassette")
    if marker is not None:
        return str(marker.args[0])
    given = getattr(request.node, "callspec", None)
    one = given.params.get("one") if given is not None else None
    if isinstance(one, Recorded):
        return one.cassette
    return str(get_default_cassette_name(request.cls, request.node.name))


def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    """Let vcr read the cassettes' format."""
    cassettes.register(vcr)

"""A pytest plugin: fixtures for tests of applications. pytest loads it where interlingua is installed.

`interlingua_model` makes scripted models, `interlingua_cassette` records or replays a test's exchanges with services,
and `interlingua_offline` refuses the network. `pytest --interlingua-record` records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from interlingua.testing import Cassette, ScriptedModel


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option to record cassettes."""
    group = parser.getgroup("interlingua")
    group.addoption(
        "--interlingua-record", action="store_true", help="send requests and record interlingua's cassettes"
    )


@pytest.fixture
def interlingua_model() -> Iterator[Callable[..., ScriptedModel]]:
    """Make scripted models; each must have given all its answers when the test ends."""
    from interlingua.testing import ScriptedModel  # noqa: PLC0415  only for tests that use it

    made: list[ScriptedModel] = []

    def make(answers: Any, **capabilities: Any) -> ScriptedModel:
        made.append(ScriptedModel(answers, **capabilities))
        return made[-1]

    yield make
    for model in made:
        model.assert_done()


@pytest.fixture
def interlingua_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """The cassette of this test, in `cassettes/` beside its file; all of it must have been used when the test ends."""
    from interlingua.testing import Cassette  # noqa: PLC0415  only for tests that use it

    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in request.node.name)
    place = request.path.parent / "cassettes" / request.path.stem / f"{name}.jsonl"
    cassette = Cassette(place, record=request.config.getoption("--interlingua-record"))
    yield cassette
    cassette.assert_done()


@pytest.fixture
def interlingua_offline() -> Iterator[None]:
    """Fail every request that no transport in memory answers."""
    from interlingua.testing import no_network  # noqa: PLC0415  only for tests that use it

    with no_network():
        yield

"""A request, a streamed delta and a tool turn go through few files, each once or twice, and few calls."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.repo import walk


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    return walk.figures()


@pytest.mark.parametrize("name", list(walk.bounds()))
def test_a_walk_stays_within_its_bound(figures: dict[str, int], name: str) -> None:
    assert figures[name] <= walk.bounds()[name], f"{name}: `python -m tests.repo.walk` prints the way"


def test_every_figure_has_a_bound(figures: dict[str, int]) -> None:
    assert set(figures) == set(walk.bounds())


def test_calls_from_another_file_are_entries() -> None:
    """A call inside one file counts as a call and not as an entry; calls from here enter; values are looked through."""
    from interlingua import _pricing as pricing
    from interlingua.types import Usage

    found = walk.traced(lambda: pricing.cost_of(Usage(input_tokens=1), None, datetime.now(UTC)))

    assert found.files[0] == "core/interlingua/_pricing.py"
    assert not [file for file in found.files if "/types/" in file]
    assert found.calls >= len(found.entered)

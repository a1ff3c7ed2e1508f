"""The figures of the source tree stay within the bounds of `allow/figures.toml`; what counts them is tested too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repo import figures
from tests.support import tree


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_a_figure_stays_within_its_bound(name: str) -> None:
    found, most = figures.figure(name), figures.bounds()[name].most

    assert most is None or found.value <= most, f"{name}: {found.value}, allowed {most}\n" + "\n".join(found.found)


def test_every_figure_has_a_bound_and_every_bound_a_figure() -> None:
    assert set(figures.bounds()) == set(figures.FIGURES)


def test_the_patterns_see_what_they_should() -> None:
    assert figures.RETIRED.search("tests come" + " in")
    assert figures.RETIRED.search("this ro" + "om")
    assert not figures.RETIRED.search("headroom, incoming")
    assert figures.PAPERS.search("seed 00" + "3 §2.1")
    assert not figures.PAPERS.search("the design of a sheet")


def test_a_reference_resolves_to_a_heading_or_a_rule(tmp_path: Path) -> None:
    page = tmp_path / "format.md"
    page.write_text("# Format\n\n## Projection and losses\n\n### Rule 7: calls are answered\n", encoding="utf-8")

    assert figures._holds(page, "Projection and losses say more")
    assert figures._holds(page, "Projection")
    assert figures._holds(page, "Rule 7")
    assert not figures._holds(page, "Rule 70")
    assert not figures._holds(page, "Rules 7 and 8")
    assert not figures._holds(page, "Losses")
    assert not figures._holds(tmp_path / "none.md", "Rule 7")


def test_a_page_of_a_plugin_is_its_own() -> None:
    folder = tree.ROOT / "plugins" / "anthropic"

    assert figures._pages(folder / "src" / "x.py", "WIRE.md") == [folder / "WIRE.md"]
    assert folder / "WIRE.md" in figures._pages(tree.ROOT / "docs" / "lint.md", "WIRE.md")

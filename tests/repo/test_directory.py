"""The directory of plugins and the pages made from it are current."""

from __future__ import annotations

import attrs
import pytest

from tests.support.tree import ROOT
from tests.tools import directory

STORED = directory.stored_rows()


def test_our_rows_are_those_of_the_tree() -> None:
    assert directory.rows(STORED) == STORED, "run `python -m tests.tools.directory`"
    assert {row.distribution for row in STORED if row.tier == "ours"} == {
        row.distribution for row in directory.own_rows()
    }


@pytest.mark.parametrize("path", directory.PAGES)
def test_a_page_is_current(path: str) -> None:
    written = directory.written(STORED)[path]
    assert (ROOT / path).read_text(encoding="utf-8") == written, "run `python -m tests.tools.directory`"


def test_a_row_that_lags_behind_is_noticed() -> None:
    zai = next(row for row in STORED if row.distribution == "interlingua-zai")
    planted = [attrs.evolve(row, keys=("zai", "new")) if row is zai else row for row in STORED]
    assert directory.rows(planted) != planted


def test_every_capability_has_words_and_a_row() -> None:
    assert set(directory.WORDS) == set(directory.FLAGS)


def test_our_keys_have_passed_the_suite() -> None:
    ours = [(key, row) for row in STORED if row.tier == "ours" for key in row.keys if directory.is_checked(key)]
    missing = [key for key, row in ours if not row.reports.get(key, {}).get("passed")]
    assert len(ours) > 20
    assert missing == [], "run `python -m tests.tools.directory --check all`"

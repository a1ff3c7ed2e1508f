"""Every field case has a named test, or stands in the short list of those that come later; the page says which."""

from __future__ import annotations

from tests.repo.regressions_page import COUNT, LATER, PAGE, covered, page


def test_every_case_is_named_by_a_test() -> None:
    missing = sorted(set(range(1, COUNT + 1)) - set(covered()) - set(LATER))

    assert not missing, f"no test is named test_case_NN for {missing}"


def test_what_comes_later_is_not_there_yet() -> None:
    assert not set(LATER) & set(covered()), "a case that has a test now leaves the list of later ones"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.repo.regressions_page"

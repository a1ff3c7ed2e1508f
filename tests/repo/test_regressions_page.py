"""Every field case has a named test or stands in the short list of those that come later; the page says which."""

from __future__ import annotations

import re

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "regressions.md"
_NAME = re.compile(r"^ *(?:async )?def test_case_((?:\d\d_)+)", re.MULTILINE)


def test_rows_and_tests_agree() -> None:
    rows = set(re.findall(r"^\| (\d\d) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    tests = {
        case
        for path in (tree.ROOT / "tests").rglob("test_*.py")
        for cases in _NAME.findall(path.read_text(encoding="utf-8"))
        for case in cases.strip("_").split("_")
    }

    assert rows - tests == set(), "no test is named test_case_NN for these"
    assert tests - rows == set(), "docs/reference/regressions.md has no row for these"

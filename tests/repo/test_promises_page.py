"""Every promise of docs/reference/promises.md names tests that exist."""

from __future__ import annotations

import functools
import re

import pytest

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "promises.md"
NUMBERS = [f"{part}{number}" for part, last in (("A", 9), ("B", 12), ("C", 4)) for number in range(1, last + 1)] + ["D"]
_ROW = re.compile(r"^\| ([A-D]\d*) \| (.+?) \| .+ \|$", re.MULTILINE)


def rows() -> dict[str, list[str]]:
    """Return number -> `path::test`; a name without a path is in the file before it."""
    found: dict[str, list[str]] = {}
    for number, cell in _ROW.findall(PAGE.read_text(encoding="utf-8")):
        path = ""
        for given, test in re.findall(r"`([\w/.]*)::(\w+)`", cell):
            path = given or path
            found.setdefault(number, []).append(f"{path}::{test}")
    return found


@functools.cache
def read_tests(path: str) -> set[str]:
    return set(
        re.findall(r"^ *(?:async )?def (test_\w+)", (tree.ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_each_promise_has_a_row() -> None:
    assert sorted(rows()) == sorted(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_named_tests_exist(number: str) -> None:
    for name in rows()[number]:
        path, _, test = name.partition("::")
        assert test in read_tests(path), f"{PAGE.name} names {name}, which does not exist"

"""docs/reference/types.md is what the code says, and every public value is in it."""

from __future__ import annotations

import attrs

import interlingua.types
from tests.repo.types_page import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.repo.types_page"


def test_every_public_value_is_in_it() -> None:
    values = [getattr(interlingua.types, name) for name in dir(interlingua.types)]
    shown = page()
    missing = [
        value.__name__
        for value in values
        if isinstance(value, type) and attrs.has(value) and f"### `{value.__name__}`" not in shown
    ]

    assert not missing

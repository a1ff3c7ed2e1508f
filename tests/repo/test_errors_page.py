"""docs/reference/errors.md has a row for every error class, true to its `retryable`."""

from __future__ import annotations

import re

from interlingua import errors
from tests.support import tree

PAGE = (tree.ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
ROWS = {name: row for row, name in re.findall(r"^(\| (?:\*\*)?`(\w+)`.*)$", PAGE, re.MULTILINE)}
CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if isinstance(cls, type) and issubclass(cls, errors.InterlinguaError) and not name.startswith("_")
}
GROUPS = {"ProviderError", "WireError"}


def test_every_class_has_a_row() -> None:
    assert CLASSES.keys() - {"InterlinguaError"} <= ROWS.keys()


def test_rows_say_what_may_be_tried_again() -> None:
    for name, cls in CLASSES.items():
        if name in ROWS and name not in GROUPS:
            assert ROWS[name].split(" | ")[3].startswith("yes" if cls.default_retryable else "no"), name

"""The rules as docs/reference/format.md lists them."""

from __future__ import annotations

import re

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "format.md"
_ROW = re.compile(r"^\| \*\*(\d+)\*\* `(\w+)` \|", re.MULTILINE)


def rules() -> dict[int, str]:
    """Return the name of each rule by its number."""
    return {int(number): name for number, name in _ROW.findall(PAGE.read_text(encoding="utf-8"))}

"""Writes docs/reference/invariants.md from the rules' docstrings: `python -m tests.core.request.page` rewrites it.

No rule's text lives here. The test that compares the page with the rules comes in.
"""

from __future__ import annotations

import inspect

from interlingua.request.rules import RULES
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "invariants.md"
HEAD = """# Invariants

What holds for every message at status COMPLETE and every conversation. `check_message` and `check_conversation` of
`interlingua.request.validate` return every violation; `RULES` maps each number to its function. Why some violations stop a
request and others do not: [decision 111](../explanation/decisions/111-which-rules-stop-a-request.md). This page is made
from the functions' docstrings by `python -m tests.core.request.page`.
"""


def text() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for number, function in sorted(RULES.items()):
        name = function.__name__[4:].replace("_", " ")
        parts.append(f"## I{number:02} {name}\n\n{inspect.getdoc(function)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

"""The table of rules in docs/reference/format.md, made from the rules: `python -m tests.core.request.page`."""

from __future__ import annotations

from interlingua._request.rules import RULES
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "format.md"
BEGIN = "<!-- rules: written by `python -m tests.core.request.page` from _request/rules.py -->\n"
END = "<!-- end of rules -->\n"


def table() -> str:
    """Return the table as it should be: number and name, the rule, what happens where it is broken."""
    rows = ["| rule | statement | if it is broken |", "|---|---|---|"]
    rows += [f"| **{one.number}** `{one.name}` | {one.holds} | {one.broken} |" for one in RULES.values()]
    return "\n".join(rows) + "\n"


def text() -> str:
    """Return the page with the table as it should be."""
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

"""The table of field cases and the tests that name them: `python -m tests.repo.regressions_page` writes the page.

Only the names of tests are read, nothing is run. The page's own test comes in.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "regressions.md"
COUNT = 40
LATER: dict[int, str] = {}  # case -> why its test comes later
_NAME = re.compile(r"^ *(?:async )?def (test_case_((?:\d\d_)+)\w*)", re.MULTILINE)


def covered() -> dict[int, dict[str, list[str]]]:
    """Return case -> file -> names of its tests."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((tree.ROOT / "tests").rglob("test_*.py")):
        for name, cases in _NAME.findall(path.read_text(encoding="utf-8")):
            for case in cases.strip("_").split("_"):
                found[int(case)][path.relative_to(tree.ROOT).as_posix()].append(name)
    return found


def page() -> str:
    """Write the page."""
    found = covered()
    lines = [
        "# Field cases and their tests",
        "",
        "Forty ways messages break between providers, each from a public tracker, and the tests that name them.",
        "Made by `python -m tests.repo.regressions_page`.",
        "",
        "| case | tests |",
        "|--:|---|",
    ]
    for case in range(1, COUNT + 1):
        rows = [f"[{file}](../../{file}): {len(names)}" for file, names in found.get(case, {}).items()]
        lines.append(f"| {case:02} | {'<br>'.join(rows) or LATER.get(case, 'no test yet')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Write the table of deprecated names in docs/plugins/versions.md: `python -m tests.repo.versions_page`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module

from interlingua._lazy import DEPRECATIONS, Deprecation
from tests.support import tree

PAGE = tree.ROOT / "docs" / "plugins" / "versions.md"
_TABLE = re.compile(r"(?<=<!-- deprecated names -->\n).*?(?=<!-- end -->)", re.DOTALL)


def deprecations() -> list[Deprecation]:
    """Return every deprecated name of the distributions, after all their modules are imported."""
    for module in tree.shipped():
        import_module(module.name)
    return sorted(DEPRECATIONS.values())


def table(found: Iterable[Deprecation]) -> str:
    """Return the table, or a sentence if it is empty."""
    rows = [f"| `{one.name}` | {one.since} | {one.removal} | `{one.instead}` |\n" for one in found]
    if not rows:
        return "Today no name is deprecated.\n"
    return "| name | deprecated since | removed in | use |\n|---|---|---|---|\n" + "".join(rows)


def page(found: Iterable[Deprecation]) -> str:
    """Return the page as it should be."""
    return _TABLE.sub(lambda _old: table(found), PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(deprecations()), encoding="utf-8")

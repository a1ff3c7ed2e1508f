"""docs/reference/contract.md is generated from the rules by `python -m tests.contract.test_reference`."""

from __future__ import annotations

import textwrap

from interlingua_contract.rules import ALL
from tests.support import tree

PAGE = tree.ROOT / "docs" / "reference" / "contract.md"

HEAD = """\
# The contract, rule by rule

`ProviderContract` and `interlingua check` run these rules against a provider plugin. Each rule has a number that is
never reused, the section it comes from, and a fix. [Checking a plugin](../plugins/README.md) explains how to run them
and how to declare a provider's deviations.

`python -m tests.contract.test_reference` writes this page from the rules.
"""


def page() -> str:
    sections = [HEAD]
    for rule in ALL:
        fix = textwrap.fill(rule.fix, 118, break_long_words=False, break_on_hyphens=False)
        sections.append(f"## {rule.number} `{rule.name}`\n\n**{rule.statement}**\n\nSource: {rule.source}.\n\n{fix}\n")
    return "\n".join(sections)


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.contract.test_reference"


def test_numbers_follow_each_other() -> None:
    assert [rule.number for rule in ALL] == [f"C{number:02}" for number in range(len(ALL))]


def test_every_rule_says_how_to_fix_it() -> None:
    bare = [rule.number for rule in ALL if len(rule.fix) < 60 or not rule.source or not rule.statement.endswith(".")]

    assert not bare


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

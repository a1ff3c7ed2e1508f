"""Rules of the contract: number, statement, source, fix, and the check that finds violations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from interlingua_contract.subject import Subject


@attrs.frozen
class RuleFinding:
    """One violation of a rule.

    Attributes:
        why: the expectation and the finding, for the plugin's author.
        where: cassette, option, capability or conversation in which it was found; empty if it is everywhere.
        scene: the smallest conversation that was found to show it.
        expected: what was expected, around the first difference.
        found: what was found there.
    """

    why: str
    where: str = ""
    scene: str = ""
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why

    def lines(self) -> list[str]:
        """Return the violation for a person, with what was expected below what was found."""
        rows = {"scene": self.scene, "expected": self.expected, "found": self.found}
        return [str(self), *[f"    {name:<9} {text}" for name, text in rows.items() if text]]


def around_difference(expected: str | bytes, found: str | bytes, around: int = 80) -> dict[str, str]:
    """Return `expected` and `found` of a finding: both values near the first place where they differ."""
    one, other = (value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
                  for value in (expected, found))  # fmt: skip
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(at - around // 2, 0)

    def shown(text: str) -> str:
        cut = text[start : start + around]
        return f"{'…' if start else ''}{cut}{'…' if start + around < len(text) else ''}" or "(nothing)"

    return {"expected": shown(one), "found": shown(other)}


class NotApplicable(Exception):
    """Raised by a check that has nothing to check; the message says what is missing."""


Check = Callable[["Subject"], Iterator[RuleFinding]]


@attrs.frozen(kw_only=True)
class ContractRule:
    """One numbered rule.

    Attributes:
        number: such as `C01`; a number is never reused.
        name: name in snake_case; the test is `test_c01_<name>`.
        statement: one line.
        source: section of the documentation (docs/reference), or the hook, that the rule comes from.
        fix: a paragraph for the author of a plugin that breaks the rule.
        check: yields findings; the rule holds if there are no findings.
        needs: fields of `Quirks` that the verdict depends on; without cassettes and quirks a finding proves nothing.
    """

    number: str
    name: str
    statement: str
    source: str
    fix: str
    check: Check
    needs: tuple[str, ...] = ()

    @property
    def test_name(self) -> str:
        """Name of the rule's test."""
        return f"test_{self.number.lower()}_{self.name}"

    @property
    def page(self) -> str:
        """Where the documentation explains the rule."""
        return f"docs/reference/contract.md#{self.number.lower()}-{self.name}"


RULES: dict[str, ContractRule] = {}


def rule(
    number: str, statement: str, *, source: str, fix: str, needs: tuple[str, ...] = ()
) -> Callable[[Check], Check]:
    """Register a check as a rule that has the function's name.

    Raises:
        ValueError: the number is taken.
    """

    def register(check: Check) -> Check:
        if number in RULES:
            raise ValueError(f"{number} is taken by {RULES[number].name}")
        RULES[number] = ContractRule(
            number=number,
            name=check.__name__,
            statement=statement,
            source=source,
            fix=" ".join(fix.split()),
            check=check,
            needs=needs,
        )
        return check

    return register

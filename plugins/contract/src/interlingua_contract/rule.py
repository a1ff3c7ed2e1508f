"""What a rule of the contract is: number, statement, source, how to fix, and the check that finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from interlingua_contract.subject import Subject


@attrs.frozen
class RuleFinding:
    """One thing that breaks a rule.

    Attributes:
        why: what was expected and what is there, for the adapter's author.
        where: cassette, option, capability or conversation it was seen with; empty when it is everywhere.
    """

    why: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.why}" if self.where else self.why


class NotApplicable(Exception):
    """Raised by a check that found nothing to look at; the message says what is missing."""


Check = Callable[["Subject"], Iterator[RuleFinding]]


@attrs.frozen(kw_only=True)
class ContractRule:
    """One numbered rule.

    Attributes:
        number: `C01`, never given to another rule.
        name: in snake_case; the test is `test_c01_<name>`.
        statement: one line.
        source: section of the documentation (docs/reference) or the hook that it comes from.
        fix: a paragraph for the author of an adapter that breaks it.
        check: yields findings; none means the rule holds.
    """

    number: str
    name: str
    statement: str
    source: str
    fix: str
    check: Check

    @property
    def test_name(self) -> str:
        """The name of its test."""
        return f"test_{self.number.lower()}_{self.name}"


RULES: dict[str, ContractRule] = {}


def rule(number: str, statement: str, *, source: str, fix: str) -> Callable[[Check], Check]:
    """Register a check as a rule; its name is the function's.

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
        )
        return check

    return register

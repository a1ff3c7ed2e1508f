"""What a rule finds, and the registry that rules enter by their number.

Never checks anything itself and never raises. The rule modules come in; others see Violation and RULES through the
room's front door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs


@attrs.frozen(kw_only=True)
class Violation:
    """One place where a conversation breaks a rule.

    Attributes:
        number: of the rule, as in docs/reference/invariants.md.
        rule: the rule's name.
        path: place, such as `messages[3].content[0]`; from `check_message`, without the message.
        message: what is wrong there, for a person.
        repairable: True when a request may still go out: projection repairs it, or no wire sees it.
        message_id: id of the message, where the place is in one.
    """

    number: int
    rule: str
    path: str
    message: str
    repairable: bool = False
    message_id: str | None = None

    def __str__(self) -> str:
        """Say the rule's number, the place and what is wrong, in one line."""
        return f"I{self.number:02} {self.path}: {self.message}"


RULES: dict[int, Callable[..., Any]] = {}
"""Every rule by its number."""

R = TypeVar("R", bound=Callable[..., Any])


def rule(function: R) -> R:
    """Enter a rule function into RULES; its name `iNN_what_holds` gives number and name."""
    number = int(function.__name__[1:3])
    if number in RULES:
        raise ValueError(f"rule {number} is there twice")
    RULES[number] = function
    return function


def broken(function: Callable[..., Any], path: str, message: str, **facts: Any) -> Violation:
    """Return a violation of the rule that `function` is."""
    name = function.__name__
    return Violation(number=int(name[1:3]), rule=name[4:], path=path, message=message, **facts)

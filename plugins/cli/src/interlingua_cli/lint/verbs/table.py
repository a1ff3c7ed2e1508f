"""The table of verbs: each name a rule may use, with the function that makes its check.

Never holds a verb itself; those stand beside, by what they look at.
The modules beside register here, and the reader looks up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from interlingua_cli.lint.rule import Check

Make = Callable[[Any], Check]


_Make = TypeVar("_Make", bound=Make)


VERBS: dict[str, Make] = {}


def verb(name: str) -> Callable[[_Make], _Make]:
    """Register a function that makes a check of a verb's parameter; it raises ValueError for one it cannot use."""

    def register(make: _Make) -> _Make:
        VERBS[name] = make
        return make

    return register


def texts(given: Any) -> tuple[str, ...]:
    """Return a parameter that is one text or a list of texts."""
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not found or not all(isinstance(item, str) for item in found):
        raise ValueError("expected a text or a list of texts")
    return tuple(found)


def bounds(given: Any) -> tuple[float, float]:
    """Return a parameter `[least, most]`."""
    if (
        not isinstance(given, list)
        or len(given) != 2
        or not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in given)
        or given[0] > given[1]
    ):
        raise ValueError("expected two numbers, [least, most]; inf is allowed")
    return given[0], given[1]


def expression(given: Any) -> re.Pattern[str]:
    """Return a parameter that is a regular expression."""
    if not isinstance(given, str):
        raise ValueError("expected a regular expression")
    try:
        return re.compile(given)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


def shown(value: Any) -> str:
    """Show a value in a finding, short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

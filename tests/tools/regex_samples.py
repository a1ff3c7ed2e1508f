"""Strings that a regular expression matches, made up at run time: secrets are never written down in this repository."""

from __future__ import annotations

import random
import re
import string
from typing import Any

_parser: Any = re._parser  # type: ignore[attr-defined]
_KINDS = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
    "CATEGORY_SPACE": " ",
}
_ANY = string.ascii_letters + string.digits


def sample_of(pattern: str, chance: random.Random) -> str:
    """Return a string that the pattern matches; assertions are left to try again."""
    parsed = _parser.parse(pattern)
    whole = re.compile(pattern)
    for _ in range(200):
        made = _text(parsed, chance)
        if whole.fullmatch(made):
            return made
    raise ValueError(f"no string is found that matches {pattern}")


def _text(parsed: Any, chance: random.Random) -> str:
    return "".join(_part(str(kind), value, chance) for kind, value in parsed)


def _part(kind: str, value: Any, chance: random.Random) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind in ("IN", "NOT_LITERAL", "ANY"):
        return chance.choice(_letters(value) if kind == "IN" else _ANY)
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = value
        times = chance.randint(least, min(int(most), least + 8) if least else min(int(most), 1))
        return "".join(_text(inner, chance) for _ in range(times))
    if kind == "BRANCH":
        return _text(chance.choice(value[1]), chance)
    if kind in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _text(value[-1] if kind == "SUBPATTERN" else value, chance)
    if kind in ("AT", "ASSERT", "ASSERT_NOT"):
        return ""
    raise ValueError(f"{kind} of a regular expression has no sample")


def _letters(items: Any) -> str:
    found = ""
    for kind, value in items:
        if str(kind) == "LITERAL":
            found += chr(value)
        elif str(kind) == "RANGE":
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        elif str(kind) == "CATEGORY":
            found += _KINDS.get(str(value), _ANY)
        elif str(kind) == "NEGATE":
            return _ANY
    return found

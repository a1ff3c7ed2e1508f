"""The repair as a diff that a person can review: message by message, a JSON member a line.

Never shortens what is taken away. The room's front door comes in.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from interlingua.json import loads, replace_lone_surrogates
from interlingua_cli.doctor.finding import Diagnosis


def difference(diagnosis: Diagnosis, name: str) -> Iterator[str]:
    """Yield the lines of a unified diff between the file and its repair; none where nothing would change.

    Args:
        diagnosis: of the file.
        name: what the file is called in the heads of the diff.
    """
    kept = {line.number: line.text for line in diagnosis.after if line.number is not None}
    order = [line.number for line in diagnosis.after if line.number is not None]
    moved = set(order) - set(_rising(order))
    for number, text in diagnosis.before.items():
        if number not in kept:
            yield from _changed(text, "", f"{name}:{number}", "/dev/null")
        elif kept[number] != text:
            yield from _changed(text, kept[number], f"{name}:{number}", f"{name}:{number} repaired")
    last = 0
    for line in diagnosis.after:
        if line.number is None:
            yield from _changed("", line.text, "/dev/null", f"{name}: put in after line {last}")
        elif line.number in moved:
            yield f"--- {name}:{line.number}"
            yield f"+++ {name}: moved behind line {last}"
        else:
            last = line.number


def _rising(order: list[int]) -> list[int]:
    """Return the numbers that no smaller one follows: the others were moved."""
    lowest, kept = len(order) and max(order) + 1, []
    for number in reversed(order):
        if number < lowest:
            lowest = number
            kept.append(number)
    return kept


def _changed(was: str, now: str, left: str, right: str) -> Iterator[str]:
    return difflib.unified_diff(_pretty(was), _pretty(now), left, right, lineterm="", n=2)


def _pretty(text: str) -> list[str]:
    if not text:
        return []
    try:
        return replace_lone_surrogates(json.dumps(loads(text), ensure_ascii=False, indent=1)).splitlines()
    except ValueError:
        return [text]

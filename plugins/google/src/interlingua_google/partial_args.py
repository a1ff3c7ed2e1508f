"""Call arguments that arrive in pieces, each with the path of its value (cloud host only, sheet gemini §2).

Never decides when a call is whole. The reader comes in.
"""

from __future__ import annotations

import re
from typing import Any

from interlingua.errors import MalformedResponseError

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """The arguments of one call so far."""

    def __init__(self, given: Any) -> None:
        self.value: dict[str, Any] = dict(given) if isinstance(given, dict) else {}

    def add(self, pieces: Any) -> None:
        """Take the next pieces.

        Raises:
            MalformedResponseError: a piece contradicts what came before it.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._put(_steps(str(piece.get("jsonPath"))), _value_of(piece))

    def _put(self, steps: list[str | int], value: Any) -> None:
        holder: Any = self.value
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            old = _look(holder, step)
            if following is None:
                new = old + value if isinstance(old, str) and isinstance(value, str) else value
            elif old is None:
                new = [] if isinstance(following, int) else {}
            else:
                new = old
            _set(holder, step, new)
            holder = new


def _look(holder: Any, step: str | int) -> Any:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and step <= len(holder):
        return holder[step] if step < len(holder) else None
    raise MalformedResponseError("a piece of arguments does not fit the ones before it", path=f"partialArgs.{step}")


def _set(holder: Any, step: Any, value: Any) -> None:
    if isinstance(holder, list) and step == len(holder):
        holder.append(value)
    else:
        holder[step] = value


def _steps(path: str) -> list[str | int]:
    """Read `$.a[0].b`; a path not understood is the name of one member."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return [path]
        name, number, *quoted = found.groups()
        steps.append(int(number) if number else name or next((text for text in quoted if text is not None), ""))
        at = found.end()
    return steps or [path]


def _value_of(piece: dict[str, Any]) -> Any:
    name = next((name for name in _VALUES if name in piece), None)
    return None if name is None or name == "nullValue" else piece[name]

"""Answers beside the first, where several were asked for: kept whole, never sent back (sheet gemini §6).

Never mixes two of them. The reader comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KIND = "candidate"
_TEXT = ({"text"}, {"text", "thought"})


class Others:
    """The other candidates by number, put together from the chunks they came in."""

    def __init__(self) -> None:
        self._found: dict[int, dict[str, Any]] = {}

    def add(self, number: int, candidate: Mapping[str, Any]) -> None:
        """Take one candidate, or what a chunk adds to it."""
        whole = self._found.setdefault(number, {"content": {"role": "model", "parts": []}})
        whole.update({name: value for name, value in candidate.items() if name != "content"})
        parts: list[Any] = whole["content"]["parts"]
        content = candidate.get("content")
        for at, part in enumerate((content.get("parts") if isinstance(content, dict) else None) or ()):
            if at == 0 and parts and _goes_on(parts[-1], part):
                parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)

    def all(self) -> list[dict[str, Any]]:
        """Return them in order."""
        return [whole for _, whole in sorted(self._found.items())]


def _goes_on(last: Any, part: Any) -> bool:
    if (
        not isinstance(last, dict)
        or not isinstance(part, dict)
        or last.keys() != part.keys()
        or part.keys() not in _TEXT
    ):
        return False
    texts = isinstance(last["text"], str) and isinstance(part["text"], str)
    return texts and last.get("thought") == part.get("thought")

"""Partial values of a typed answer while it is streamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import Any

from interlingua.output import Partial
from interlingua.plugins import loads
from interlingua.types import StreamEvent, TextDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart
from interlingua_output.schema import join_path

_TOKEN = re.compile(r'\s*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}\[\],:"]+))', re.S)
_HALF_TEXT = re.compile(r'\s*("(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)')
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")


class JsonPartialReader:
    """Builds partial answers from the events of a stream.

    Args:
        tool: the tool whose call is the answer; "" if the answer is text.
        restore: converts the answer's JSON to its value, as `SchemaPlan.restore` does.
        unwrap: converts paths in the JSON to paths in the value.
    """

    def __init__(self, tool: str, restore: Callable[[Any], Any], unwrap: Callable[[Set[str]], frozenset[str]]) -> None:
        self._tool, self._restore, self._unwrap = tool, restore, unwrap
        self._index: int | None = None
        self._text = ""
        self._read = 0  # the text before this place is read
        self._whole = 0  # the text before this place is JSON once the open objects and lists are closed
        self._closers: list[str] = []
        self._at_key = self._ended = False
        self._last: tuple[str, bool] = ("", False)

    def feed(self, event: StreamEvent) -> Partial | None:
        """Return the partial answer after an event; None if the event added nothing."""
        if isinstance(event, ToolUseStart) and event.name == self._tool and self._index is None:
            self._index = event.index
        elif isinstance(event, ToolUseInputDelta) and event.index == self._index:
            return self._grow(event.partial_json)
        elif isinstance(event, ToolUseEnd) and event.index == self._index and event.block and not self._text:
            return self._grow(event.block.input_json)
        elif isinstance(event, TextDelta) and not self._tool:
            return self._grow(event.text)
        return None

    def _grow(self, text: str) -> Partial | None:
        self._text += text
        if self._ended or (not self._closers and not self._begin()):
            return None
        while not self._ended and (token := _TOKEN.match(self._text, self._read)):
            if token[3] and token.end() == len(self._text):
                break  # more digits may follow
            self._take(token)
        half = None if self._at_key or self._ended else _HALF_TEXT.match(self._text, self._read)
        found = self._text[self._read : half.end()] if half else ""
        json = self._text[: self._read] + _HALF_PAIR.sub("", found) + '"' if half else self._text[: self._whole]
        now = (json + "".join(reversed(self._closers)), half is not None)
        if now == self._last:
            return None
        try:
            value = loads(now[0])
        except ValueError:  # no JSON after all
            return None
        self._last = now
        closed = _closed(value, len(self._closers), half=now[1])
        return Partial(self._restore(value), self._unwrap(closed))

    def _begin(self) -> bool:
        self._text = self._text[at:] if (at := self._text.find("{")) >= 0 else ""
        return bool(self._text)

    def _take(self, token: re.Match[str]) -> None:
        self._read = token.end()
        mark = token[1]
        if mark in ("{", "["):
            self._closers.append("}" if mark == "{" else "]")
        elif mark in ("}", "]"):
            self._closers = self._closers[:-1]
        if mark in (None, "{", "[", "}", "]") and not self._at_key:
            self._whole = self._read
        self._at_key = (mark in ("{", ",") and self._closers[-1:] == ["}"]) or (mark is None and self._at_key)
        self._ended = not self._closers


def _closed(value: Any, depth: int, *, half: bool) -> frozenset[str]:
    """Return the paths of the complete parts of a value whose last `depth` nested objects and lists are open."""
    found = set() if depth else {""}

    def walk(node: Any, path: str, depth: int) -> None:
        items = [*(node.items() if isinstance(node, dict) else enumerate(node))]
        for at, (name, child) in enumerate(items):
            place = join_path(path, name)
            left = depth - 1 if at == len(items) - 1 else 0
            if left <= 0 and not (half and depth == 1 and at == len(items) - 1):
                found.add(place)
            if isinstance(child, dict | list):
                walk(child, place, left)

    walk(value, "", depth)
    return frozenset(found)

"""The `messages` array while it grows: neighbours of one role share a turn, and the last turn stays open.

Never knows a block: it is given elements, ready or as objects, and writes objects all at once. `turns` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.json import dumps
from interlingua.plugins.encoding import Piece, gather, inside

_OPEN = {role: b'{"role":"%s","content":[' % role.encode() for role in ("user", "assistant", "system")}
_NEXT = {role: b"]}," + opened for role, opened in _OPEN.items()}


class Body:
    """Takes each message's elements in order."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = [b"["]
        self._open: str | None = None  # role of the turn that is open in the pieces
        self._said: list[dict[str, Any]] = []  # the turns behind them, still to be written

    @property
    def last(self) -> str | None:
        """Role of the last turn; None before the first."""
        return self._said[-1]["role"] if self._said else self._open

    def say(self, role: str, elements: list[dict[str, Any]]) -> None:
        """Take a message's elements as objects; at least one, and the list is not the caller's any more."""
        said = self._said
        if said and said[-1]["role"] == role:
            said[-1]["content"] += elements
        else:
            said.append({"role": role, "content": elements})

    def put(self, role: str, joined: bytes) -> None:
        """Take a message's elements as bytes; at least one."""
        self._write()
        self._pieces += (b"," if role == self._open else _NEXT[role] if self._open else _OPEN[role], joined)
        self._open = role

    def closed(self) -> list[Piece]:
        """Return the array in pieces; it can grow further."""
        self._write()
        gather(self._pieces)
        return [*self._pieces, b"]}]" if self._open else b"]"]

    def _write(self) -> None:
        said, self._said = self._said, []
        if said and said[0]["role"] == self._open:
            self._pieces += (b",", inside(dumps(said.pop(0)["content"])))
        if said:
            self._pieces += (b"]}," if self._open else b"", inside(dumps(said), closing=3))
            self._open = said[-1]["role"]

"""The states of an API's words, and their meanings."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["typed", "passes", "kept", "refused", "repeated", "constant", "signal", "unplaced"]
MEANINGS: dict[State, str] = {
    "typed": "has a canonical name, which follows it",
    "passes": "reaches the service by the way that follows it",
    "kept": "is stored with the message unchanged",
    "refused": "is a named error or a row before anything is lost",
    "repeated": "says again what the request or another event says, and is not stored twice",
    "constant": "is the same word in every answer",
    "signal": "has no content: a position in a stream, or padding",
    "unplaced": "is lost; there must be none",
}


class Place(NamedTuple):
    """The state of a word.

    Attributes:
        state: one of `MEANINGS`.
        note: a canonical name, a way, or what is wrong.
    """

    state: State
    note: str = ""

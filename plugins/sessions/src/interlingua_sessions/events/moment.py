"""A moment of an answer that grows: what all events of it share.

Never keeps a message: one is made of the growth when it is read. The events come in.
An event costs a pointer and a number, however long the answer is.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from interlingua.types.messages import Message


class Growing(Protocol):
    """An answer that remembers how it grew."""

    def at(self, seen: int) -> Message:
        """Return what it was after its first `seen` stream events."""


@attrs.frozen(kw_only=True)
class Moment:
    """A moment of an answer: cheap to keep, and the message of that moment is made when it is read."""

    growing: Growing = attrs.field(repr=False, eq=False)
    seen: int = attrs.field(repr=False, eq=False)

    @property
    def partial(self) -> Message:
        """The answer as it stood at this event, status PARTIAL; made anew each time it is read."""
        return self.growing.at(self.seen)


@attrs.frozen(kw_only=True)
class BlockMoment(Moment):
    """A moment of one block.

    Attributes:
        content_index: which block of `partial.content`: blocks count in the order they began, and keep their place.
    """

    content_index: int

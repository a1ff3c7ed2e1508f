"""Projection: the conversation as one target can carry it, and the ledger of what that cost (DESIGN 7).

Never sends, never renders bytes and never reads `provider_raw`; it only hides a foreign one.
The façade (`interlingua.provider`) comes in; the client's limits, the doctor and the contract ask what it would do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from operator import is_
from threading import Lock

from interlingua.messages import Message
from interlingua.projection.names import wire_name, wire_tools
from interlingua.projection.places import in_conversation
from interlingua.projection.stand_ins import MISSING_RESULT
from interlingua.projection.target import Target
from interlingua.projection.walk import Walk
from interlingua.wire import Loss

__all__ = ["MISSING_RESULT", "Projector", "Target", "Walk", "in_conversation", "wire_name"]


class Projector:
    """Projects conversations; a conversation that only grew is continued, not walked again.

    A walk is remembered under its target and first message, and continued only when every message it saw is the very
    same object. A thread takes a walk out while it uses it, so two never share one.
    """

    named = staticmethod(wire_tools)

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._walks: OrderedDict[tuple[int, int], Walk] = OrderedDict()
        self._lock = Lock()

    def project(self, messages: Sequence[Message], target: Target) -> tuple[list[Message], tuple[Loss, ...]]:
        """Return the projected messages and the losses, in conversation order."""
        if not messages:
            return [], ()
        key = (id(target), id(messages[0]))
        with self._lock:
            walk = self._walks.pop(key, None)
        if walk is None or not _continues(walk, messages, target):
            walk = Walk(target)
        walk.take(messages[len(walk.seen) :])
        result = walk.result()
        with self._lock:
            self._walks[key] = walk
            while len(self._walks) > self._limit:
                self._walks.popitem(last=False)
        return result


def _continues(walk: Walk, messages: Sequence[Message], target: Target) -> bool:
    """True when these messages start with the very objects the walk saw (it holds them, so ids cannot lie)."""
    seen = walk.seen
    return walk.target is target and len(seen) <= len(messages) and all(map(is_, seen, messages))

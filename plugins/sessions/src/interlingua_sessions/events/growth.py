"""How an answer grew: the stream events as they came, replayed when somebody wants a message of an earlier moment.

Never copies or assembles anything before it is asked to.
The view comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from interlingua.plugins.wire import RequestContext
from interlingua.response.assemble import Assembler
from interlingua.types.events import StreamEvent
from interlingua.types.messages import Message, Origin


class Growth:
    """The events of one answer, and the places of the blocks that are shown.

    Args:
        basis: gives the answer as a message at any moment; its id, origin and time are taken from there.
    """

    def __init__(self, basis: Callable[[], Message]) -> None:
        self.events: list[StreamEvent] = []
        self.places: dict[int, int] = {}
        self._basis = basis
        self._context: RequestContext | None = None

    def at(self, seen: int) -> Message:
        """Return the answer after its first `seen` events: the shown blocks in the order they began."""
        assembler = Assembler(self._known_context())
        assembler.feed(self._shown(seen))
        return assembler.message()

    def _shown(self, seen: int) -> Iterator[StreamEvent]:
        for event in self.events[:seen]:
            index = getattr(event, "index", None)
            if index is None:
                yield event
            elif (place := self.places.get(index)) is not None:
                yield attrs.evolve(event, index=place)  # type: ignore[arg-type]  # it has one: `index` says so

    def _known_context(self) -> RequestContext:
        if self._context is None:
            basis = self._basis()
            known = basis.metadata
            self._context = RequestContext(
                origin=known.origin or Origin("", "", ""),
                message_id=basis.id,
                session_id=basis.session_id,
                clock=lambda: basis.created_at,
                routing=known.routing,
                user_id=known.user_id,
                team_id=known.team_id,
            )
        return self._context

"""The tool pruning policy of seed 004 §9: results of long ago go first, the answers after them said what mattered.

Never touches a stored message: it stores which results the context leaves out from then on. Compaction comes in.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import attrs

from interlingua.types.messages import Message, Role
from interlingua_sessions.compaction.layout import PRUNED, PRUNING, layout_of
from interlingua_sessions.compaction.weight import weight
from interlingua_sessions.store import EntryKind

if TYPE_CHECKING:
    from interlingua_sessions.session.api import Facts


@attrs.frozen(kw_only=True)
class ToolPruning:
    """Leaves out the content of old tool results; the calls and their order stay.

    Attributes:
        keep: newest results that stay, as a share of the token limit.
        least: how much must be saved for it to be worth a new prefix, as a share of the limit.
        shortest: tokens; shorter results stay, they cost less than the note in their place says.
    """

    keep: float = 0.25
    least: float = 0.05
    shortest: int = 100

    def apply(self, facts: Facts, limit: int) -> Generator[Sequence[Message], Message, None]:
        """Store which results are left out from now on; asks no model."""
        old = self.choose(facts.messages, layout_of(facts.entries).covers, limit)
        fresh = sorted(set(old) - layout_of(facts.entries).pruned)
        saved = sum(weight(facts.messages[place]) for place in fresh)
        if fresh and saved >= self.least * limit:
            facts.add_entry(EntryKind.CUSTOM, custom_type=PRUNING, data={PRUNED: fresh, "tokens": saved})
        yield from ()

    def choose(self, messages: Sequence[Message], covers: int, limit: int) -> list[int]:
        """Return the places of the results that are old enough and long enough."""
        left = self.keep * limit
        seen = False  # results that the model has not answered to yet stay in any case
        chosen = []
        for place in range(len(messages) - 1, covers - 1, -1):
            message = messages[place]
            if message.role is not Role.TOOL:
                seen = True
                continue
            heavy = weight(message)
            if not seen or left > 0:
                left -= heavy
            elif heavy > self.shortest:
                chosen.append(place)
        return chosen

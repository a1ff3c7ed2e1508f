"""Free changes, which no rule needs to notice, each with the reason. The list may only shrink."""

from __future__ import annotations

import attrs

from interlingua_contract.mutation.seam import Mutant
from interlingua_contract.mutation.tree import format_place


@attrs.frozen
class Free:
    """Mutants that no rule needs to notice.

    Attributes:
        hook: the hook.
        place: as `format_place` writes it; `...` at the end stands for whatever follows.
        reason: why no caller can tell.
        operations: their names; empty for all.
    """

    hook: str
    place: str
    reason: str
    operations: tuple[str, ...] = ()

    def covers(self, mutant: Mutant) -> bool:
        """True if the mutant is one of these."""
        if mutant.hook != self.hook or (self.operations and mutant.operation not in self.operations):
            return False
        place = format_place(mutant.place)
        return place.startswith(self.place[:-3]) if self.place.endswith("...") else place == self.place


_FILLED_IN = "Core fills it in from the answer that the error was read from."
_TRACE = "Details that help to understand an answer: they may be trimmed, and no code reads them."

FREE: tuple[Free, ...] = (
    Free("from_wire_error", "/status", _FILLED_IN, ("drop",)),
    Free("from_wire_response", "/error/status", _FILLED_IN, ("drop",)),
    Free("from_wire_response", "/metadata/provider_raw/trace...", _TRACE),
    Free("stream_response", "/*[raw_update]/trace...", _TRACE),
)


def reason_of(mutant: Mutant) -> str | None:
    """Return why a mutant is free, or None."""
    return next((free.reason for free in FREE if free.covers(mutant)), None)

"""Free changes, which no rule needs to notice, each with the reason. The list may only shrink."""

from __future__ import annotations

import attrs

from interlingua_contract.mutation.seam import Mutant


@attrs.frozen
class Free:
    """Mutants that no rule needs to notice.

    Attributes:
        hook: the hook.
        place: as `format_place` writes it; `*` stands for an element of any kind, `...` at the end for any steps.
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
        steps, found = self.place.strip("/").split("/"), mutant.place
        if found[:2] == _KEPT and steps[0] != "error":  # the message that an error keeps is a message like others
            found = found[2:]
        if steps[-1] == "...":
            steps, found = steps[:-1], found[: len(steps) - 1]
        return len(steps) == len(found) and all(
            step == there or (step == "*" and there.startswith("*")) for step, there in zip(steps, found, strict=True)
        )


_KEPT = ("error", "partial")
_FILLED_IN = "Core fills it in from the answer that the error was read from."
_OWN_ID = "The serving plugin takes a new id from core for each message that it reads."
_TRACE = "Details that help to understand an answer: they may be trimmed, and no code reads them."

_DEFAULT = "Core sends `content-type: application/json` with every request that names no other type."

FREE: tuple[Free, ...] = (
    Free("to_wire", "/headers/content-type", _DEFAULT, ("drop",)),
    Free("from_wire_error", "/status", _FILLED_IN, ("drop",)),
    Free("from_wire_response", "/error/status", _FILLED_IN, ("drop",)),
    Free("from_wire_request", "/messages/*/id", _OWN_ID),
    Free("from_wire_response", "/metadata/provider_raw/trace/...", _TRACE),
    Free("stream_response", "/*[raw_update]/trace/...", _TRACE),
)


def reason_of(mutant: Mutant) -> str | None:
    """Return why a mutant is free, or None."""
    return next((free.reason for free in FREE if free.covers(mutant)), None)

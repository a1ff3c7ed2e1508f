"""Count the outcomes of a replay per API, and write an outcome as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from interlingua.codec import encode_message
from interlingua.errors import InterlinguaError
from interlingua_cli.replay.exchange import Outcome, get_partial


@attrs.define(kw_only=True)
class _Tally:
    entries: int = 0
    decoded: int = 0
    failed: int = 0
    opaque: int = 0
    excluded: int = 0
    errors: Counter[str] = attrs.field(factory=Counter)
    failures: list[dict[str, str]] = attrs.field(factory=list)

    def as_json(self) -> dict[str, Any]:
        data = attrs.asdict(self, recurse=False)
        return {**data, "errors": dict(sorted(self.errors.items()))}


class Report:
    """Counts outcomes per API; `errors` counts the service's errors, which were decoded."""

    def __init__(self) -> None:
        self._groups: dict[str, _Tally] = {}

    def add(self, outcome: Outcome) -> None:
        """Count one entry."""
        tally = self._groups.setdefault(outcome.group, _Tally())
        tally.entries += 1
        tally.opaque += outcome.opaque
        if not outcome.decoded:
            tally.failed += 1
            tally.failures.append({"id": outcome.id, "error": f"{type(outcome.error).__name__}: {outcome.error}"})
            return
        tally.decoded += 1
        if outcome.error is not None:
            tally.errors[type(outcome.error).__name__] += 1

    def exclude(self, group: str) -> None:
        """Count an excluded entry: neither decoded nor failed."""
        tally = self._groups.setdefault(group, _Tally())
        tally.entries += 1
        tally.excluded += 1

    @property
    def failed(self) -> int:
        """How many entries failed, over all APIs."""
        return sum(tally.failed for tally in self._groups.values())

    def as_json(self) -> dict[str, Any]:
        """Return the report per API, in the order of first appearance."""
        return {group: tally.as_json() for group, tally in self._groups.items()}


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return an entry's line: its canonical message, or its error with the part of the answer before it."""
    if outcome.message is not None:
        return {"id": outcome.id, "message": encode_message(outcome.message)}
    line: dict[str, Any] = {"id": outcome.id, "error": error_to_json(outcome.error)}
    partial = get_partial(outcome.error)
    return line if partial is None else {**line, "partial": encode_message(partial)}


def error_to_json(error: BaseException | None) -> dict[str, Any]:
    """Return an error as JSON: class, message, status, and whether to try again."""
    facts: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, InterlinguaError):
        facts.update(message=error.message, status=error.status, retryable=error.retryable,
                     retry_after=error.retry_after)  # fmt: skip
    return facts

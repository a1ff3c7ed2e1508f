"""What was decided and why: the record on the message, and the full chain in the event (seed 003 §4.3).

Never decides. The router and the session come in; observers see the event as plain values.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.types.messages import RoutingDecisionRecord
from interlingua_sessions.routing.refusal import Candidate, Refused


@attrs.frozen(kw_only=True)
class Decision:
    """The model of one step.

    Attributes:
        candidate: what won.
        model: its canonical id.
        refused: what was proposed before it and cannot answer, or failed there.
    """

    candidate: Candidate
    model: str
    refused: tuple[Refused, ...] = ()

    @property
    def record(self) -> RoutingDecisionRecord:
        """The compact summary that goes onto the assistant's message."""
        passed = "".join(f"; not {one.model}: {one.why}" for one in self.refused)
        return RoutingDecisionRecord(
            mode=self.candidate.policy.mode,
            chosen_model=self.model,
            reason=self.candidate.reason + passed,
            rule_name=self.candidate.rule_name,
            confidence=self.candidate.confidence,
            alternatives_considered=dict.fromkeys(one.model for one in self.refused),
        )

    def event(self, session_id: str, after: str) -> dict[str, Any]:
        """Return the `route.decided` event; `after` is the id of the message that is answered."""
        record = self.record
        return {
            "type": "route.decided",
            "session_id": session_id,
            "after": after,
            "policy": str(self.candidate.policy),
            "mode": str(record.mode),
            "chosen_model": self.model,
            "reason": record.reason,
            "rule_name": record.rule_name,
            "confidence": record.confidence,
            "alternatives_considered": list(record.alternatives_considered),
            "chain": [*(_link(one.candidate, one.model, one.why) for one in self.refused),
                      _link(self.candidate, self.model, None)],
        }  # fmt: skip


def _link(candidate: Candidate, model: str, refused: str | None) -> dict[str, Any]:
    facts = {"policy": str(candidate.policy), "mode": str(candidate.policy.mode), "model": model}
    return {**facts, "reason": candidate.reason, "refused": refused}

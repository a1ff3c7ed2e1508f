"""What was decided and why: the record on the message, and the full chain in the event (seed 003 §4.3).

Never decides. The chain, the router and the session come in; observers see the events as plain values.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua import CallerError, RoutingDecisionRecord
from interlingua_sessions.routing.constraints import Failure
from interlingua_sessions.routing.policy import ChainPolicy


@attrs.frozen(kw_only=True)
class Candidate:
    """A model that one policy proposes.

    Attributes:
        policy: which link of the chain.
        model: as it was named, id or alias.
        reason: one sentence for a person.
        rule_name: of the rule, for RULE.
        confidence: of the pattern, for PATTERN.
    """

    policy: ChainPolicy
    model: str
    reason: str
    rule_name: str | None = None
    confidence: float | None = None


@attrs.frozen(kw_only=True)
class Refused:
    """A candidate that cannot answer, with its model's canonical id where it has one, and why not."""

    candidate: Candidate
    model: str
    failures: tuple[Failure, ...]

    @property
    def why(self) -> str:
        """All reasons in one line."""
        return "; ".join(failure.reason for failure in self.failures)


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


def constraint_failure(refused: Refused, session_id: str, active_model: str | None) -> dict[str, Any]:
    """Return the `routing_constraint_failure` event of one refusal."""
    return {
        "type": "routing_constraint_failure",
        "session_id": session_id,
        "policy": str(refused.candidate.policy),
        "model": refused.model,
        "active_model": active_model,
        "failures": [attrs.asdict(failure) for failure in refused.failures],
        "message": sentence(refused),
    }


def sentence(refused: Refused) -> str:
    """Say a refusal as seed 003's worked example 4 does; the model is called as the user called it."""
    return f"Cannot swap to {refused.candidate.model}: {refused.why}. Active model unchanged."


class SwapRefused(CallerError):
    """A model that was asked for by name cannot carry the session; nothing changed. `failures` says why."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(sentence(refused))
        self.refused_model = refused.model
        self.failures = refused.failures


class NoRoute(CallerError):
    """No policy proposed a model that can answer; `refused` holds those that cannot."""

    def __init__(self, refused: tuple[Refused, ...]) -> None:
        tried = "; ".join(f"{one.model}: {one.why}" for one in refused)
        hint = "switch the session to a model, set a default in its policy, or give one to the client"
        super().__init__(f"no model can answer: {tried}" if tried else f"no model: {hint}")
        self.refused = refused

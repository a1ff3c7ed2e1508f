"""What was proposed, and why it cannot answer: as an event, as a sentence, as an error (seed 003 §8.4).

Never decides. Decisions, the chain and the router come in; applications for the errors.
Observers see the events as plain values.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua import CallerError
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
        self.failures = refused.failures


class NoRoute(CallerError):
    """No policy proposed a model that can answer; `refused` holds those that cannot."""

    def __init__(self, refused: tuple[Refused, ...]) -> None:
        tried = "; ".join(f"{one.model}: {one.why}" for one in refused)
        hint = "switch the session to a model, name one for this message, set a default in its policy or the client"
        super().__init__(f"no model can answer: {tried}" if tried else f"no model: {hint}")
        self.refused = refused

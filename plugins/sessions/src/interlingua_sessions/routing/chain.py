"""The chain: each policy proposes a model in its order, and the first proposal that can answer wins (seed 003 §4.3).

Never sends and never changes a session. The router comes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs

from interlingua_sessions.routing.policy import ChainPolicy, RoutingPolicy, Rule
from interlingua_sessions.routing.refusal import Candidate
from interlingua_sessions.routing.turn import PatternStore, Turn

Estimate = Callable[[str], int]
"""Model -> estimated input tokens of the turn there."""


@attrs.frozen(kw_only=True)
class Chain:
    """What the policies of one session are.

    Attributes:
        policy: the session's own.
        sticky: the model the session was switched to.
        patterns: recommends models, or None.
        last_resort: the model used when the policy names none, such as the client's default.
    """

    policy: RoutingPolicy
    sticky: str | None = None
    patterns: PatternStore | None = None
    last_resort: str | None = None

    def proposals(self, turn: Turn, estimate: Estimate) -> Iterator[Candidate]:
        """Yield what the policies propose, in their order; nothing is worked out before it is asked for."""
        if turn.override:
            reason = "the caller named this model for this message"
            yield Candidate(policy=ChainPolicy.PER_MESSAGE_OVERRIDE, model=turn.override, reason=reason)
        if self.sticky:
            yield Candidate(policy=ChainPolicy.MANUAL_STICKY, model=self.sticky, reason=self.policy.manual_reason)
        yield from self._by_rule(turn, estimate)
        yield from self._by_pattern(turn)
        if turn.delegation:
            asked = turn.delegation
            yield Candidate(policy=ChainPolicy.DELEGATE_REQUEST, model=asked.model, reason=asked.reason)
        workspace = self.policy.workspace_default
        if workspace:
            yield Candidate(policy=ChainPolicy.WORKSPACE_DEFAULT, model=workspace, reason="workspace default")
        for model in filter(None, (self.policy.global_default, self.last_resort)):
            yield Candidate(policy=ChainPolicy.GLOBAL_DEFAULT, model=model, reason="global default")

    def _by_rule(self, turn: Turn, estimate: Estimate) -> Iterator[Candidate]:
        for rule in self.policy.rules:
            if _matches(rule, turn, estimate):
                reason = f"rule {rule.name!r} matched"
                yield Candidate(policy=ChainPolicy.RULE, model=rule.model, reason=reason, rule_name=rule.name)

    def _by_pattern(self, turn: Turn) -> Iterator[Candidate]:
        found = self.patterns(turn) if self.patterns is not None else None
        if found is not None and found.confidence >= self.policy.min_confidence:
            yield Candidate(
                policy=ChainPolicy.PATTERN, model=found.model, reason=found.reason, confidence=found.confidence
            )


def _matches(rule: Rule, turn: Turn, estimate: Estimate) -> bool:
    when = rule.when
    if when.text is not None and not re.search(when.text, turn.text, re.IGNORECASE):
        return False
    if when.images is not None and turn.needs.has("image") is not when.images:
        return False
    if when.tools is not None and bool(turn.tools) is not when.tools:
        return False
    if when.min_tokens is None and when.max_tokens is None:
        return True
    tokens = estimate(rule.model)
    return (when.min_tokens or 0) <= tokens and (when.max_tokens is None or tokens <= when.max_tokens)

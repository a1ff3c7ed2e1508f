"""The router: asks the policy chain, checks each proposal against the model's capabilities, and falls back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.errors import OverloadedError, PluginError, RateLimitError
from interlingua.plugins import Provider, Registry, estimate_input_tokens
from interlingua.types import AdapterOptions, Message, ModelId, RoutingDecisionRecord, ToolDefinition
from interlingua_sessions.routing.needs import ConstraintFailure, PatternStore, RoutedTurn, constraint_failures
from interlingua_sessions.routing.policy import ChainPolicy, RoutingPolicy, Rule


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
class RefusedCandidate:
    """A candidate that cannot answer, with its model's canonical id where it has one, and why not."""

    candidate: Candidate
    model: str
    failures: tuple[ConstraintFailure, ...]

    @property
    def why(self) -> str:
        """All reasons in one line."""
        return "; ".join(failure.reason for failure in self.failures)


def constraint_failure_event(refused: RefusedCandidate, session_id: str, active_model: str | None) -> dict[str, Any]:
    """Return the `routing_constraint_failure` event of one refusal."""
    return {
        "type": "routing_constraint_failure",
        "session_id": session_id,
        "policy": str(refused.candidate.policy),
        "model": refused.model,
        "active_model": active_model,
        "failures": [attrs.asdict(failure) for failure in refused.failures],
        "message": refusal_sentence(refused),
    }


def refusal_sentence(refused: RefusedCandidate) -> str:
    """Say a refusal as seed 003's worked example 4 does; the model is called as the user called it."""
    return f"Cannot swap to {refused.candidate.model}: {refused.why}. Active model unchanged."


class SwapRefusedError(CallerError):
    """A model that was asked for by name cannot carry the session; nothing changed. `failures` says why."""

    def __init__(self, refused: RefusedCandidate) -> None:
        super().__init__(refusal_sentence(refused))
        self.failures = refused.failures


class NoRouteError(CallerError):
    """No policy proposed a model that can answer; `refused` holds those that cannot."""

    def __init__(self, refused: tuple[RefusedCandidate, ...]) -> None:
        tried = "; ".join(f"{one.model}: {one.why}" for one in refused)
        hint = "switch the session to a model, name one for this message, set a default in its policy or the client"
        super().__init__(f"no model can answer: {tried}" if tried else f"no model: {hint}")
        self.refused = refused


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

    def proposals(self, turn: RoutedTurn, estimate: Estimate) -> Iterator[Candidate]:
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

    def _by_rule(self, turn: RoutedTurn, estimate: Estimate) -> Iterator[Candidate]:
        for rule in self.policy.rules:
            if _matches(rule, turn, estimate):
                reason = f"rule {rule.name!r} matched"
                yield Candidate(policy=ChainPolicy.RULE, model=rule.model, reason=reason, rule_name=rule.name)

    def _by_pattern(self, turn: RoutedTurn) -> Iterator[Candidate]:
        found = self.patterns(turn) if self.patterns is not None else None
        if found is not None and found.confidence >= self.policy.min_confidence:
            yield Candidate(
                policy=ChainPolicy.PATTERN, model=found.model, reason=found.reason, confidence=found.confidence
            )


def _matches(rule: Rule, turn: RoutedTurn, estimate: Estimate) -> bool:
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
    refused: tuple[RefusedCandidate, ...] = ()

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


_OPTIONS = ("api", "capabilities", "demote_thinking")  # what an adapter's declaration may depend on


class Router:
    """Decides for one registry; all it knows of a session comes with the call."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def observe(self, event: Mapping[str, Any]) -> None:
        """Tell observers, where there are any."""
        if any(hasattr(plugin, "observe") for plugin in self.registry.plugins):
            self.registry.observe(event)

    def decide(self, chain: Chain, turn: RoutedTurn, *, sized: bool = True) -> Decision:
        """Return the model of a turn.

        Args:
            chain: the policies.
            turn: what is to be answered.
            sized: hold the conversation's size against the model's window; False before compaction had its say.

        Raises:
            SwapRefused: the model named for this message cannot answer it.
            NoRoute: no proposal can.
        """
        refused: list[RefusedCandidate] = []
        for candidate in chain.proposals(turn, lambda model: self.estimate(self._id(model), turn)):
            found = self._checked(candidate, turn, sized=sized)
            if isinstance(found, Decision):
                return attrs.evolve(found, refused=tuple(refused))
            self.observe(constraint_failure_event(found, turn.session_id, chain.sticky))
            if candidate.policy is ChainPolicy.PER_MESSAGE_OVERRIDE:
                raise SwapRefusedError(found)
            refused.append(found)
        raise NoRouteError(tuple(refused))

    def still(self, decision: Decision, turn: RoutedTurn) -> bool:
        """Tell whether what was decided can answer this, too."""
        return isinstance(self._checked(decision.candidate, turn, sized=True), Decision)

    def check_swap(self, chain: Chain, turn: RoutedTurn, model: str) -> str:
        """Return the canonical id of a model the session is to be switched to.

        Raises:
            SwapRefused: it cannot carry the session.
            CallerError: the name is no model id and no alias.
            UnknownProviderError: its provider is not installed.
        """
        name = self._id(model)
        self.registry.provider(name.provider)
        candidate = Candidate(policy=ChainPolicy.MANUAL_STICKY, model=model, reason="")
        found = self._checked(candidate, turn, sized=True)
        if isinstance(found, RefusedCandidate):
            self.observe(constraint_failure_event(found, turn.session_id, chain.sticky))
            raise SwapRefusedError(found)
        return str(name)

    def after_failure(
        self, chain: Chain, turn: RoutedTurn, decision: Decision, error: InterlinguaError, *, sized: bool = True
    ) -> Decision | None:
        """Return the next allowed model after an overload or a rate limit, or None: the error stands.

        Allowed are the policy's `fallbacks`, in their order, that were not tried yet and can answer.
        """
        if not isinstance(error, (OverloadedError, RateLimitError)):
            return None
        why = ConstraintFailure(capability="provider", reason=f"{type(error).__name__}: {error.message}")
        refused = [
            *decision.refused,
            RefusedCandidate(candidate=decision.candidate, model=decision.model, failures=(why,)),
        ]
        tried = {one.model for one in refused}
        for model in chain.policy.fallbacks:
            candidate = attrs.evolve(decision.candidate, model=model, reason="fallback after a failure of the service")
            found = self._checked(candidate, turn, sized=sized)
            if found.model in tried:
                continue
            if isinstance(found, Decision):
                return attrs.evolve(found, refused=tuple(refused))
            self.observe(constraint_failure_event(found, turn.session_id, chain.sticky))
            refused.append(found)
        return None

    def estimate(self, model: ModelId, turn: RoutedTurn) -> int:
        """Estimate the input tokens of a turn at a model."""
        return self.estimated(model, turn.messages, turn.tools, turn.options)

    def estimated(
        self, model: ModelId, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: Mapping[str, Any]
    ) -> int:
        """Estimate the input tokens of messages and tools at a model."""
        asked = _options(model, options)
        return estimate_input_tokens(self.registry.provider(model.provider), messages, tools, asked)

    def window(self, model: ModelId, options: Mapping[str, Any]) -> int:
        """Return a model's context window in tokens; 0 when unknown."""
        provider = self.registry.provider(model.provider)
        return provider.capabilities(model.name, _options(model, options)).max_context_tokens

    def _checked(self, candidate: Candidate, turn: RoutedTurn, *, sized: bool) -> Decision | RefusedCandidate:
        try:
            name = self._id(candidate.model)
            provider: Provider = self.registry.provider(name.provider)
        except (CallerError, PluginError) as error:
            failure = ConstraintFailure(capability="provider", reason=error.message)
            return RefusedCandidate(candidate=candidate, model=candidate.model, failures=(failure,))
        can = provider.capabilities(name.name, _options(name, turn.options))
        found = constraint_failures(turn.needs, can, partial(self.estimate, name, turn) if sized else None)
        if found:
            return RefusedCandidate(candidate=candidate, model=str(name), failures=tuple(found))
        return Decision(candidate=candidate, model=str(name))

    def _id(self, model: str) -> ModelId:
        return self.registry.resolve(model)


def _options(model: ModelId, options: Mapping[str, Any]) -> AdapterOptions:
    return AdapterOptions(model=model.name, **{name: options[name] for name in _OPTIONS if options.get(name)})

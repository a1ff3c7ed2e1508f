"""The router: asks the chain, holds each proposal against its model's capabilities, tells observers, and falls back.

Never sends and never stores. The session comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from interlingua import CallerError, InterlinguaError
from interlingua.errors import OverloadedError, PluginError, RateLimitError
from interlingua.plugins import estimate_input_tokens
from interlingua.plugins.provider import Provider
from interlingua.plugins.registry import Registry
from interlingua.types import ModelId
from interlingua.types.messages import Message
from interlingua.types.options import AdapterOptions
from interlingua.types.tools import ToolDefinition
from interlingua_sessions.routing.chain import Chain
from interlingua_sessions.routing.constraints import Failure, failures
from interlingua_sessions.routing.decision import Decision
from interlingua_sessions.routing.policy import ChainPolicy
from interlingua_sessions.routing.refusal import Candidate, NoRoute, Refused, SwapRefused, constraint_failure
from interlingua_sessions.routing.turn import Turn

_OPTIONS = ("api", "capabilities", "demote_thinking")  # what an adapter's declaration may depend on


class Router:
    """Decides for one registry; all it knows of a session comes with the call."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def observe(self, event: Mapping[str, Any]) -> None:
        """Tell observers, where there are any."""
        if any(hasattr(plugin, "observe") for plugin in self.registry.plugins):
            self.registry.observe(event)

    def decide(self, chain: Chain, turn: Turn, *, sized: bool = True) -> Decision:
        """Return the model of a turn.

        Args:
            chain: the policies.
            turn: what is to be answered.
            sized: hold the conversation's size against the model's window; False before compaction had its say.

        Raises:
            SwapRefused: the model named for this message cannot answer it.
            NoRoute: no proposal can.
        """
        refused: list[Refused] = []
        for candidate in chain.proposals(turn, lambda model: self.estimate(self._id(model), turn)):
            found = self._checked(candidate, turn, sized=sized)
            if isinstance(found, Decision):
                return attrs.evolve(found, refused=tuple(refused))
            self.observe(constraint_failure(found, turn.session_id, chain.sticky))
            if candidate.policy is ChainPolicy.PER_MESSAGE_OVERRIDE:
                raise SwapRefused(found)
            refused.append(found)
        raise NoRoute(tuple(refused))

    def still(self, decision: Decision, turn: Turn) -> bool:
        """Tell whether what was decided can answer this, too."""
        return isinstance(self._checked(decision.candidate, turn, sized=True), Decision)

    def check_swap(self, chain: Chain, turn: Turn, model: str) -> str:
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
        if isinstance(found, Refused):
            self.observe(constraint_failure(found, turn.session_id, chain.sticky))
            raise SwapRefused(found)
        return str(name)

    def after_failure(
        self, chain: Chain, turn: Turn, decision: Decision, error: InterlinguaError, *, sized: bool = True
    ) -> Decision | None:
        """Return the next allowed model after an overload or a rate limit, or None: the error stands.

        Allowed are the policy's `fallbacks`, in their order, that were not tried yet and can answer.
        """
        if not isinstance(error, (OverloadedError, RateLimitError)):
            return None
        why = Failure(capability="provider", reason=f"{type(error).__name__}: {error.message}")
        refused = [*decision.refused, Refused(candidate=decision.candidate, model=decision.model, failures=(why,))]
        tried = {one.model for one in refused}
        for model in chain.policy.fallbacks:
            candidate = attrs.evolve(decision.candidate, model=model, reason="fallback after a failure of the service")
            found = self._checked(candidate, turn, sized=sized)
            if found.model in tried:
                continue
            if isinstance(found, Decision):
                return attrs.evolve(found, refused=tuple(refused))
            self.observe(constraint_failure(found, turn.session_id, chain.sticky))
            refused.append(found)
        return None

    def estimate(self, model: ModelId, turn: Turn) -> int:
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

    def _checked(self, candidate: Candidate, turn: Turn, *, sized: bool) -> Decision | Refused:
        try:
            name = self._id(candidate.model)
            provider: Provider = self.registry.provider(name.provider)
        except (CallerError, PluginError) as error:
            failure = Failure(capability="provider", reason=error.message)
            return Refused(candidate=candidate, model=candidate.model, failures=(failure,))
        can = provider.capabilities(name.name, _options(name, turn.options))
        found = failures(turn.needs, can, partial(self.estimate, name, turn) if sized else None)
        if found:
            return Refused(candidate=candidate, model=str(name), failures=tuple(found))
        return Decision(candidate=candidate, model=str(name))

    def _id(self, model: str) -> ModelId:
        return self.registry.resolve(model)


def _options(model: ModelId, options: Mapping[str, Any]) -> AdapterOptions:
    return AdapterOptions(model=model.name, **{name: options[name] for name in _OPTIONS if options.get(name)})

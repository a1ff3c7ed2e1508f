"""Routing policies, their stored JSON, and the errors for proposals that cannot answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from interlingua import CallerError
from interlingua.errors import DecodeError
from interlingua.plugins import explain_arguments
from interlingua.types import RoutingMode, SideEffects

MANUAL_REASON = "the session's model was chosen by hand"


class ChainPolicy(StrEnum):
    """The policies of the chain, in the order in which they are consulted."""

    PER_MESSAGE_OVERRIDE = "per_message_override"
    MANUAL_STICKY = "manual_sticky"
    RULE = "rule"
    PATTERN = "pattern"
    DELEGATE_REQUEST = "delegate_request"
    WORKSPACE_DEFAULT = "workspace_default"
    GLOBAL_DEFAULT = "global_default"

    @property
    def mode(self) -> RoutingMode:
        """The coarse class that a message's record keeps; both defaults become DEFAULT."""
        return MODES[self]


MODES = {
    ChainPolicy.PER_MESSAGE_OVERRIDE: RoutingMode.OVERRIDE,
    ChainPolicy.MANUAL_STICKY: RoutingMode.MANUAL,
    ChainPolicy.RULE: RoutingMode.RULE,
    ChainPolicy.PATTERN: RoutingMode.PATTERN,
    ChainPolicy.DELEGATE_REQUEST: RoutingMode.DELEGATE,
    ChainPolicy.WORKSPACE_DEFAULT: RoutingMode.DEFAULT,
    ChainPolicy.GLOBAL_DEFAULT: RoutingMode.DEFAULT,
}


def _side_effects(names: Iterable[str]) -> tuple[SideEffects, ...]:
    try:
        return tuple(map(SideEffects, names))
    except ValueError as error:
        raise DecodeError(f"side effects are {', '.join(SideEffects)}: {error}", path="side_effects") from error


@explain_arguments()
@attrs.frozen(kw_only=True)
class RouteCondition:
    """Conditions of a rule, which must all hold; a rule without conditions always matches.

    Attributes:
        text: regular expression searched in the user's last text, letter case ignored.
        images: True: the messages contain images; False: they contain no images.
        tools: True: tools are offered; False: no tools are offered.
        side_effects: a tool of one of these classes is offered.
        min_tokens: least estimated input tokens, by the rule's own model.
        max_tokens: most estimated input tokens, by the rule's own model.
    """

    text: str | None = attrs.field(default=None)
    images: bool | None = None
    tools: bool | None = None
    side_effects: tuple[SideEffects, ...] = attrs.field(default=(), converter=_side_effects)
    min_tokens: int | None = None
    max_tokens: int | None = None

    @text.validator
    def _compiles(self, _attribute: attrs.Attribute[str | None], value: str | None) -> None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise DecodeError(f"{value!r} is not a regular expression: {error}", path="when.text") from error


@explain_arguments()
@attrs.frozen(kw_only=True)
class RoutingRule:
    """A configured rule: the first one that matches proposes its model.

    Attributes:
        name: name in the record (`rule_name`).
        model: canonical model id or alias.
        when: its conditions.
    """

    name: str = attrs.field()
    model: str
    when: RouteCondition = RouteCondition()

    @name.validator
    def _needs_name(self, _field: object, value: object) -> None:
        if not isinstance(value, str) or not value:
            raise DecodeError("a rule needs a name", path="name")


def _rules(value: Iterable[RoutingRule]) -> tuple[RoutingRule, ...]:
    return tuple(value)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _tool_models(value: Mapping[str, Iterable[str]]) -> Mapping[SideEffects, tuple[str, ...]]:
    return dict(zip(_side_effects(value), map(_names, value.values()), strict=True))


def _places() -> dict[str, str]:
    fallback = dict.fromkeys(("on", "rest", "rest_after"), "pass it to the client: Client(…, fallback=Fallback({}=…))")
    return fallback | {"model": "pass it to the session: Session.open(…, model=…)", "models": "use fallbacks=…"}


@explain_arguments(places=_places)
@attrs.frozen(kw_only=True)
class RoutingPolicy:
    """The routing policy of a session; models are canonical ids or aliases.

    Attributes:
        rules: tried in order.
        min_confidence: a pattern's recommendation below this is not followed, 0 to 1.
        workspace_default: used when nothing before it decides.
        global_default: used when the workspace has none.
        tool_models: class of side effects -> the only models that may be offered tools of that class, as canonical ids
            or patterns (`openai:*`); other classes may be offered to all models.
        fallbacks: asked in order when the service of the chosen model fails (`interlingua.fallback.Fallback`); empty:
            no fallback.
        manual_reason: why the session's own model was chosen, repeated in each record it decides.
        extra: fields written by a newer version.
    """

    rules: tuple[RoutingRule, ...] = attrs.field(default=(), converter=_rules)
    min_confidence: float = 0.5
    workspace_default: str | None = None
    global_default: str | None = None
    tool_models: Mapping[SideEffects, tuple[str, ...]] = attrs.field(factory=dict, converter=_tool_models)
    fallbacks: tuple[str, ...] = attrs.field(default=(), converter=_names)
    manual_reason: str = MANUAL_REASON
    extra: Mapping[str, Any] = attrs.field(factory=dict)


def encode_policy(policy: RoutingPolicy) -> dict[str, Any]:
    """Return a policy as JSON, without fields that have their default."""
    written = {**policy.extra, **_differing(policy)}
    written.pop("extra", None)
    written.pop("tool_models", None)
    if policy.tool_models:
        written["tool_models"] = {str(effects): list(models) for effects, models in policy.tool_models.items()}
    if policy.rules:
        written["rules"] = [{**_differing(rule), "when": _differing(rule.when)} for rule in policy.rules]
    if policy.fallbacks:
        written["fallbacks"] = list(policy.fallbacks)
    return written


def decode_policy(data: Mapping[str, Any] | None) -> RoutingPolicy:
    """Read a policy; null means an empty one.

    Raises:
        DecodeError: a rule or a field is invalid; `path` is its place.
    """
    given = dict(data or {})
    known = {name: given.pop(name) for name in attrs.fields_dict(RoutingPolicy) if name in given}
    known.pop("extra", None)
    try:
        rules = [_rule(rule, f"rules[{number}]") for number, rule in enumerate(known.pop("rules", ()))]
        return RoutingPolicy(rules=rules, extra=given, **known)
    except TypeError as error:
        raise DecodeError(f"a routing policy cannot be read: {error}") from error


def _rule(data: Any, path: str) -> RoutingRule:
    if not isinstance(data, Mapping) or not {"name", "model"} <= data.keys():
        raise DecodeError("a rule is an object with name and model", path=path)
    try:
        return RoutingRule(name=data["name"], model=data["model"], when=RouteCondition(**data.get("when", {})))
    except TypeError as error:
        raise DecodeError(f"a rule's conditions cannot be read: {error}", path=f"{path}.when") from error


def _differing(value: Any) -> dict[str, Any]:
    fields = attrs.fields(type(value))
    return {field.name: getattr(value, field.name) for field in fields if getattr(value, field.name) != field.default}


@attrs.frozen(kw_only=True)
class ConstraintFailure:
    """One capability that a turn needs and a model lacks.

    Attributes:
        capability: the field of `ModelCapabilities`, or `provider` if the provider is not available.
        reason: reason for people; it follows "Cannot swap to X: ".
    """

    capability: str
    reason: str


@attrs.frozen(kw_only=True)
class Candidate:
    """A model that one policy proposes.

    Attributes:
        policy: which link of the chain.
        model: id or alias, as it was set.
        reason: one sentence for a person.
        rule_name: name of the rule, in mode RULE.
        confidence: confidence of the pattern, in mode PATTERN.
    """

    policy: ChainPolicy
    model: str
    reason: str
    rule_name: str | None = None
    confidence: float | None = None


@attrs.frozen(kw_only=True)
class RefusedCandidate:
    """A candidate that cannot answer, with its model's canonical id if it has one, and the reasons."""

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
    """Return a refusal as a sentence, with the model's name as the user wrote it."""
    return f"Cannot swap to {refused.candidate.model}: {refused.why}. Active model unchanged."


class SwapRefusedError(CallerError):
    """A model that was requested by name cannot continue the session; nothing changed. `failures` has the reasons."""

    def __init__(self, refused: RefusedCandidate) -> None:
        super().__init__(refusal_sentence(refused))
        self.refused = (refused,)
        self.failures = refused.failures


class NoRouteError(CallerError):
    """No policy proposed a model that can answer; `refused` holds those that cannot."""

    def __init__(self, refused: tuple[RefusedCandidate, ...]) -> None:
        tried = "; ".join(dict.fromkeys(f"{one.model}: {one.why}" for one in refused))  # two policies may name one
        hint = (
            "pass model= to Session.open or to this message, switch the session to one, or set a default in its policy"
        )
        super().__init__(f"no model can answer: {tried}" if tried else f"no model: {hint}")
        self.refused = refused

"""Routing policies: the chain's links, rules, defaults and fallbacks, and their stored JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from interlingua.errors import DecodeError
from interlingua.types import RoutingMode

MANUAL_REASON = "the session's model was chosen by hand"


class ChainPolicy(StrEnum):
    """The links of the chain, in the order they are asked (seed 003 §4.3, `RoutingMode`)."""

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
        return _MODES[self]


_MODES = {
    ChainPolicy.PER_MESSAGE_OVERRIDE: RoutingMode.OVERRIDE,
    ChainPolicy.MANUAL_STICKY: RoutingMode.MANUAL,
    ChainPolicy.RULE: RoutingMode.RULE,
    ChainPolicy.PATTERN: RoutingMode.PATTERN,
    ChainPolicy.DELEGATE_REQUEST: RoutingMode.DELEGATE,
    ChainPolicy.WORKSPACE_DEFAULT: RoutingMode.DEFAULT,
    ChainPolicy.GLOBAL_DEFAULT: RoutingMode.DEFAULT,
}


@attrs.frozen(kw_only=True)
class When:
    """Conditions of a rule; those given must all hold, and a rule without any always matches.

    Attributes:
        text: regular expression searched in the user's last text, letter case ignored.
        images: True: what is sent holds images; False: it holds none.
        tools: True: tools are offered; False: none are.
        min_tokens: least estimated input tokens, by the rule's own model.
        max_tokens: most estimated input tokens, by the rule's own model.
    """

    text: str | None = attrs.field(default=None)
    images: bool | None = None
    tools: bool | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None

    @text.validator
    def _compiles(self, _attribute: attrs.Attribute[str | None], value: str | None) -> None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise DecodeError(f"{value!r} is no regular expression: {error}", path="when.text") from error


@attrs.frozen(kw_only=True)
class Rule:
    """A configured rule: the first one that matches proposes its model.

    Attributes:
        name: for the record (`rule_name`).
        model: canonical model id or alias.
        when: its conditions.
    """

    name: str
    model: str
    when: When = When()


def _rules(value: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(value)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class RoutingPolicy:
    """What a session's policy says; models are canonical ids or aliases.

    Attributes:
        rules: asked in order.
        min_confidence: a pattern's recommendation below this is not followed, 0 to 1.
        workspace_default: used when nothing before it decides.
        global_default: used when the workspace has none.
        fallbacks: tried in order when the chosen model is overloaded or rate limited; empty: no fallback.
        manual_reason: why the session's own model was chosen, repeated in each record it decides.
        extra: fields written by a newer version.
    """

    rules: tuple[Rule, ...] = attrs.field(default=(), converter=_rules)
    min_confidence: float = 0.5
    workspace_default: str | None = None
    global_default: str | None = None
    fallbacks: tuple[str, ...] = attrs.field(default=(), converter=_names)
    manual_reason: str = MANUAL_REASON
    extra: Mapping[str, Any] = attrs.field(factory=dict)


def encode_policy(policy: RoutingPolicy) -> dict[str, Any]:
    """Return a policy as JSON; what has its default is left out."""
    written = {**policy.extra, **_differing(policy)}
    written.pop("extra", None)
    if policy.rules:
        written["rules"] = [{**_differing(rule), "when": _differing(rule.when)} for rule in policy.rules]
    if policy.fallbacks:
        written["fallbacks"] = list(policy.fallbacks)
    return written


def decode_policy(data: Mapping[str, Any] | None) -> RoutingPolicy:
    """Read a policy; None is the empty one.

    Raises:
        DecodeError: a rule or a field is not what it should be; `path` names it.
    """
    given = dict(data or {})
    known = {name: given.pop(name) for name in attrs.fields_dict(RoutingPolicy) if name in given}
    known.pop("extra", None)
    try:
        rules = [_rule(rule, f"rules[{number}]") for number, rule in enumerate(known.pop("rules", ()))]
        return RoutingPolicy(rules=rules, extra=given, **known)
    except TypeError as error:
        raise DecodeError(f"a routing policy cannot be read: {error}") from error


def _rule(data: Any, path: str) -> Rule:
    if not isinstance(data, Mapping) or not {"name", "model"} <= data.keys():
        raise DecodeError("a rule is an object with name and model", path=path)
    try:
        return Rule(name=data["name"], model=data["model"], when=When(**data.get("when", {})))
    except TypeError as error:
        raise DecodeError(f"a rule's conditions cannot be read: {error}", path=f"{path}.when") from error


def _differing(value: Any) -> dict[str, Any]:
    fields = attrs.fields(type(value))
    return {field.name: getattr(value, field.name) for field in fields if getattr(value, field.name) != field.default}

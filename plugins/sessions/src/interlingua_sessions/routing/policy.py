"""The policy chain of seed 003 §4.3, and what a session's own policy says of it: rules, defaults, fallbacks.

Never decides and never asks a provider anything. The chain and the session come in; `stored` makes JSON of a policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from interlingua.errors import DecodeError
from interlingua.types.messages import RoutingMode

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

"""Options for reasoning of each maker's models (WIRE.md, Reasoning)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from interlingua.plugins import FrozenDict, Loss, budget_as_effort, nearest_effort, option_loss
from interlingua.types import Message, RequestOptions
from interlingua_bedrock.models import Family

_FEW_EFFORTS = ("low", "medium", "high")
_ASKED = ("thinking", "thinking_budget", "effort")


class ReasoningConfig(NamedTuple):
    """The parts of a request about thinking.

    Attributes:
        fields: members of `additionalModelRequestFields`.
        effort: the effort for `outputConfig`.
        refuses_sampling: the model accepts no sampling parameters with these.
        bare: places of the messages to send without thinking.
    """

    fields: dict[str, Any]
    effort: str | None = None
    refuses_sampling: bool = False
    bare: Sequence[int] = ()


def to_wire_reasoning(
    messages: Sequence[Message],
    options: RequestOptions,
    facts: FrozenDict,
    family: Family,
    losses: list[Loss],
    *,
    own_thinking: bool,
) -> ReasoningConfig:
    """Return the parts of the request for thinking, its budget and its effort.

    Args:
        messages: the projected conversation.
        options: the request's options.
        facts: the facts about the model.
        family: how models of its maker take options.
        losses: receives the losses.
        own_thinking: the caller set the member `thinking` of Claude's own fields.

    Raises:
        CapabilityError: `max_tokens` is below the smallest budget.
    """
    asked = [name for name in _ASKED if getattr(options, name) is not None]
    if family.reasoning == "claude":
        return _claude(messages, options, facts, losses, own_thinking=own_thinking)
    if not asked:
        return ReasoningConfig({})
    if not family.reasoning:
        reason = "no field for it is known for this model; name the model's own in additionalModelRequestFields"
        losses.append(option_loss(asked[0], "dropped", reason))
        return ReasoningConfig({})
    options = budget_as_effort(options, losses)
    off = options.thinking is False or options.effort == "none"
    wanted = options.effort or "medium"
    if family.reasoning == "nova":
        if off:
            return ReasoningConfig({"reasoningConfig": {"type": "disabled"}})
        effort = nearest_effort(wanted, _FEW_EFFORTS, losses)
        return ReasoningConfig({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}})
    if options.thinking is False:
        losses.append(option_loss("thinking", "dropped", "this model always thinks; sent with low effort instead"))
        return ReasoningConfig({_FIELDS[family.reasoning]: "low"})
    return ReasoningConfig({_FIELDS[family.reasoning]: nearest_effort(wanted, _FEW_EFFORTS, losses)})


_FIELDS = {"effort": "reasoning_effort", "config": "reasoning_config"}


def _claude(
    messages: Sequence[Message],
    options: RequestOptions,
    facts: FrozenDict,
    losses: list[Loss],
    *,
    own_thinking: bool,
) -> ReasoningConfig:
    from interlingua_anthropic.claude_thinking import BINDING_BETA, DROPPING, plan_thinking  # noqa: PLC0415  for Claude alone

    plan = plan_thinking(messages, options, facts, options.max_tokens, losses)
    fields: dict[str, Any] = {}
    adaptive = plan.thinking is None or plan.thinking["type"] == "adaptive"
    if facts.get("thinking_bound_to_prefix") and adaptive and not own_thinking:
        plan = plan._replace(thinking={**(plan.thinking or {"type": "adaptive"}), **DROPPING})
        fields["anthropic_beta"] = [BINDING_BETA]
    if plan.thinking is not None:
        fields["thinking"] = plan.thinking
    return ReasoningConfig(fields, plan.effort, refuses_sampling=plan.thinks(facts), bare=plan.bare)

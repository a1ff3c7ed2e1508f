"""Options for reasoning of each maker's models (WIRE.md, Reasoning)."""

from __future__ import annotations

from typing import Any, NamedTuple

from interlingua.errors import CapabilityError
from interlingua.plugins import FrozenDict, Loss, nearest_effort, option_loss
from interlingua.types import RequestOptions
from interlingua_bedrock.models import Family

MIN_BUDGET = 1024
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_FEW_EFFORTS = ("low", "medium", "high")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
_ANY_THINKING = ("adaptive", "disabled", "enabled")
_ASKED = ("thinking", "thinking_budget", "effort")


class ReasoningConfig(NamedTuple):
    """The parts of a request about thinking.

    Attributes:
        fields: members of `additionalModelRequestFields`.
        effort: the effort for `outputConfig`.
        refuses_sampling: the model accepts no sampling parameters with these.
    """

    fields: dict[str, Any]
    effort: str | None = None
    refuses_sampling: bool = False


def to_wire_reasoning(
    options: RequestOptions, facts: FrozenDict, family: Family, losses: list[Loss], *, forced: bool
) -> ReasoningConfig:
    """Return the parts of the request for thinking, its budget and its effort.

    Raises:
        CapabilityError: `max_tokens` is below the smallest budget.
    """
    asked = [name for name in _ASKED if getattr(options, name) is not None]
    if family.reasoning == "claude":
        return _claude(options, facts, losses, forced=forced)
    if not asked:
        return ReasoningConfig({})
    if not family.reasoning:
        reason = "no field for it is known for this model; name the model's own in additionalModelRequestFields"
        losses.append(option_loss(asked[0], "dropped", reason))
        return ReasoningConfig({})
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "this model takes an effort, no budget"))
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


def _claude(options: RequestOptions, facts: FrozenDict, losses: list[Loss], *, forced: bool) -> ReasoningConfig:
    thinking, effort = _claude_thinking(options, facts, losses)
    if thinking is not None and thinking["type"] == "enabled" and forced:
        losses.append(option_loss("thinking", "dropped", "a forced tool choice is refused together with it"))
        thinking = None
    thinks = thinking["type"] != "disabled" if thinking else facts.get("thinking_omitted") in ("always", "on")
    return ReasoningConfig({"thinking": thinking} if thinking is not None else {}, effort, refuses_sampling=thinks)


def _claude_thinking(
    options: RequestOptions, facts: FrozenDict, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    accepted = tuple(facts.get("thinking", _ANY_THINKING))
    effort: str | None = options.effort
    if effort is not None and effort != "none":
        effort = nearest_effort(effort, [name for name in _EFFORTS if facts.get(f"effort_{name}", True)], losses)
    if options.thinking is False or effort == "none":
        return _off(None if effort == "none" else effort, accepted, facts, losses)
    wants = options.thinking or options.thinking_budget is not None
    if "adaptive" not in accepted:
        if not wants and effort is None:
            return None, None
        if "enabled" not in accepted:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
            return None, None
        return _budgeted(options, effort, losses), None
    if options.thinking_budget is not None and "enabled" in accepted:
        return _budgeted(options, effort, losses), effort
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "this model decides its budget itself"))
    return ({"type": "adaptive", "display": "summarized"} if wants else None), effort


def _off(
    effort: str | None, accepted: tuple[str, ...], facts: FrozenDict, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    if "disabled" in accepted:
        if effort is not None and "adaptive" not in accepted:
            losses.append(option_loss("effort", "dropped", "this model has an effort only where it thinks"))
            return {"type": "disabled"}, None
        most = facts.get("thinking_disabled_max_effort", "high")  # (WIRE.md, Reasoning)
        return {"type": "disabled"}, effort and nearest_effort(effort, _EFFORTS[: _EFFORTS.index(most) + 1], losses)
    if "between_tools" in accepted:
        losses.append(option_loss("thinking", "rewritten", "this model's least is short notes between tool calls"))
        return {"type": "between_tools"}, effort
    losses.append(option_loss("thinking", "dropped", "this model always thinks; sent with low effort instead"))
    return None, effort or "low"


def _budgeted(options: RequestOptions, effort: str | None, losses: list[Loss]) -> dict[str, Any]:
    most, wanted = options.max_tokens, options.thinking_budget
    if most is not None and most <= MIN_BUDGET:
        text = f"max_tokens={most} leaves no tokens for thinking; set it above {MIN_BUDGET}"
        raise CapabilityError(text, path="options.max_tokens")
    if wanted is None:  # half of the answer at most, or nothing would be left for the text
        budget = _BUDGETS[effort or "medium"]
        return {"type": "enabled", "budget_tokens": max(min(budget, most // 2), MIN_BUDGET) if most else budget}
    budget = max(min(wanted, most - 1) if most else wanted, MIN_BUDGET)
    if budget != wanted:
        reason = f"a budget is at least {MIN_BUDGET} and below max_tokens; sent as {budget}"
        losses.append(option_loss("thinking_budget", "rewritten", reason))
    return {"type": "enabled", "budget_tokens": budget}

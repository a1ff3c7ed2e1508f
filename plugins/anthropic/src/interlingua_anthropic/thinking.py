"""How hard to think -> `thinking` and `output_config.effort`, by what the model accepts (sheet anthropic §5).

Never decides what thinking may be sent back (projection and `binding` do). `to_wire` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.errors import CapabilityError
from interlingua.json import FrozenDict
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions

MIN_BUDGET = 1024  # sheet §5
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
_ANY = ("adaptive", "disabled", "enabled")


def to_wire_thinking(
    options: AdapterOptions, facts: FrozenDict, max_tokens: int, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return (`thinking`, `effort`), each None where nothing is to be sent.

    Raises:
        CapabilityError: `max_tokens` leaves no room for the smallest budget.
    """
    accepted = tuple(facts.get("thinking", _ANY))
    effort = options.effort
    if effort == "minimal":
        losses.append(option_loss("effort", "rewritten", "this wire's lowest effort is low"))
        effort = "low"
    if effort == "xhigh" and facts.get("effort_xhigh") is False:
        losses.append(option_loss("effort", "rewritten", "this model has no effort xhigh; high is sent"))
        effort = "high"
    if options.thinking is False or effort == "none":
        return _off(None if effort == "none" else effort, accepted, facts, losses)
    wants = options.thinking or options.thinking_budget is not None
    if "adaptive" not in accepted:
        if not wants and effort is None:
            return None, None
        if "enabled" not in accepted:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
            return None, None
        return _budgeted(options, effort, max_tokens, losses), None
    if options.thinking_budget is not None and "enabled" in accepted:
        return _budgeted(options, effort, max_tokens, losses), effort
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
        if facts.get("thinking_disabled_max_effort") == "high" and effort in ("xhigh", "max"):
            losses.append(option_loss("effort", "rewritten", "without thinking this model takes effort up to high"))
            effort = "high"
        return {"type": "disabled"}, effort
    if "between_tools" in accepted:
        losses.append(option_loss("thinking", "rewritten", "this model's least is short notes between tool calls"))
        return {"type": "between_tools"}, effort
    losses.append(option_loss("thinking", "dropped", "this model always thinks; sent with low effort instead"))
    return None, effort or "low"


def _budgeted(options: AdapterOptions, effort: str | None, max_tokens: int, losses: list[Loss]) -> dict[str, Any]:
    if max_tokens <= MIN_BUDGET:
        raise CapabilityError(
            f"max_tokens={max_tokens} leaves no room for thinking; give more than {MIN_BUDGET}",
            path="options.max_tokens",
        )
    asked = options.thinking_budget
    if asked is None:  # half of the answer at most, or nothing would be left to say it
        budget = max(min(_BUDGETS[effort or "medium"], max_tokens // 2), MIN_BUDGET)
    else:
        budget = max(min(asked, max_tokens - 1), MIN_BUDGET)
        if budget != asked:
            reason = f"a budget is at least {MIN_BUDGET} and below max_tokens; sent as {budget}"
            losses.append(option_loss("thinking_budget", "rewritten", reason))
    return {"type": "enabled", "budget_tokens": budget}

"""How hard to think -> `thinking` and `output_config.effort`, by what the model accepts (sheet anthropic §5).

Never decides what thinking may be sent back (projection and `binding` do). `to_wire` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.errors import CapabilityError
from interlingua.jsontext import FrozenDict
from interlingua.options import AdapterOptions
from interlingua.wire import Loss

MIN_BUDGET = 1024  # sheet §5
_BUDGETS = {"low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
_ANY = ("adaptive", "disabled", "enabled")


def option_loss(name: str, verdict: Any, reason: str) -> Loss:
    """A ledger line about an option."""
    return Loss(path=f"options.{name}", block_type="option", verdict=verdict, reason=reason)


def to_wire_thinking(
    options: AdapterOptions, facts: FrozenDict, max_tokens: int, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return (`thinking`, `effort`), each None where nothing is to be sent.

    Raises:
        CapabilityError: `max_tokens` leaves no room for the smallest budget.
    """
    accepted = tuple(facts.get("thinking", _ANY))
    if options.thinking is False or options.effort == "none":
        return _off(accepted, losses)
    effort = options.effort
    if effort == "minimal":
        losses.append(option_loss("effort", "rewritten", "this wire's lowest effort is low"))
        effort = "low"
    wants = options.thinking or options.thinking_budget is not None
    if "adaptive" not in accepted:
        if not wants and effort is None:
            return None, None
        if "enabled" not in accepted:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
            return None, None
        return _budgeted(options, effort, max_tokens), None
    if options.thinking_budget is not None and "enabled" in accepted:
        return _budgeted(options, effort, max_tokens), effort
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "this model decides its budget itself"))
    return ({"type": "adaptive", "display": "summarized"} if wants else None), effort


def _off(accepted: tuple[str, ...], losses: list[Loss]) -> tuple[dict[str, Any] | None, str | None]:
    if "disabled" in accepted:
        return {"type": "disabled"}, None
    losses.append(option_loss("thinking", "dropped", "this model always thinks; sent with low effort instead"))
    return None, "low"


def _budgeted(options: AdapterOptions, effort: str | None, max_tokens: int) -> dict[str, Any]:
    budget = options.thinking_budget or _BUDGETS.get(effort or "medium", 8192)
    budget = max(min(budget, max_tokens - 1), MIN_BUDGET)
    if budget >= max_tokens:
        raise CapabilityError(
            f"max_tokens={max_tokens} leaves no room for thinking; give more than {MIN_BUDGET}", path="options.max_tokens"
        )
    return {"type": "enabled", "budget_tokens": budget}

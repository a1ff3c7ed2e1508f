"""Effort, thinking and sampling: what a model takes together (sheets openai_responses §2, openai_chat §2).

Never guesses about a model whose facts are unknown: what was asked is sent.
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.plugins import Loss, option_loss
from interlingua.types import AdapterOptions

_THINKS_BY_DEFAULT = ("on", "always")
_ENOUGH = "medium"  # the effort the service itself takes where a model thinks by default


def to_wire_reasoning(options: AdapterOptions, facts: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """Return the `reasoning` object, empty when nothing of it was asked; asking for thinking asks to see a summary."""
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "this wire has efforts, not budgets"))
    kind = facts.get("reasoning")
    if kind == "none":
        for name in ("effort", "thinking"):
            if getattr(options, name) not in (None, "none", False):
                losses.append(option_loss(name, "dropped", "this model does not reason"))
        return {}
    effort = _effort(options, facts, losses)
    reasoning: dict[str, Any] = {} if effort is None else {"effort": effort}
    if options.thinking and effort != "none":
        reasoning["summary"] = "auto"
    return reasoning


def _effort(options: AdapterOptions, facts: Mapping[str, Any], losses: list[Loss]) -> str | None:
    kind = facts.get("reasoning")
    fixed = facts.get("reasoning_effort_fixed")
    wanted: str | None = "none" if options.thinking is False else options.effort
    if wanted is None:
        return _ENOUGH if options.thinking and kind == "off" else None
    name = "thinking" if options.thinking is False else "effort"
    if fixed is not None and wanted != fixed:
        losses.append(option_loss(name, "dropped", f"this model's effort is always {fixed}"))
        return None
    if wanted == "none" and kind == "always":
        losses.append(option_loss(name, "dropped", "this model always reasons"))
        return None
    return wanted


def to_wire_sampling(
    options: AdapterOptions, facts: Mapping[str, Any], effort: str | None, losses: list[Loss]
) -> dict[str, float]:
    """Return temperature and top_p; a model refuses them while it reasons (REGRESSIONS case 32: 0 is a value)."""
    reasons = effort != "none" if effort is not None else facts.get("reasoning") in _THINKS_BY_DEFAULT
    kept: dict[str, float] = {}
    for name in ("temperature", "top_p"):
        value = getattr(options, name)
        if value is None:
            continue
        if facts.get("sampling") is False:
            losses.append(option_loss(name, "dropped", "this model refuses sampling parameters"))
        elif reasons and facts.get("reasoning") != "none":
            losses.append(option_loss(name, "dropped", "sampling parameters are refused while reasoning"))
        else:
            kept[name] = value
    return kept

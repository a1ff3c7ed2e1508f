"""How hard to think -> `thinkingConfig`, a budget or a level by what the model takes (sheet gemini §3).

Never decides what thinking may be sent back (projection does). `generation` comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions
from interlingua_google.catalogue import facts_of, generation_of

_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
_USUAL = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
DYNAMIC = -1


def to_wire_thinking(options: AdapterOptions, losses: list[Loss]) -> dict[str, Any] | None:
    """Return `thinkingConfig`, or None where the model's default is wanted. Never both a budget and a level (§3)."""
    budget, effort = options.thinking_budget, options.effort
    off = options.thinking is False or effort == "none" or (options.thinking is None and budget == 0)
    if not off and options.thinking is None and budget is None and effort is None:
        return None
    kind = facts_of(options.model).get("thinking") or _kind_by_name(options)
    if kind == "none":
        if not off:
            losses.append(option_loss("thinking", "dropped", "this model does not think"))
        return None
    if kind == "budget":
        return _budgeted(options, losses, off=off)
    return _levelled(options, losses, off=off)


def _kind_by_name(options: AdapterOptions) -> str:
    generation = generation_of(options.model)
    if generation is None:  # the name tells nothing: a budget is taken by both generations where one is given
        return "level" if options.thinking_budget is None else "budget"
    return "none" if generation < 2 else "budget" if generation == 2 else "level"


def _budgeted(options: AdapterOptions, losses: list[Loss], *, off: bool) -> dict[str, Any]:
    if off:
        if facts_of(options.model).get("thinking_off", True):
            return {"thinkingBudget": 0}
        losses.append(option_loss("thinking", "rewritten", "this model always thinks; sent with its smallest budget"))
        return {"thinkingBudget": 128}
    made: dict[str, Any] = {}
    if options.thinking or options.thinking_budget is not None:
        made["includeThoughts"] = True
    if options.thinking_budget is not None:
        made["thinkingBudget"] = options.thinking_budget
    else:
        made["thinkingBudget"] = DYNAMIC if options.effort is None else _BUDGETS[options.effort]
    return made


def _levelled(options: AdapterOptions, losses: list[Loss], *, off: bool) -> dict[str, Any]:
    levels: tuple[str, ...] = tuple(facts_of(options.model).get("levels") or _USUAL)
    if off:
        reason = f"this model always thinks; sent with its lowest level, {levels[0]}"
        losses.append(option_loss("thinking", "rewritten", reason))
        return {"thinkingLevel": levels[0]}
    made: dict[str, Any] = {"includeThoughts": True} if options.thinking or options.thinking_budget is not None else {}
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "this model takes a level, not a budget"))
    if options.effort is not None:
        made["thinkingLevel"] = _nearest(options.effort, levels, losses)
    return made


def _nearest(effort: str, levels: tuple[str, ...], losses: list[Loss]) -> str:
    wanted = "XHIGH" if effort == "max" else effort.upper()
    place = _LEVELS.index(wanted)
    found = min(levels, key=lambda level: abs(_LEVELS.index(level) - place))
    if found != effort.upper():
        losses.append(option_loss("effort", "rewritten", f"this model has no level {effort}; sent as {found}"))
    return found

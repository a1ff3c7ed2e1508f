"""How hard to think, in the shape the service gives it.

Never decides a default: what was not asked is not sent.
The option writer comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.plugins.wire import Verdict
from interlingua.types.options import AdapterOptions
from interlingua_chat_completions.dialect import Dialect

_LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def to_wire_effort(
    options: AdapterOptions, dialect: Dialect, fields: dict[str, Any], lose: Callable[[str, Verdict, str], None]
) -> None:
    """Add the fields for effort, thinking on or off, and budget."""
    reasoning: dict[str, Any] = {}
    if options.effort is not None:
        effort = _nearest(options.effort, dialect.effort_values)
        if dialect.effort_shape == "none":
            lose("effort", "dropped", "this service has no effort setting")
        else:
            if effort != options.effort:
                lose("effort", "rewritten", f"this service has no effort {options.effort!r}; {effort!r} is sent")
            if dialect.effort_shape == "field":
                fields["reasoning_effort"] = effort
            else:
                reasoning["effort"] = effort
    if options.thinking is not None:
        _switch(options.thinking, dialect, fields, reasoning, lose)
    if dialect.thinking_members and options.thinking is not False:
        fields["thinking"] = {**fields.get("thinking", {}), **dialect.thinking_members}
    if options.thinking_budget is not None:
        if dialect.thinking_shape == "object":
            reasoning["max_tokens"] = options.thinking_budget
        else:
            lose("thinking_budget", "dropped", "this service takes no reasoning budget")
    if reasoning:
        fields["reasoning"] = reasoning


def _switch(
    wanted: bool,
    dialect: Dialect,
    fields: dict[str, Any],
    reasoning: dict[str, Any],
    lose: Callable[[str, Verdict, str], None],
) -> None:
    if dialect.thinking_shape == "type":
        fields["thinking"] = {"type": "enabled" if wanted else "disabled"}
    elif dialect.thinking_shape == "object":
        reasoning["enabled"] = wanted
    elif dialect.thinking_shape == "effort" and not wanted:
        fields["reasoning_effort"] = "none"
    elif dialect.thinking_shape != "effort":
        lose("thinking", "dropped", "this service cannot switch reasoning on or off")


def _nearest(effort: str, accepted: tuple[str, ...]) -> str:
    if not accepted or effort in accepted:
        return effort
    wanted = _LADDER.index(effort)
    return min(accepted, key=lambda name: (abs(_LADDER.index(name) - wanted), _LADDER.index(name)))

"""Write a request's options as body fields, with a loss where the service has no such option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, Verdict, dumps, option_loss
from interlingua.types import AdapterOptions
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.tools import strict_schema

Lose = Callable[[str, Verdict, str], None]
_LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def to_wire_options(options: AdapterOptions, dialect: Dialect, losses: list[Loss]) -> dict[str, bytes]:
    """Write everything but model, messages and tools; 0 is a value, None is not.

    Raises:
        CapabilityError: an answer schema for a service that does not enforce one.
    """

    def lose(name: str, verdict: Verdict, reason: str) -> None:
        losses.append(option_loss(name, verdict, reason))

    fields: dict[str, Any] = {}
    if options.max_tokens is not None:
        fields[dialect.max_tokens_field] = options.max_tokens
    _sampling(options, dialect, fields, lose)
    _stop(options, dialect, fields, lose)
    to_wire_effort(options, dialect, fields, lose)
    if options.response_schema is not None:
        fields["response_format"] = _response_format(options, dialect)
    if options.user_id is not None:
        if dialect.user_field is None:
            lose("user_id", "dropped", "this service has no field for the end user")
        else:
            fields[dialect.user_field] = options.user_id
    if options.stream:
        fields["stream"] = True
        if dialect.include_usage:
            fields["stream_options"] = {"include_usage": True}
    for name in [name for name in fields if name in dialect.stripped]:
        lose(name, "dropped", "this service refuses the field")
        del fields[name]
    return {name: dumps(value) for name, value in fields.items()}


def _sampling(options: AdapterOptions, dialect: Dialect, fields: dict[str, Any], lose: Lose) -> None:
    for name in ("temperature", "top_p"):
        value = getattr(options, name)
        if value is None:
            continue
        if not dialect.sampling:
            lose(name, "dropped", "this model takes no sampling options")
            continue
        if dialect.temperature_range is not None:
            low, high = dialect.temperature_range
            moved = min(max(value, low), high)
            if moved != value:
                lose(name, "rewritten", f"{value} is outside of what this service takes; {moved} is sent")
                value = moved
        fields[name] = value
    if options.top_k is not None:
        if dialect.top_k:
            fields["top_k"] = options.top_k
        else:
            lose("top_k", "dropped", "this service has no top_k")
    if options.seed is not None:
        if dialect.seed_field is None:
            lose("seed", "dropped", "this service has no seed")
        else:
            fields[dialect.seed_field] = options.seed


def _stop(options: AdapterOptions, dialect: Dialect, fields: dict[str, Any], lose: Lose) -> None:
    if not options.stop:
        return
    if not dialect.stop:
        lose("stop", "dropped", "this model takes no stop sequences")
        return
    kept = options.stop[: dialect.stop_limit]
    if len(kept) < len(options.stop):
        lose("stop", "rewritten", f"this service takes {len(kept)} stop sequences; the rest is left out")
    fields["stop"] = list(kept)


def _response_format(options: AdapterOptions, dialect: Dialect) -> dict[str, Any]:
    schema: Mapping[str, Any] = options.response_schema or {}
    if dialect.structured != "json_schema":
        hint = "; ask for any JSON with provider_options response_format" if dialect.structured == "json_object" else ""
        raise CapabilityError(
            f"this service does not enforce a schema on its answers{hint}", path="options.response_schema"
        )
    strict = strict_schema(schema)
    form: dict[str, Any] = {"name": options.response_name, "schema": schema if strict is None else strict}
    if strict is not None:
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}


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
        _switch_thinking(options.thinking, dialect, fields, reasoning, lose)
    if dialect.thinking_members and options.thinking is not False:
        fields["thinking"] = {**fields.get("thinking", {}), **dialect.thinking_members}
    if options.thinking_budget is not None:
        if dialect.thinking_shape == "object":
            reasoning["max_tokens"] = options.thinking_budget
        else:
            lose("thinking_budget", "dropped", "this service takes no reasoning budget")
    if reasoning:
        fields["reasoning"] = reasoning


def _switch_thinking(
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

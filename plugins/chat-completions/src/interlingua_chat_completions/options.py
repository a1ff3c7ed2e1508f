"""Write a request's options as body fields, with a loss for each option that the service lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from interlingua.errors import CapabilityError
from interlingua.plugins import Loss, budget_as_effort, dumps, nearest_effort, option_loss
from interlingua.types import RequestOptions
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.tools import to_wire_answer_schema

Verdict = Literal["dropped", "rewritten"]
Lose = Callable[[str, Verdict, str], None]


def to_wire_options(options: RequestOptions, dialect: Dialect, losses: list[Loss]) -> dict[str, bytes]:
    """Write the options other than model, messages and tools; 0 is sent, None is not.

    Raises:
        CapabilityError: the request has an answer schema and the service enforces no schema.
    """

    def lose(name: str, verdict: Verdict, reason: str) -> None:
        losses.append(option_loss(name, verdict, reason))

    fields: dict[str, Any] = {}
    if options.max_tokens is not None:
        fields[dialect.max_tokens_field] = at_least(options.max_tokens, dialect.least_tokens, losses)
    _sampling(options, dialect, fields, lose)
    _stop(options, dialect, fields, lose)
    to_wire_effort(options, dialect, fields, losses)
    if options.response_schema is not None:
        fields["response_format"] = _response_format(options, dialect, losses)
    if options.user_id is not None:
        if dialect.user_field is None:
            lose("user_id", "dropped", "this service has no field for the end user")
        elif dialect.user_length is not None and len(options.user_id) > dialect.user_length:
            lose("user_id", "dropped", f"longer than {dialect.user_length} characters")
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


def at_least(wanted: int, least: int, losses: list[Loss]) -> int:
    """Return the maximum length of the answer: as requested, or the least that the service accepts."""
    if wanted < least:
        losses.append(option_loss("max_tokens", "rewritten", f"the least this service takes is {least}; it is sent"))
    return max(wanted, least)


def _sampling(options: RequestOptions, dialect: Dialect, fields: dict[str, Any], lose: Lose) -> None:
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


def _stop(options: RequestOptions, dialect: Dialect, fields: dict[str, Any], lose: Lose) -> None:
    if not options.stop:
        return
    if not dialect.stop:
        lose("stop", "dropped", "this model takes no stop sequences")
        return
    kept = options.stop[: dialect.stop_limit]
    if len(kept) < len(options.stop):
        lose("stop", "rewritten", f"this service takes {len(kept)} stop sequences; the rest is left out")
    fields["stop"] = list(kept)


def _response_format(options: RequestOptions, dialect: Dialect, losses: list[Loss]) -> dict[str, Any]:
    if dialect.structured != "json_schema":
        hint = "; ask for any JSON with provider_options response_format" if dialect.structured == "json_object" else ""
        raise CapabilityError(
            f"this service does not enforce a schema on its answers{hint}", path="options.response_schema"
        )
    form = to_wire_answer_schema(options, losses, object_root=dialect.object_root, any_keyword=dialect.any_keyword)
    if not form["strict"]:
        del form["strict"]
    return {"type": "json_schema", "json_schema": form}


def is_to_stop(options: RequestOptions) -> bool:
    """Return whether the caller switches thinking off."""
    return options.thinking is False or options.effort == "none"


def is_thinking(options: RequestOptions, dialect: Dialect) -> bool:
    """Return False if the request switches thinking off or leaves it off; True for a model without a switch."""
    if not dialect.thinks_by_default and not options.thinking and options.effort is None:
        return False
    return dialect.thinking_shape == "none" or not is_to_stop(options)


def to_wire_effort(options: RequestOptions, dialect: Dialect, fields: dict[str, Any], losses: list[Loss]) -> None:
    """Add the fields for effort, thinking on or off, and budget; the effort `none` switches thinking off."""
    reasoning: dict[str, Any] = {}
    if dialect.thinking_shape != "object" and dialect.effort_shape != "none" and not is_to_stop(options):
        options = budget_as_effort(options, losses)
    if is_to_stop(options):
        _stop_thinking(options, dialect, fields, reasoning, losses)
    elif options.effort is not None:
        _add_effort(options.effort, "effort", dialect, fields, reasoning, losses)
    if options.thinking and not is_to_stop(options):
        _start_thinking(dialect, fields, reasoning, losses)
    if dialect.thinking_members and is_thinking(options, dialect):
        fields["thinking"] = {**fields.get("thinking", {}), **dialect.thinking_members}
    if options.thinking_budget is not None and not is_to_stop(options):
        _add_budget(options.thinking_budget, dialect, fields, reasoning, losses)
    if reasoning:
        fields["reasoning"] = reasoning


def _start_thinking(dialect: Dialect, fields: dict[str, Any], reasoning: dict[str, Any], losses: list[Loss]) -> None:
    if dialect.thinking_shape == "type":
        fields["thinking"] = {"type": "enabled"}
    elif dialect.thinking_shape == "flag":
        fields["enable_thinking"] = True
    elif dialect.thinking_shape == "object":
        reasoning["enabled"] = True
    elif dialect.thinking_shape == "none":
        losses.append(option_loss("thinking", "dropped", "this service cannot switch reasoning on or off"))


def _add_budget(
    budget: int, dialect: Dialect, fields: dict[str, Any], reasoning: dict[str, Any], losses: list[Loss]
) -> None:
    if dialect.thinking_shape == "object":
        reasoning["max_tokens"] = budget
    elif dialect.thinking_shape == "flag":
        fields["thinking_budget"] = budget
    else:
        losses.append(option_loss("thinking_budget", "dropped", "this service takes no reasoning budget"))


def _stop_thinking(
    options: RequestOptions, dialect: Dialect, fields: dict[str, Any], reasoning: dict[str, Any], losses: list[Loss]
) -> None:
    """Switch thinking off in the service's form, or request the least effort from a model that always thinks."""
    option = "thinking" if options.thinking is False else "effort"
    if option == "thinking" and options.effort not in (None, "none"):
        losses.append(option_loss("effort", "dropped", "thinking is switched off"))
    if options.thinking_budget is not None:
        losses.append(option_loss("thinking_budget", "dropped", "thinking is switched off"))
    if dialect.thinking_shape == "type":
        fields["thinking"] = {"type": "disabled"}
    elif dialect.thinking_shape == "flag":
        fields["enable_thinking"] = False
    elif dialect.thinking_shape == "object" and option == "thinking":
        reasoning["enabled"] = False
    elif dialect.thinking_shape == "effort":
        fields["reasoning_effort"] = "none"
    elif option == "effort" or dialect.effort_values:
        _add_effort("none", option, dialect, fields, reasoning, losses)
    else:
        losses.append(option_loss("thinking", "dropped", "this service cannot switch reasoning on or off"))


def _add_effort(
    wanted: str,
    option: str,
    dialect: Dialect,
    fields: dict[str, Any],
    reasoning: dict[str, Any],
    losses: list[Loss],
) -> None:
    if dialect.effort_shape == "none":
        losses.append(option_loss(option, "dropped", "this model has no effort setting"))
        return
    effort = nearest_effort(wanted, dialect.effort_values, losses, option) if dialect.effort_values else wanted
    if effort is None:
        return
    if dialect.effort_shape == "field":
        fields["reasoning_effort"] = effort
    else:
        reasoning["effort"] = effort

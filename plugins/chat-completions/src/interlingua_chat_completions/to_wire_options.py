"""A request's options to body fields, each with its loss where this service has no word for it.

Never drops what would deceive the caller: a schema or a forced tool that cannot be said is refused.
The request writer comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.json import dumps
from interlingua.plugins.wire import Loss, Verdict, option_loss
from interlingua.types.options import AdapterOptions
from interlingua_chat_completions.dialect import Dialect
from interlingua_chat_completions.strict import strict_schema
from interlingua_chat_completions.to_wire_effort import to_wire_effort

Lose = Callable[[str, Verdict, str], None]


def to_wire_options(options: AdapterOptions, dialect: Dialect, losses: list[Loss]) -> dict[str, bytes]:
    """Write everything but model, messages and tools; 0 is a value (REGRESSIONS case 32).

    Raises:
        CapabilityError: an answer schema was asked of a service that does not enforce one.
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

"""What a caller asks -> `options`, `think`, `format` and the rest of the body (sheet ollama §2, §3).

Never decides a default but one: a history that does not fit is an error, not a silent cut.
`to_wire` comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import CapabilityError
from interlingua.plugins.wire import Loss, option_loss
from interlingua.types.options import AdapterOptions, ToolChoice
from interlingua_ollama.catalogue import takes_levels_only

RUNTIME = frozenset(
    (
        "temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "num_predict", "num_ctx", "num_keep",
        "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty", "stop", "num_batch", "num_gpu",
        "main_gpu", "num_thread", "use_mmap", "draft_num_predict",
    )
)  # fmt: skip
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max"}


def to_wire_options(options: AdapterOptions, losses: list[Loss]) -> dict[str, Any]:
    """Return the body's fields besides model, messages and tools; 0 is a value (REGRESSIONS case 32).

    `provider_options` come last: names of runtime options, such as `num_ctx`, go into `options` (case 34).

    Raises:
        CapabilityError: a call was demanded, which this wire cannot say.
    """
    if options.tool_choice == "required" or isinstance(options.tool_choice, ToolChoice):
        raise CapabilityError("this wire cannot force a tool call", path="options.tool_choice")
    fields: dict[str, Any] = {"stream": options.stream, "truncate": False}
    think = _think(options, losses)
    if think is not None:
        fields["think"] = think
    if options.response_schema is not None:
        fields["format"] = options.response_schema
    for name in ("thinking_budget", "user_id", "parallel_tool_calls"):
        if getattr(options, name) is not None and getattr(options, name) is not True:
            losses.append(option_loss(name, "dropped", "this wire has no such option"))
    runtime = _runtime(options)
    _lay_over(options.provider_options, fields, runtime)
    if runtime:
        fields["options"] = runtime
    return fields


def _runtime(options: AdapterOptions) -> dict[str, Any]:
    asked = {
        "num_predict": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "seed": options.seed,
        "stop": list(options.stop) or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _lay_over(extra: Mapping[str, Any], fields: dict[str, Any], runtime: dict[str, Any]) -> None:
    for name, value in extra.items():
        if name == "options" and isinstance(value, Mapping):
            runtime.update(value)
        elif name in RUNTIME:
            runtime[name] = value
        else:
            fields[name] = value


def _think(options: AdapterOptions, losses: list[Loss]) -> bool | str | None:
    """Return `think`: a level, a switch, or None where nothing was asked."""
    if options.thinking is False or options.effort == "none":
        if not takes_levels_only(options.model):
            return False
        losses.append(option_loss("thinking", "rewritten", "this model cannot stop thinking; the lowest level is sent"))
        return "low"
    if options.effort is None:
        if not options.thinking:
            return None
        return "medium" if takes_levels_only(options.model) else True
    level = _LEVELS[options.effort]
    if level == "max" and takes_levels_only(options.model):
        level = "high"
    if level != options.effort:
        reason = f"there is no level {options.effort!r} here; {level!r} is sent"
        losses.append(option_loss("effort", "rewritten", reason))
    return level

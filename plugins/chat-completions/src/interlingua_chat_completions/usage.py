"""Token counts from the wire's several spellings to one inclusive Usage (REGRESSIONS cases 18, 19).

Never adds up chunks (counts are totals) and never turns "not reported" into 0.
The reader of answers comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.types.messages import Usage

_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_token_details", "cached_tokens"),  # sheet mistral §5
    ("prompt_cache_hit_tokens",),
    ("num_cached_tokens",),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
)
_WRITTEN = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))
_WRITTEN_1H = (("cache_creation", "ephemeral_1h_input_tokens"),)
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))


def from_wire_usage(usage: Mapping[str, Any], tier: str | None = None) -> Usage:
    """Read a `usage` object; prompt_tokens already includes what was cached (sheet openai_chat §4).

    Args:
        usage: the wire's object.
        tier: the service tier where the body names one; it goes before the object's own.
    """
    prompt = _count(usage.get("prompt_tokens"))
    output = _count(usage.get("completion_tokens"))
    reasoning = _first(usage, _REASONING)
    total = _count(usage.get("total_tokens"))
    if reasoning and output is not None and total == (prompt or 0) + output + reasoning:
        output += reasoning  # some services count reasoning beside the output, not inside (corpus, xai-chat)
    audio = _first(usage, (("prompt_tokens_details", "audio_tokens"),))
    if audio and prompt is not None and total == prompt + (output or 0) + audio:
        prompt += audio  # one service counts audio beside the prompt, not inside (corpus, mistral-chat)
    own = usage.get("service_tier")
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        cached_input_tokens=_first(usage, _CACHED),
        cache_creation_input_tokens=_first(usage, _WRITTEN),
        cache_creation_1h_input_tokens=_first(usage, _WRITTEN_1H),
        reasoning_tokens=reasoning,
        service_tier=tier or (own if isinstance(own, str) and own else None),
    )


def _first(usage: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    for path in paths:
        value: Any = usage.get(path[0])
        for key in path[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and (count := _count(value)) is not None:
            return count
    return None


def _count(value: Any) -> int | None:
    """Read a count; what is none, or is below zero, is not reported."""
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return int(value)

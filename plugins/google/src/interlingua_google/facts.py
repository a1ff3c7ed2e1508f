"""What an answer says about itself: why it stopped, what it counted, what is worth keeping (sheet gemini §6).

Never makes a message and never guesses what was not reported. The reader comes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.types.messages import StopReason, Usage

_STOPS = {
    "STOP": StopReason.END_TURN,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "CONTINUATION": StopReason.PAUSE_TURN,
}
_REFUSALS = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"),
    *("IMAGE_RECITATION", "MODEL_ARMOR"),
)
_ERRORS = (
    *("OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "IMAGE_OTHER", "NO_IMAGE", "UNEXPECTED_TOOL_CALL"),
    *("TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"),
)
_STOPS |= dict.fromkeys(_REFUSALS, StopReason.REFUSAL) | dict.fromkeys(_ERRORS, StopReason.ERROR)
# by `$alt=json;enum…=int`
_NUMBERED = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")


def from_wire_stop(raw: Any, *, calls: bool) -> StopReason:
    """Map a finish reason, a word or its number; one not known is OTHER (REGRESSIONS case 20).

    Args:
        raw: the service's finish reason.
        calls: the answer holds calls: there is no reason of their own (sheet §6).
    """
    word = _NUMBERED[raw] if type(raw) is int and 0 <= raw < len(_NUMBERED) else raw
    found = _STOPS.get(word, StopReason.OTHER) if isinstance(word, str) else StopReason.OTHER
    return StopReason.TOOL_USE if found is StopReason.END_TURN and calls else found


def from_wire_usage(raw: Mapping[str, Any]) -> Usage:
    """Make the inclusive counts (sheet §6: thoughts are not in candidates, tool prompts not in the prompt)."""
    prompt, tools = _count(raw, "promptTokenCount"), _count(raw, "toolUsePromptTokenCount")
    said, thought = _count(raw, "candidatesTokenCount"), _count(raw, "thoughtsTokenCount")
    if said is None and thought is None and prompt is not None and "totalTokenCount" in raw:
        said = 0  # a count of nothing is left out (sheet §6)
    tier = raw.get("serviceTier")
    return Usage(
        input_tokens=_sum(prompt, tools),
        output_tokens=_sum(said, thought),
        cached_input_tokens=_count(raw, "cachedContentTokenCount"),
        audio_input_tokens=_of_audio(raw, "promptTokensDetails"),
        cached_audio_input_tokens=_of_audio(raw, "cacheTokensDetails"),
        reasoning_tokens=thought,
        service_tier=tier if isinstance(tier, str) else None,
    )


def _of_audio(raw: Mapping[str, Any], name: str) -> int | None:
    """Return the tokens of audio in a list by modality; None where there is no list or no audio in it."""
    listed = raw.get(name)
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    counts = [_count(each, "tokenCount") for each in found if each.get("modality") == "AUDIO"]
    return sum(count or 0 for count in counts) if counts else None


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)

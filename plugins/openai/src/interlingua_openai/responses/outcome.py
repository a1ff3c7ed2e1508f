"""What a response says about itself: why it stopped, what it used, what failed (sheet openai_responses §5).

Never reads content into blocks (`items` does).
The two roads in, `from_wire` and `stream`, come in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.types import StopReason, Usage
from interlingua_openai.responses.items import CALLS

_INCOMPLETE = {"max_output_tokens": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}
_GOES_ON = ("queued", "in_progress")  # in the background (sheet MAPPING, stop reason)
_TOLD = ("detail", "errors", "message", "msg")  # how gateways say an error
_TRACED = (
    "id",
    "model",
    "created_at",
    "status",
    "incomplete_details",
    "service_tier",
    "usage",
    "tool_usage",
    "input_transformations",
    "prompt_cache_diagnostics",
    "previous_response_id",
    "moderation",
)


def from_wire_stop(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> tuple[StopReason, str | None]:
    """Derive the stop reason: this wire has none of its own (sheet §5). An unknown status is OTHER (case 20)."""
    status = response.get("status")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else details
        return _INCOMPLETE.get(str(reason), StopReason.OTHER), str(reason or status)
    if status in _GOES_ON:
        return StopReason.PAUSE_TURN, status
    if status not in ("completed", None):
        return StopReason.OTHER, str(status)
    if any(item.get("type") in CALLS for item in items):
        return StopReason.TOOL_USE, status
    if any(_refuses(item) for item in items):
        return StopReason.REFUSAL, status
    return StopReason.END_TURN, status


def _refuses(item: Mapping[str, Any]) -> bool:
    if item.get("type") != "message":
        return False
    return any(part.get("type") == "refusal" for part in item.get("content") or ())


def from_wire_usage(response: Mapping[str, Any]) -> Usage | None:
    """Read the counts: totals are inclusive on this wire; a negative or absent count is not reported."""
    raw = response.get("usage")
    if not isinstance(raw, Mapping):
        return None
    tier = response.get("service_tier")
    return Usage(
        input_tokens=_count(raw, "input_tokens"),
        output_tokens=_count(raw, "output_tokens"),
        cached_input_tokens=_count(raw.get("input_tokens_details"), "cached_tokens"),
        cache_creation_input_tokens=_count(raw.get("input_tokens_details"), "cache_write_tokens"),
        reasoning_tokens=_count(raw.get("output_tokens_details"), "reasoning_tokens"),
        service_tier=tier if isinstance(tier, str) else None,
    )


def _count(raw: Any, name: str) -> int | None:
    value = raw.get(name) if isinstance(raw, Mapping) else None
    return value if type(value) is int and value >= 0 else None


def trace_of(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is good to know about a response and has no canonical place."""
    return {name: response[name] for name in _TRACED if response.get(name) is not None}


def failure_of(body: Any) -> Any:
    """Return the error envelope of a body or event that reports a failure, None where it reports none."""
    if not isinstance(body, Mapping):
        return None
    if body.get("type") == "error":
        return body if body.get("error") else {"error": body}
    if body.get("error") or body.get("status") == "failed":
        return {**body, "error": body.get("error") or {"message": "the response failed", "code": "server_error"}}
    bare = "output" not in body and "type" not in body and any(body.get(name) for name in _TOLD)
    return body if bare else None

"""Read a complete response body as a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import MalformedResponseError, ProviderError
from interlingua.plugins import RequestContext, WireResponse, loads
from interlingua.types import ContentBlock, ErrorInfo, Message, MessageStatus, StopReason, Usage
from interlingua_openai.errors import from_wire_error_body
from interlingua_openai.responses.background import UNFINISHED
from interlingua_openai.responses.items import from_wire_item, is_call, normalise_items
from interlingua_openai.responses.replay import replay_state

_INCOMPLETE = {"max_output_tokens": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}
_BILLED_USES = {  # web searches apart; their names in the price list (WIRE.md, Responses status)
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "shell_call": "shell",
}
_ERROR_MEMBERS = ("detail", "errors", "message", "msg")  # how gateways say an error
# read elsewhere, or the request's own values, which the service repeats
_READ_OR_REPEATED = frozenset(
    (
        *("object", "output", "output_text", "error", "input", "instructions", "max_output_tokens", "max_tool_calls"),
        *("metadata", "parallel_tool_calls", "prompt", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning", "safety_identifier", "store", "temperature", "text", "tool_choice"),
        *("tools", "top_logprobs", "top_p", "truncation", "user"),
    )
)


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a response.

    Raises:
        ProviderError: an error inside a 200; `partial` holds the answer before it.
        MalformedResponseError: not a response object.
    """
    body = loads(response.body)
    if isinstance(body, list) and body:
        body = body[0]  # as some gateways wrap their errors
    if (failure := find_failure(body)) is not None:
        error = from_wire_error_body(failure, status=response.status, headers=response.headers)
        error.partial = _partial(body, context, error)
        raise error
    if not isinstance(body, dict) or not isinstance(body.get("output", ""), list | None):
        raise MalformedResponseError("a response has a list of output items", path="/output")
    items = normalise_items(body["output"], context)
    reason, raw = from_wire_stop(body, items)
    return context.message(
        _content(items, context),
        stop_reason=reason,
        stop_reason_raw=raw,
        usage=from_wire_usage(body, items),
        replay=replay_state(items) if items else None,
        trace=from_wire_trace(body),
        status=MessageStatus.PARTIAL if body.get("status") in UNFINISHED else MessageStatus.COMPLETE,
    )


def _content(items: Sequence[Mapping[str, Any]], context: RequestContext) -> list[ContentBlock]:
    return [block for item in items for block in from_wire_item(item, context)]


def _partial(body: Any, context: RequestContext, error: ProviderError) -> Message | None:
    items = normalise_items(body.get("output"), context)
    if not items:
        return None
    return context.message(
        _content(items, context),
        stop_reason=StopReason.ERROR,
        usage=from_wire_usage(body, items),
        replay=replay_state(items),
        trace=from_wire_trace(body),
        status=MessageStatus.ERROR,
        error=ErrorInfo(type=type(error).__name__, message=str(error)),
    )


def from_wire_stop(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> tuple[StopReason, str | None]:
    """Derive the stop reason, which this wire does not report (WIRE.md, Responses status); OTHER if unknown."""
    status = response.get("status")
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else details
        return _INCOMPLETE.get(str(reason), StopReason.OTHER), str(reason or status)
    if status in UNFINISHED:
        return StopReason.PAUSE_TURN, status
    if status not in ("completed", None):
        return StopReason.OTHER, str(status)
    if any(is_call(item) for item in items):
        return StopReason.TOOL_USE, status
    if any(_has_refusal(item) for item in items):
        return StopReason.REFUSAL, status
    return StopReason.END_TURN, status


def _has_refusal(item: Mapping[str, Any]) -> bool:
    if item.get("type") != "message":
        return False
    return any(part.get("type") == "refusal" for part in item.get("content") or ())


def from_wire_usage(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Usage | None:
    """Read the counts; totals are inclusive on this wire, and a negative count is ignored.

    Args:
        response: the answer.
        items: its output, to count billed uses of the service's tools (WIRE.md, Responses status).
    """
    raw = response.get("usage")
    if not isinstance(raw, Mapping):
        return None
    tier = response.get("service_tier")
    used = Counter(name for item in items if (name := _billed_use(item)))
    return Usage(
        input_tokens=_count(raw, "input_tokens"),
        output_tokens=_count(raw, "output_tokens"),
        cached_input_tokens=_count(raw.get("input_tokens_details"), "cached_tokens"),
        cache_creation_input_tokens=_count(raw.get("input_tokens_details"), "cache_write_tokens"),
        reasoning_tokens=_count(raw.get("output_tokens_details"), "reasoning_tokens"),
        extra_units=dict(used) or None,
        service_tier=tier if isinstance(tier, str) else None,
    )


def _billed_use(item: Mapping[str, Any]) -> str | None:
    """Return the name of an item's billed use; of a web search's actions only searches are billed."""
    kind = str(item.get("type"))
    if kind == "web_search_call":
        action = item.get("action")
        searched = not isinstance(action, Mapping) or action.get("type", "search") == "search"
        return "web_search" if searched else None
    return _BILLED_USES.get(kind)


def _count(raw: Any, name: str) -> int | None:
    value = raw.get(name) if isinstance(raw, Mapping) else None
    return value if type(value) is int and value >= 0 else None


def from_wire_trace(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about a response that have no canonical field, those that this version does not know included."""
    return {
        name: value for name, value in response.items() if name not in _READ_OR_REPEATED and value not in (None, [], {})
    }


def find_failure(body: Any) -> Any:
    """Return the error envelope of a body or event; None if it reports no failure."""
    if not isinstance(body, Mapping):
        return None
    if body.get("type") == "error":
        return body if body.get("error") else {"error": body}
    if body.get("error") or body.get("status") == "failed":
        return {**body, "error": body.get("error") or {"message": "the response failed", "code": "server_error"}}
    bare = "output" not in body and "type" not in body and any(body.get(name) for name in _ERROR_MEMBERS)
    return body if bare else None

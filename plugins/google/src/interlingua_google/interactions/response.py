"""A whole interaction -> message; what follows an answer that is not ready; status and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from interlingua.errors import MalformedResponseError
from interlingua.plugins import FollowUp, RequestContext, WireRequest, WireResponse, dumps, loads
from interlingua.types import ContentBlock, ErrorInfo, Message, MessageStatus, StopReason, Usage
from interlingua_google.errors import envelope_in, error_from_envelope
from interlingua_google.interactions.request import HEADERS, PATH
from interlingua_google.interactions.steps import CALL, OUTPUT, from_wire_step, shell_of, steps_in
from interlingua_google.models import INTERACTIONS

UNFINISHED = ("in_progress", "queued")
_CONTINUES = "requires_continuation"
_STOPS = {
    "completed": StopReason.END_TURN,
    "incomplete": StopReason.MAX_TOKENS,
    "budget_exceeded": StopReason.MAX_TOKENS,
    _CONTINUES: StopReason.PAUSE_TURN,
    **dict.fromkeys(UNFINISHED, StopReason.PAUSE_TURN),
}
_CALLING = ("completed", "requires_action", None)
_POLL_SECONDS = 2.0  # between two requests for an answer that takes minutes
# read elsewhere, or the request's own values, which the service repeats
_READ_OR_REPEATED = frozenset(
    (
        *("object", "steps", "input", "agent_config", "cached_content", "environment", "generation_config", "labels"),
        *("response_format", "response_mime_type", "response_modalities", "safety_settings", "system_instruction"),
        *("tools", "webhook_config", "background", "store", "stream"),
    )
)
_BILLED = {"google_search": "web_search"}  # its name in the price list; others keep theirs
_COUNT_OF = {"by_modality": ("modality", "tokens"), "grounding_tool_count": ("type", "count")}


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read an interaction.

    Raises:
        ProviderError: it failed; `partial` holds the answer before that.
        MalformedResponseError: not an interaction.
    """
    body: Any = loads(response.body)
    if (failure := find_failure(body)) is not None:
        error = error_from_envelope(failure, status=response.status, headers=response.headers)
        steps = steps_in(body) if isinstance(body, dict) else []
        if steps:
            info = ErrorInfo(type=type(error).__name__, message=str(error))
            error.partial = _message(body, steps, context, MessageStatus.ERROR, info)
        raise error
    if not isinstance(body, dict) or not ("status" in body or "steps" in body):
        raise MalformedResponseError("an interaction has a status", path="/status")
    body = join_hops([*(context.echo.get("hops") or ()), body])
    unfinished = body.get("status") in UNFINISHED
    return _message(
        body, steps_in(body), context, MessageStatus.PARTIAL if unfinished else MessageStatus.COMPLETE, None
    )


def _message(
    body: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    context: RequestContext,
    status: MessageStatus,
    error: ErrorInfo | None,
) -> Message:
    content: list[ContentBlock] = [block for step in steps for block in from_wire_step(step, context)]
    reason, raw = from_wire_stop(body.get("status"), calls=any(step.get("type") == CALL for step in steps))
    return context.message(
        content,
        stop_reason=StopReason.ERROR if error else reason,
        stop_reason_raw=raw,
        usage=from_wire_usage(body),
        replay=replay_of(body, [shell_of(step) for step in steps], context),
        trace=from_wire_trace(body),
        status=status,
        error=error,
    )


def replay_of(body: Mapping[str, Any], rows: list[dict[str, Any]], context: RequestContext) -> dict[str, Any]:
    """Return the replay state: the shells of the steps, and the interaction if the service stored it."""
    state: dict[str, Any] = {"steps": rows} if rows else {}
    if isinstance(body.get("id"), str) and body["id"]:  # "" if nothing is stored
        state["id"] = body["id"]
        if "prefix" in context.echo:
            state["prefix"] = context.echo["prefix"]
    return state


def from_wire_trace(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about an interaction that have no canonical field, also those that this version does not know."""
    return {
        name: value for name, value in body.items() if name not in _READ_OR_REPEATED and value not in (None, "", [], {})
    }


def from_wire_stop(status: Any, *, calls: bool) -> tuple[StopReason, str | None]:
    """Return the canonical stop reason and the status; OTHER if it is unknown.

    Args:
        status: the status; `completed` is also that of an answer with calls.
        calls: the answer holds calls.
    """
    if calls and status in _CALLING:
        return StopReason.TOOL_USE, status
    if status is None:
        return StopReason.END_TURN, None
    found = _STOPS.get(status) if isinstance(status, str) else None
    return found or StopReason.OTHER, str(status)


def find_failure(body: Any) -> Mapping[str, Any] | None:
    """Return the error object of a body, or of an interaction that failed; None if it did not fail."""
    error = envelope_in(body)
    if error is not None or not isinstance(body, dict) or body.get("status") != "failed":
        return error
    errors = body.get("errors")
    listed = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    steps = [step for step in body.get("steps") or () if isinstance(step, dict) and step.get("type") == OUTPUT]
    listed += [step["error"] for step in steps if isinstance(step.get("error"), dict)]
    return listed[0] if listed else {"message": "the interaction failed"}


# ---- counts


def from_wire_usage(body: Mapping[str, Any]) -> Usage | None:
    """Return the counts: thoughts are not in the output, prompts of tools not in the input (WIRE.md).

    An input of 0 beside output is a count that the service left out.
    """
    raw = body.get("usage")
    if not isinstance(raw, Mapping):
        return None
    given, tools = _count(raw, "total_input_tokens"), _count(raw, "total_tool_use_tokens")
    visible, thought = _count(raw, "total_output_tokens"), _count(raw, "total_thought_tokens")
    if given == 0 and (visible or thought):
        given = tools = None
    tier = body.get("service_tier")
    extra = {_BILLED.get(name, name): count for name, count in _by(raw, "grounding_tool_count").items()}
    extra["image_output_tokens"] = _by(raw, "output_tokens_by_modality").get("image", 0)
    return Usage(
        input_tokens=_sum(given, tools),
        output_tokens=_sum(visible, thought),
        cached_input_tokens=_count(raw, "total_cached_tokens"),
        audio_input_tokens=_by(raw, "input_tokens_by_modality").get("audio"),
        cached_audio_input_tokens=_by(raw, "cached_tokens_by_modality").get("audio"),
        reasoning_tokens=thought,
        extra_units={name: count for name, count in extra.items() if count} or None,
        service_tier=tier if isinstance(tier, str) else None,
    )


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None and right is None else (left or 0) + (right or 0)


def _by(raw: Mapping[str, Any], name: str) -> dict[str, int]:
    """Return the counts of a list by its modality or tool."""
    label, count = _COUNT_OF[name if name in _COUNT_OF else "by_modality"]
    listed = raw.get(name)
    found: dict[str, int] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and (number := _count(each, count)) is not None:
            found[str(each.get(label))] = found.get(str(each.get(label)), 0) + number
    return found


# ---- answers that come later (WIRE.md, Interactions later answers)


def follow_up(response: WireResponse, context: RequestContext) -> FollowUp | None:
    """Return the request for an interaction that runs in the background, or for the rest of a long answer."""
    body = loads(response.body)
    if not isinstance(body, dict) or find_failure(body) is not None:
        return None
    status, name = body.get("status"), body.get("id")
    if status in UNFINISHED and isinstance(name, str) and name:
        path = f"{PATH}/{quote(name, safe='')}"
        cancel = WireRequest(path=f"{path}/cancel", headers=dict(HEADERS), body=b"", api=INTERACTIONS)
        stream = bool(context.echo.get("stream"))
        query = "?stream=true" if stream else ""
        again = WireRequest(
            method="GET", path=path + query, headers=dict(HEADERS), body=b"", api=INTERACTIONS, stream=stream
        )
        return FollowUp(request=again, after=0.0 if stream else _POLL_SECONDS, cancel=cancel)
    return _next_hop(body, context) if status == _CONTINUES else None


def _next_hop(body: dict[str, Any], context: RequestContext) -> FollowUp | None:
    """Return the request that continues an answer which reached the cap of one request; None without progress."""
    asked, token, name = context.echo.get("body"), body.get("continuation_token"), body.get("id")
    if not isinstance(asked, Mapping) or not token or token == asked.get("continuation_token"):
        return None
    wanted = {**asked, "continuation_token": token}
    if name and asked.get("store") is not False:
        del wanted["input"]
        wanted["previous_interaction_id"] = name
    hops = [*(context.echo.get("hops") or ()), body]
    echo = {"body": {**asked, "continuation_token": token}, "hops": hops}
    request = WireRequest(path=PATH, headers=dict(HEADERS), body=dumps(wanted), api=INTERACTIONS, echo=echo)
    return FollowUp(request=request)


def join_hops(hops: Sequence[Any]) -> dict[str, Any]:
    """Return the last part of an answer with the steps and counts of all parts."""
    last: dict[str, Any] = dict(hops[-1])
    if len(hops) == 1:
        return last
    usages = [hop["usage"] for hop in hops if isinstance(hop.get("usage"), Mapping)]
    steps = [step for hop in hops for step in steps_in({"steps": list(hop.get("steps") or ())})]
    return {**last, "steps": steps} | ({"usage": _add_usages(usages)} if usages else {})


def _add_usages(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for name in dict.fromkeys(name for usage in usages for name in usage):
        if name == "grounding_tool_count" or name.endswith("_by_modality"):
            label, count = _COUNT_OF[name if name in _COUNT_OF else "by_modality"]
            listed: dict[str, int] = {}
            for usage in usages:
                for key, number in _by(usage, name).items():
                    listed[key] = listed.get(key, 0) + number
            total[name] = [{label: key, count: number} for key, number in listed.items()]
        else:
            total[name] = sum(_count(usage, name) or 0 for usage in usages)
    return total

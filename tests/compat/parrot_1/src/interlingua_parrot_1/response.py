"""Read a whole answer into a Message; the stream reads blocks, stop reasons and usage with the same functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireResponse, dumps, loads
from interlingua.types import (
    ContentBlock,
    Message,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)

from interlingua_parrot_1.errors import error_from_squawk, find_squawk

_STOP_REASONS: Mapping[str, StopReason] = {
    "finished": StopReason.END_TURN,
    "hushed": StopReason.STOP_SEQUENCE,
    "cut_short": StopReason.MAX_TOKENS,
    "wants_tricks": StopReason.TOOL_USE,
}


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer.

    Raises:
        ProviderError: an error inside a 200.
        MalformedResponseError: not an answer of this wire.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    squawk = find_squawk(body)
    if squawk is not None:
        raise error_from_squawk(squawk)
    if not isinstance(body, dict) or not isinstance(body.get("says"), list):
        raise MalformedResponseError("the answer has no list of parts", path="/says")
    return context.message(
        [from_wire_part(part, context) for part in body["says"]],
        stop_reason=from_wire_stop_reason(body),
        stop_reason_raw=body.get("reason"),
        usage=from_wire_usage(body),
        trace={"talk": body.get("talk")},
    )


def from_wire_part(part: Mapping[str, Any], context: RequestContext) -> ContentBlock:
    """Read one part; an unknown type becomes an OpaqueBlock, which goes back to its origin unchanged."""
    kind = part.get("type")
    if kind == "words":
        return TextBlock(text=part["words"])
    if kind == "trick":
        return _tool_use(part, context)
    return OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=part)


def _tool_use(part: Mapping[str, Any], context: RequestContext) -> ToolUseBlock:
    arguments = part.get("with")
    raw = arguments if isinstance(arguments, str) else dumps(arguments).decode()
    value, error = read_tool_input(raw)
    return ToolUseBlock(
        id=context.mint_tool_use_id(),
        name=context.tool_name(part["trick"]),
        input=value,
        provider_id=part["tag"],
        raw_input=raw if error else None,
        parse_error=error,
    )


def from_wire_stop_reason(body: Mapping[str, Any]) -> StopReason:
    """Return why the model stopped; an unknown word is OTHER, never an exception."""
    return _STOP_REASONS.get(str(body.get("reason")), StopReason.OTHER)


def from_wire_usage(body: Mapping[str, Any]) -> Usage | None:
    """Return the token counts; counts that were not reported are None, not 0."""
    counts = body.get("usage")
    if not isinstance(counts, dict):
        return None
    return Usage(input_tokens=_count(counts.get("heard")), output_tokens=_count(counts.get("said")))


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None

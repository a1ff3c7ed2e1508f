"""A whole answer of the talk API -> canonical Message, and the readers that both roads share.

Never reads a stream, and never mints an id or asks the clock: the context does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.json import dumps, loads
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.types.blocks import ContentBlock, OpaqueBlock, TextBlock, ToolUseBlock, read_tool_input
from interlingua.types.messages import Message, StopReason, Usage

from interlingua_parrot.service import error_of_squawk, squawk_of

_REASONS = {
    "finished": StopReason.END_TURN,
    "hushed": StopReason.STOP_SEQUENCE,
    "cut_short": StopReason.MAX_TOKENS,
    "wants_tricks": StopReason.TOOL_USE,
}


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a body.

    Raises:
        ProviderError: an error inside a 200.
        MalformedResponseError: not an answer of this wire.
    """
    try:
        body = loads(response.body)
    except ValueError as error:
        raise MalformedResponseError(f"the body is not JSON: {error}") from error
    squawk = squawk_of(body)
    if squawk is not None:
        raise error_of_squawk(squawk)
    if not isinstance(body, dict) or not isinstance(body.get("says"), list):
        raise MalformedResponseError("the answer says nothing", path="/says")
    return context.message(
        [from_wire_part(part, context) for part in body["says"]],
        stop_reason=from_wire_reason(body),
        stop_reason_raw=body.get("reason"),
        usage=from_wire_usage(body),
        trace={"talk": body.get("talk")},
    )


def from_wire_part(part: Mapping[str, Any], context: RequestContext) -> ContentBlock:
    """Read one part; of a type that is not known it becomes an opaque block, kept exact for its origin."""
    kind = part.get("type")
    if kind == "words":
        return TextBlock(text=part["words"])
    if kind == "trick":
        return _call(part, context)
    return OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=part)


def _call(part: Mapping[str, Any], context: RequestContext) -> ToolUseBlock:
    given = part.get("with")
    raw = given if isinstance(given, str) else dumps(given).decode()
    value, error = read_tool_input(raw)
    return ToolUseBlock(
        id=context.mint_tool_use_id(),
        name=context.tool_name(part["trick"]),
        input=value,
        provider_id=part["tag"],
        raw_input=raw if error else None,
        parse_error=error,
    )


def from_wire_reason(said: Mapping[str, Any]) -> StopReason:
    """Return why the bird stopped; a word that is not known is OTHER, never an exception."""
    return _REASONS.get(str(said.get("reason")), StopReason.OTHER)


def from_wire_usage(said: Mapping[str, Any]) -> Usage | None:
    """Return the counts; what was not reported is None, not 0."""
    counts = said.get("usage")
    if not isinstance(counts, dict):
        return None
    return Usage(input_tokens=_count(counts.get("heard")), output_tokens=_count(counts.get("said")))


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None

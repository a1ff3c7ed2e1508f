"""A whole answer of the Messages API -> canonical Message.

Never reads a stream (its neighbour does, through the same facts, so both roads agree).
The plugin object comes in.
"""

from __future__ import annotations

from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.json import loads
from interlingua.plugins.wire import RequestContext, WireResponse
from interlingua.types.messages import Message
from interlingua_anthropic.facts import (
    call_extras,
    from_wire_block,
    from_wire_stop,
    from_wire_usage,
    issued_id,
    prefix_replay,
    stop_word,
    trace_of,
)
from interlingua_anthropic.service import error_from_body, is_error


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a body.

    Raises:
        ProviderError: an error object with status 200.
        MalformedResponseError: not a message.
    """
    body: Any = loads(response.body)
    if isinstance(body, list) and body:
        body = body[0]  # as the cloud host wraps its errors
    if not isinstance(body, dict):
        raise MalformedResponseError("the answer is not a JSON object")
    content = _content(body)
    if content is None and is_error(body):
        raise error_from_body(body, status=response.status, headers=response.headers)
    if content is None:
        raise MalformedResponseError("the answer has no content list", path="content")
    blocks = [from_wire_block(raw, context) for raw in content]
    calls = [raw for raw in content if isinstance(raw, dict) and raw.get("type") == "tool_use"]
    extras = {raw["id"]: more for raw in calls if issued_id(raw) and (more := call_extras(raw))}
    raw_usage = body.get("usage")
    stop = body.get("stop_reason")
    return context.message(
        blocks,
        stop_reason=from_wire_stop(stop),
        stop_reason_raw=stop_word(stop),
        usage=from_wire_usage(raw_usage) if raw_usage else None,
        replay=({"calls": extras} if extras else {}) | prefix_replay(context),
        trace=trace_of(body, raw_usage or {}),
    )


def _content(body: dict[str, Any]) -> list[Any] | None:
    """Return the blocks, None where there is no message; a compatible server's may be one text, or null."""
    content = body.get("content")
    if isinstance(content, list) and body.get("type") != "error":
        return content
    if isinstance(content, str):
        return [content]
    return [] if body.get("type") == "message" and "content" in body and content is None else None

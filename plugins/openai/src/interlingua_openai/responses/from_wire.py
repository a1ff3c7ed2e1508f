"""A complete response body -> a message (sheet openai_responses §5).

Never reads a stream; what both roads share is in `items`, `outcome` and `replay`.
The plugin object comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.errors import MalformedResponseError, ProviderError
from interlingua.plugins import RequestContext, WireResponse, loads
from interlingua.types import ContentBlock, ErrorInfo, Message, MessageStatus, StopReason
from interlingua_openai.errors import from_wire_error_body
from interlingua_openai.responses.items import from_wire_item
from interlingua_openai.responses.outcome import failure_of, from_wire_stop, from_wire_usage, trace_of
from interlingua_openai.responses.plain import plain_items
from interlingua_openai.responses.replay import replay_of


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Read a response.

    Raises:
        ProviderError: an error inside a 200; `partial` holds what was said before it.
        MalformedResponseError: not a response object.
    """
    body = loads(response.body)
    if isinstance(body, list) and body:
        body = body[0]  # as some gateways wrap their errors
    if (failure := failure_of(body)) is not None:
        error = from_wire_error_body(failure, status=response.status, headers=response.headers)
        error.partial = _partial(body, context, error)
        raise error
    if not isinstance(body, dict) or not isinstance(body.get("output", ""), list | None):
        raise MalformedResponseError("a response has a list of output items", path="/output")
    items = plain_items(body["output"])
    reason, raw = from_wire_stop(body, items)
    return context.message(
        _content(items, context),
        stop_reason=reason,
        stop_reason_raw=raw,
        usage=from_wire_usage(body),
        replay=replay_of(items) if items else None,
        trace=trace_of(body),
    )


def _content(items: Sequence[Mapping[str, Any]], context: RequestContext) -> list[ContentBlock]:
    return [block for item in items for block in from_wire_item(item, context)]


def _partial(body: Any, context: RequestContext, error: ProviderError) -> Message | None:
    items = plain_items(body.get("output"))
    if not items:
        return None
    return context.message(
        _content(items, context),
        stop_reason=StopReason.ERROR,
        usage=from_wire_usage(body),
        replay=replay_of(items),
        trace=trace_of(body),
        status=MessageStatus.ERROR,
        error=ErrorInfo(type=type(error).__name__, message=str(error)),
    )

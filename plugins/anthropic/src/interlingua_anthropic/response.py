"""A whole answer -> canonical message; also blocks, stop reasons and token counts for streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.plugins import RequestContext, WireResponse, dumps, loads
from interlingua.types import (
    ContentBlock,
    Loss,
    Message,
    MessageStatus,
    OpaqueBlock,
    RedactedThinkingBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    read_tool_input,
)
from interlingua_anthropic.errors import error_from_body, is_error

_STOPS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_USE,
    "pause_turn": StopReason.PAUSE_TURN,
    "refusal": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
}
_CALL_FIELDS = ("type", "id", "name", "input")
_READ = ("type", "role", "content", "stop_reason", "usage")


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer; without a stop reason it is PARTIAL.

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
    extras = {
        raw["id"]: more
        for raw in content
        if isinstance(raw, dict) and raw.get("type") == "tool_use" and issued_id(raw) and (more := call_extras(raw))
    }
    raw_usage = body.get("usage")
    stop = body.get("stop_reason")
    return context.message(
        blocks,
        stop_reason=None if stop is None else from_wire_stop(stop),
        stop_reason_raw=stop_reason_text(stop),
        status=MessageStatus.PARTIAL if stop is None else MessageStatus.COMPLETE,
        usage=from_wire_usage(raw_usage, blocks) if raw_usage else None,
        replay=({"calls": extras} if extras else {}) | prefix_replay(context),
        trace=trace_of(body, raw_usage or {}),
        losses=dropped_blocks(body) or (),
    )


def _content(body: dict[str, Any]) -> list[Any] | None:
    """Return the blocks, or None if there is no message. Compatible servers may send one string, or null."""
    content = body.get("content")
    if isinstance(content, list) and body.get("type") != "error":
        return content
    if isinstance(content, str):
        return [content]
    return [] if body.get("type") == "message" and "content" in body and content is None else None


def from_wire_stop(raw: Any) -> StopReason:
    """Return the canonical stop reason; OTHER if the reason is unknown."""
    return _STOPS.get(raw, StopReason.OTHER) if isinstance(raw, str) else StopReason.OTHER


def stop_reason_text(raw: Any) -> str | None:
    """Return the service's own word for the stop reason."""
    return raw if raw is None or isinstance(raw, str) else str(raw)


def required_text(raw: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a string.

    Raises:
        MalformedResponseError: it is absent or something else.
    """
    value = raw.get(name)
    if not isinstance(value, str):
        raise MalformedResponseError(f"{raw.get('type')} has no string {name!r}", path=name)
    return value


def optional_text(raw: Mapping[str, Any], name: str) -> str:
    """Return a member that is a string; None if a compatible server left it out.

    Raises:
        MalformedResponseError: it is something else.
    """
    value = raw.get(name)
    if isinstance(value, str):
        return value
    return "" if value is None else required_text(raw, name)


def issued_id(raw: Mapping[str, Any]) -> str | None:
    """Return the id that the service issued for a call; None if a compatible server issued no id."""
    return optional_text(raw, "id") or None


def citations_of(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the citations of a TextBlock, each the service's own object, unchanged."""
    found = raw.get("citations")
    if not found:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise MalformedResponseError("citations are not a list of objects", path="citations")
    return found


def from_wire_usage(raw: Mapping[str, Any], blocks: Iterable[ContentBlock]) -> Usage:
    """Return the counts; on this wire `input_tokens` excludes cached tokens (WIRE.md, Usage).

    Args:
        raw: the wire's counts.
        blocks: blocks of the answer, to count code executions, which the counts leave out.
    """
    uncached = _count(raw, "input_tokens")
    read, written = _count(raw, "cache_read_input_tokens"), _count(raw, "cache_creation_input_tokens")
    split = raw.get("cache_creation")
    details = raw.get("output_tokens_details")
    tier = raw.get("service_tier")
    served = raw.get("server_tool_use")
    searches = _count(served, "web_search_requests") if isinstance(served, dict) else None
    extra = {"web_search": searches} if searches else {}
    if executions := _code_executions(blocks):
        extra["code_execution"] = executions
    return Usage(
        input_tokens=None if uncached is None else uncached + (read or 0) + (written or 0),
        output_tokens=_count(raw, "output_tokens"),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=_count(split, "ephemeral_1h_input_tokens") if isinstance(split, dict) else None,
        reasoning_tokens=_count(details, "thinking_tokens") if isinstance(details, dict) else None,
        extra_units=extra or None,
        service_tier="fast" if raw.get("speed") == "fast" else tier if isinstance(tier, str) else None,
    )


def _code_executions(blocks: Iterable[ContentBlock]) -> int:
    """Return how often the service ran code; not billed together with a web search or fetch (WIRE.md, Usage)."""
    used = [
        str(block.data.get("name"))
        for block in blocks
        if isinstance(block, OpaqueBlock) and block.kind == "server_tool_use" and isinstance(block.data, Mapping)
    ]
    if not used or {"web_search", "web_fetch"} & set(used):
        return 0
    return sum(name.endswith("code_execution") for name in used)


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def from_wire_block(raw: Any, context: RequestContext) -> ContentBlock:
    """Return the block of a whole wire block; a type without a canonical form becomes an opaque block."""
    if isinstance(raw, str):
        return TextBlock(text=raw)
    if not isinstance(raw, Mapping):
        raise MalformedResponseError("a content block is not an object", path="content")
    kind = raw.get("type")
    if kind == "text":
        return TextBlock(text=optional_text(raw, "text"), citations=citations_of(raw))
    if kind == "thinking":
        return ThinkingBlock(text=optional_text(raw, "thinking"), signature=signature_of(raw))
    if kind == "redacted_thinking":
        return RedactedThinkingBlock(data=required_text(raw, "data"))
    if kind == "tool_use":
        name = context.tool_name(required_text(raw, "name"))
        return call_of(raw.get("input"), context.mint_tool_use_id(), name, issued_id(raw))
    return OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=raw)


def signature_of(raw: Mapping[str, Any]) -> str | None:
    """Return a thinking block's signature; None if it is empty, as some compatible servers send it."""
    return optional_text(raw, "signature") or None


def call_of(value: Any, minted: str, name: str, provider_id: str | None) -> ToolUseBlock:
    """Return a call with its complete arguments; others than an object are kept as a string, with the error."""
    if value is None or isinstance(value, Mapping):
        return ToolUseBlock(id=minted, name=name, input=value, provider_id=provider_id)
    raw = value if isinstance(value, str) else dumps(value).decode()
    found, error = read_tool_input(raw)
    return ToolUseBlock(
        id=minted, name=name, input=found, provider_id=provider_id, raw_input=raw if error else None, parse_error=error
    )


def call_extras(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further members of a call (`caller`, `toolset_name`), to send them back."""
    return {name: value for name, value in raw.items() if name not in _CALL_FIELDS}


def dropped_blocks(message: Mapping[str, Any]) -> tuple[Loss, ...] | None:
    """Return a row for each block that the service reports as dropped; None without a report (WIRE.md, Thinking)."""
    listed = message.get("input_transformations")
    if not isinstance(listed, list):
        return None
    rows = []
    for one in listed:
        if isinstance(one, Mapping) and one.get("type") == "thinking_dropped":
            place = re.sub(r"\.(\d+)", r"[\1]", str(one.get("path")))
            reason = f"the service dropped it: {one.get('reason')}"
            rows.append(Loss(path=f"request.{place}", block_type="thinking", verdict="dropped", reason=reason))
    return tuple(rows)


def trace_of(message: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about an answer that have no canonical field, those that this version does not know included."""
    kept = {name: value for name, value in message.items() if name not in _READ and value is not None}
    return kept | {"usage": dict(usage)}


def prefix_replay(context: RequestContext) -> dict[str, Any]:
    """Return the digest of the prefix that the thinking of this answer is bound to, for models that bind it."""
    digest = context.echo.get("prefix")
    return {"prefix": digest} if digest else {}

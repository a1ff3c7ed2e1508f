"""A whole answer -> canonical message; also blocks, stop reasons and token counts for streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError, ServerError
from interlingua.plugins import RequestContext, WireResponse, dumps, loads
from interlingua.types import (
    ContentBlock,
    ErrorInfo,
    ImageBlock,
    MediaSource,
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
from interlingua_bedrock.errors import error_name, make_error

_FAILURES = {"malformed_model_output": "the model's output", "malformed_tool_use": "the model's tool call"}
_STOPS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_USE,
    "guardrail_intervened": StopReason.REFUSAL,
    "content_filtered": StopReason.REFUSAL,
    "model_context_window_exceeded": StopReason.CONTEXT_WINDOW,
}
_STOPS |= dict.fromkeys(_FAILURES, StopReason.ERROR)
_FORMATS = {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_READ = ("output", "stopReason", "p")  # the last is padding of events
SERVER_CALL = "server_tool_use"


def from_wire_response(response: WireResponse, context: RequestContext) -> Message:
    """Return the message of an answer; without a stop reason it is PARTIAL.

    Raises:
        ProviderError: an error object with status 200, or a stop reason that reports a failure.
        MalformedResponseError: not an answer.
    """
    body: Any = loads(response.body)
    if not isinstance(body, dict):
        raise MalformedResponseError("the answer is not a JSON object")
    output = body.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    if not isinstance(message, dict):
        name = error_name(response, body)
        if name or isinstance(body.get("message"), str):
            raise make_error(name, body, status=response.status, headers=response.headers)
        raise MalformedResponseError("the answer has no message", path="output.message")
    content = message.get("content")
    if not isinstance(content, list):
        raise MalformedResponseError("the answer has no content list", path="output.message.content")
    blocks = [from_wire_block(raw, context) for raw in content]
    stop = body.get("stopReason")
    status = MessageStatus.PARTIAL if stop is None else MessageStatus.COMPLETE
    failed = failure_of(stop)
    answer = context.message(
        blocks,
        stop_reason=None if stop is None else from_wire_stop(stop),
        status=status if failed is None else MessageStatus.ERROR,
        stop_reason_raw=stop if stop is None or isinstance(stop, str) else str(stop),
        usage=from_wire_usage(body.get("usage"), body.get("serviceTier")),
        trace=trace_of(body),
        error=None if failed is None else ErrorInfo(type=type(failed).__name__, message=str(failed)),
    )
    if failed is not None:
        failed.partial = answer
        raise failed
    return answer


def trace_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about an answer that have no canonical field, those that this version does not know included."""
    return {name: value for name, value in body.items() if name not in _READ and value is not None}


def from_wire_stop(raw: Any) -> StopReason:
    """Return the canonical stop reason; OTHER if the reason is unknown."""
    return _STOPS.get(raw, StopReason.OTHER) if isinstance(raw, str) else StopReason.OTHER


def failure_of(raw: Any) -> ServerError | None:
    """Return the error that a stop reason alone reports."""
    what = _FAILURES.get(raw) if isinstance(raw, str) else None
    return ServerError(f"{what} is malformed (stopReason {raw!r})", code=raw) if what else None


def from_wire_usage(raw: Any, tier: Any) -> Usage | None:
    """Return the counts; on this wire `inputTokens` excludes cached tokens (WIRE.md, Usage)."""
    if not isinstance(raw, Mapping):
        return None
    plain = _count(raw, "inputTokens")
    read, written = _count(raw, "cacheReadInputTokens"), _count(raw, "cacheWriteInputTokens")
    details = [item for item in raw.get("cacheDetails") or () if isinstance(item, Mapping)]
    hourly = [_count(item, "inputTokens") or 0 for item in details if item.get("ttl") == "1h"]
    name = tier.get("type") if isinstance(tier, Mapping) else None
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=_count(raw, "outputTokens"),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=sum(hourly) if hourly else None,
        service_tier=name if isinstance(name, str) else None,
    )


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def from_wire_block(raw: Any, context: RequestContext) -> ContentBlock:
    """Return the block of a whole content block; a kind without a canonical form becomes an opaque block."""
    if not isinstance(raw, Mapping):
        raise MalformedResponseError("a content block is not an object", path="output.message.content")
    if isinstance(raw.get("text"), str):
        return TextBlock(text=raw["text"])
    kind = next(iter(raw), "")
    inner = raw.get(kind)
    made: ContentBlock | None = None
    if isinstance(inner, Mapping):
        if kind == "toolUse" and inner.get("type") != SERVER_CALL:
            made = call_of(inner, context)
        elif kind == "reasoningContent":
            made = _reasoning(inner)
        elif kind == "citationsContent":
            made = _cited_text(inner)
        elif kind == "image":
            made = _image(inner)
    return made or OpaqueBlock(provider=context.origin.provider, kind=kind, data=raw)


def call_of(raw: Mapping[str, Any], context: RequestContext) -> ToolUseBlock:
    """Return a call with its whole arguments."""
    name = context.tool_name(required_text(raw, "name"))
    return make_call(raw.get("input"), context.mint_tool_use_id(), name, issued_id(raw))


def make_call(value: Any, minted: str, name: str, provider_id: str | None) -> ToolUseBlock:
    """Return a call; arguments that are not an object are kept as a string, with the parse error."""
    if value is None or isinstance(value, Mapping):
        return ToolUseBlock(id=minted, name=name, input=value, provider_id=provider_id)
    raw = value if isinstance(value, str) else dumps(value).decode()
    found, error = read_tool_input(raw)
    return ToolUseBlock(
        id=minted, name=name, input=found, provider_id=provider_id, raw_input=raw if error else None, parse_error=error
    )


def required_text(raw: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a string.

    Raises:
        MalformedResponseError: it is absent or something else.
    """
    value = raw.get(name)
    if not isinstance(value, str):
        raise MalformedResponseError(f"a content block has no string {name!r}", path=name)
    return value


def issued_id(raw: Mapping[str, Any]) -> str | None:
    """Return the id that the service issued for a call, if any."""
    value = raw.get("toolUseId")
    return value if isinstance(value, str) and value else None


def citations_of(raw: Any) -> list[dict[str, Any]]:
    """Return citations, each the service's own object, unchanged."""
    if raw is None:
        return []
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        raise MalformedResponseError("citations are not a list of objects", path="citations")
    return raw


def _reasoning(raw: Mapping[str, Any]) -> ContentBlock | None:
    if isinstance(raw.get("redactedContent"), str):
        return RedactedThinkingBlock(data=raw["redactedContent"])
    text = raw.get("reasoningText")
    if not isinstance(text, Mapping):
        return None
    signature = text.get("signature")
    return ThinkingBlock(text=str(text.get("text") or ""), signature=signature if isinstance(signature, str) else None)


def _cited_text(raw: Mapping[str, Any]) -> ContentBlock | None:
    parts = raw.get("content") or []
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) and set(part) <= {"text"} for part in parts):
        return None
    text = "".join(str(part.get("text") or "") for part in parts)
    return TextBlock(text=text, citations=citations_of(raw.get("citations")))


def _image(raw: Mapping[str, Any]) -> ContentBlock | None:
    source = raw.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    media_type = _FORMATS.get(str(raw.get("format")))
    if not isinstance(data, str) or media_type is None or not raw.keys() <= {"format", "source"}:
        return None
    return ImageBlock(source=MediaSource(kind="base64", data=data), media_type=media_type)

"""What both roads read the same way: stop reasons, token counts, blocks (sheet anthropic §7).

Never makes a message (the roads do) and never guesses what was not reported.
`from_wire` and `stream` come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.errors import MalformedResponseError
from interlingua.json import dumps
from interlingua.plugins.wire import RequestContext
from interlingua.types.blocks import (
    ContentBlock,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    read_tool_input,
)
from interlingua.types.messages import StopReason, Usage

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
_TRACED = ("id", "model", "stop_sequence", "stop_details", "container", "context_management", "input_transformations")


def from_wire_stop(raw: Any) -> StopReason:
    """Map a stop reason; one not known is OTHER, its word kept beside it (REGRESSIONS case 20)."""
    return _STOPS.get(raw, StopReason.OTHER) if isinstance(raw, str) else StopReason.OTHER


def stop_word(raw: Any) -> str | None:
    """Return the service's own word for why it stopped."""
    return raw if raw is None or isinstance(raw, str) else str(raw)


def words(raw: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a string.

    Raises:
        MalformedResponseError: it is absent or something else.
    """
    value = raw.get(name)
    if not isinstance(value, str):
        raise MalformedResponseError(f"{raw.get('type')} has no string {name!r}", path=name)
    return value


def said(raw: Mapping[str, Any], name: str) -> str:
    """Return a member that is text or, as compatible servers have it, nothing.

    Raises:
        MalformedResponseError: it is something else.
    """
    return "" if raw.get(name) is None else words(raw, name)


def issued_id(raw: Mapping[str, Any]) -> str | None:
    """Return the id a call was issued under; some compatible servers issue none."""
    return said(raw, "id") or None


def citations_of(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a text block's citations, each an object in the service's own words."""
    found = raw.get("citations") or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise MalformedResponseError("citations are not a list of objects", path="citations")
    return found


def from_wire_usage(raw: Mapping[str, Any]) -> Usage:
    """Make the inclusive counts from exclusive ones (sheet §7: input_tokens excludes cached tokens)."""
    plain, read, written = (
        _count(raw, name) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    split = raw.get("cache_creation")
    details = raw.get("output_tokens_details")
    tier = raw.get("service_tier")
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=_count(raw, "output_tokens"),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=_count(split, "ephemeral_1h_input_tokens") if isinstance(split, dict) else None,
        reasoning_tokens=_count(details, "thinking_tokens") if isinstance(details, dict) else None,
        service_tier="fast" if raw.get("speed") == "fast" else tier if isinstance(tier, str) else None,
    )


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) and value >= 0 else None


def from_wire_block(raw: Any, context: RequestContext) -> ContentBlock:
    """Make the canonical block of a whole wire block; a type without a canonical form stays exact and opaque."""
    if isinstance(raw, str):
        return TextBlock(text=raw)
    if not isinstance(raw, Mapping):
        raise MalformedResponseError("a content block is not an object", path="content")
    kind = raw.get("type")
    if kind == "text":
        return TextBlock(text=said(raw, "text"), citations=citations_of(raw))
    if kind == "thinking":
        return ThinkingBlock(text=said(raw, "thinking"), signature=signature_of(raw))
    if kind == "redacted_thinking":
        return RedactedThinkingBlock(data=words(raw, "data"))
    if kind == "tool_use":
        name = context.tool_name(words(raw, "name"))
        return call_of(raw.get("input"), context.mint_tool_use_id(), name, issued_id(raw))
    return OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=raw)


def signature_of(raw: Mapping[str, Any]) -> str | None:
    """Return a thinking block's signature; an empty one, as some compatible servers send, is none."""
    return said(raw, "signature") or None


def call_of(value: Any, minted: str, name: str, provider_id: str | None) -> ToolUseBlock:
    """Make a call from its whole arguments; what is no object is kept as text with the reason (case 14)."""
    if value is None or isinstance(value, Mapping):
        return ToolUseBlock(id=minted, name=name, input=value, provider_id=provider_id)
    raw = value if isinstance(value, str) else dumps(value).decode()
    found, error = read_tool_input(raw)
    return ToolUseBlock(
        id=minted, name=name, input=found, provider_id=provider_id, raw_input=raw if error else None, parse_error=error
    )


def call_extras(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call carries beyond the canonical fields (`caller`, `toolset_name`), to be sent back with it."""
    return {name: value for name, value in raw.items() if name not in _CALL_FIELDS}


def trace_of(message: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is good to know about an answer and has no canonical place."""
    kept = {name: message[name] for name in _TRACED if message.get(name) is not None}
    return kept | {"usage": dict(usage)}


def prefix_replay(context: RequestContext) -> dict[str, Any]:
    """Return the digest of the prefix this answer's thinking is bound to, where its request carried one."""
    digest = context.echo.get("prefix")
    return {"prefix": digest} if digest else {}

"""What both roads read the same way: stop reasons, token counts, blocks (sheet anthropic §7).

Never makes a message (the roads do) and never guesses what was not reported.
`from_wire` and `stream` come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.blocks import ContentBlock, OpaqueBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from interlingua.context import RequestContext
from interlingua.messages import StopReason, Usage

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


def from_wire_stop(raw: str | None) -> StopReason:
    """Map a stop reason; one not known is OTHER, its word kept beside it (REGRESSIONS case 20)."""
    return _STOPS.get(raw or "", StopReason.OTHER)


def from_wire_usage(raw: Mapping[str, Any]) -> Usage:
    """Make the inclusive counts from exclusive ones (sheet §7: input_tokens excludes cached tokens)."""
    plain, read, written = (
        _count(raw, name) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    split = raw.get("cache_creation")
    details = raw.get("output_tokens_details")
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=_count(raw, "output_tokens"),
        cached_input_tokens=read,
        cache_creation_input_tokens=written,
        cache_creation_1h_input_tokens=_count(split, "ephemeral_1h_input_tokens") if isinstance(split, dict) else None,
        reasoning_tokens=_count(details, "thinking_tokens") if isinstance(details, dict) else None,
        service_tier="fast" if raw.get("speed") == "fast" else raw.get("service_tier"),
    )


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) and value >= 0 else None


def from_wire_block(raw: Mapping[str, Any], context: RequestContext) -> ContentBlock:
    """Make the canonical block of a whole wire block; a type without a canonical form stays exact and opaque."""
    kind = raw.get("type")
    if kind == "text":
        return TextBlock(text=raw["text"], citations=raw.get("citations") or ())
    if kind == "thinking":
        return ThinkingBlock(text=raw["thinking"], signature=raw.get("signature") or None)
    if kind == "redacted_thinking":
        return RedactedThinkingBlock(data=raw["data"])
    if kind == "tool_use":
        return ToolUseBlock(
            id=context.mint_tool_use_id(),
            name=context.tool_name(raw["name"]),
            input=raw["input"],
            provider_id=raw["id"],
        )
    return OpaqueBlock(provider=context.origin.provider, kind=str(kind), data=raw)


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

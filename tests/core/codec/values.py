"""Hypothesis strategies for canonical values: every block type, extremes of unicode, nested JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from interlingua.types.blocks import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MediaSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    VideoBlock,
)
from interlingua.types.messages import (
    CostParts,
    ErrorInfo,
    Message,
    MessageMetadata,
    MessageStatus,
    Provenance,
    Role,
    RoutingDecision,
    RoutingMode,
    StopReason,
    Usage,
)

extremes = st.sampled_from(["", "\0", "\u2028", "e\u0301\u200d", "\ufeff", "\U0001f469\u200d\U0001f467", "\U0010ffff"])
texts = st.text(st.characters(codec="utf-8"), max_size=8) | extremes
maybe = st.none() | texts
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, json_values, max_size=3)
hints = st.none() | st.builds(CacheHint, ttl=st.sampled_from([None, "5m", "1h"]))
sources = st.builds(MediaSource, kind=st.sampled_from(["base64", "url", "file_ref", "file_id"]), data=texts)
money = st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False)

_KNOWN = {"text", "tool_use", "tool_result", "image", "thinking", "redacted_thinking", "audio", "video", "document"}
_KNOWN |= {"opaque"}
unknown_blocks = st.builds(
    lambda kind, rest: UnknownBlock(raw={"type": kind, **rest}),
    texts.filter(lambda name: name not in _KNOWN),
    objects.map(lambda rest: {name: value for name, value in rest.items() if name != "type"}),
)
plain_blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(TextBlock, text=texts, citations=st.lists(objects, max_size=2).map(tuple), signature=maybe, cache=hints),
    st.builds(ThinkingBlock, text=texts, signature=maybe),
    st.builds(RedactedThinkingBlock, data=texts),
    st.builds(ImageBlock, source=sources, media_type=texts, detail=maybe, cache=hints),
    st.builds(AudioBlock, source=sources, media_type=texts, transcript=maybe, cache=hints),
    st.builds(VideoBlock, source=sources, media_type=texts, cache=hints),
    st.builds(DocumentBlock, source=sources, title=maybe, context=maybe, cite=st.booleans(), cache=hints),
    st.builds(OpaqueBlock, provider=texts, kind=texts, data=json_values),
    st.builds(
        ToolUseBlock,
        id=texts,
        name=texts,
        input=objects,
        provider_id=maybe,
        raw_input=maybe,
        parse_error=maybe,
        signature=maybe,
        kind=maybe,
        cache=hints,
    ),
    unknown_blocks,
)
results = st.builds(
    ToolResultBlock,
    tool_use_id=texts,
    content=st.lists(plain_blocks, max_size=3).map(tuple),
    is_error=st.booleans(),
    tool_name=maybe,
    details=st.none() | objects,
    metadata=objects,
    terminate=st.booleans(),
    cache=hints,
)
blocks: st.SearchStrategy[ContentBlock] = plain_blocks | results
counts = st.none() | st.integers(0, 10**9)
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cached_input_tokens=counts,
    reasoning_tokens=counts,
    service_tier=maybe,
    cost_usd=st.none() | money,
    cost=st.none() | st.builds(CostParts, input=money, output=money, cached_read=money, cache_write=money),
    cost_note=maybe,
    pricing_version=maybe,
    latency_ms=counts,
)


def _decide(mode: RoutingMode, rule_name: str | None, **fields: Any) -> RoutingDecision:
    """Make a decision; one by a rule needs the rule's name."""
    name = rule_name or "rule" if mode is RoutingMode.RULE else rule_name
    return RoutingDecision(mode=mode, rule_name=name, **fields)


routings = st.builds(
    _decide,
    mode=st.sampled_from(RoutingMode),
    chosen_model=texts,
    reason=texts,
    rule_name=maybe,
    confidence=st.none() | st.floats(0, 1),
    alternatives_considered=st.lists(texts, max_size=2).map(tuple),
)
# field names of a newer version: never one of ours
new_names = st.from_regex(r"\Ax_[a-z]{1,6}\Z")
extras = st.dictionaries(new_names, json_values, max_size=2)
metadata = st.builds(
    MessageMetadata,
    model=maybe,
    provider=maybe,
    api=maybe,
    routing=st.none() | routings,
    usage=st.none() | usages,
    parent_tool_use_id=maybe,
    status=st.sampled_from(MessageStatus),
    stop_reason=st.none() | st.sampled_from(StopReason),
    stop_reason_raw=maybe,
    error=st.none() | st.builds(ErrorInfo, type=texts, message=texts),
    provenance=st.none() | st.sampled_from(Provenance),
    critical=st.lists(st.integers(0, 5), max_size=2).map(tuple),
    user_id=maybe,
    team_id=maybe,
    provider_raw=st.none() | objects,
    extra=extras,
)
messages = st.builds(
    Message,
    id=texts,
    session_id=texts,
    role=st.sampled_from(Role),
    content=st.lists(blocks, max_size=4).map(tuple),
    metadata=metadata,
    created_at=st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 1)),
    schema_version=st.integers(1, 3),
)


def at_random(data: st.DataObject, value: Any) -> Any:
    """Return a JSON value with one place in it replaced by any other JSON value, or taken out."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 5)):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: at_random(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], at_random(data, value[index]), *value[index + 1 :]]
    return data.draw(json_values)

"""Which classes the codec writes, which block each `type` names, and which fields are always written.

Never reads or writes anything itself. The other codec modules may come in.
A field of seed 003 is always written; an additive one only where it is not its default, so old readers see old shapes.
"""

from __future__ import annotations

from typing import Any

import attrs

from interlingua.types.blocks import (
    AudioBlock,
    CacheHint,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ImageSource,
    OpaqueBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from interlingua.types.messages import CostParts, ErrorInfo, Message, MessageMetadata, RoutingDecisionRecord, Usage
from interlingua.types.tools import ToolDefinition

BLOCKS: dict[str, type] = {
    block.type: block
    for block in (
        TextBlock,
        ToolUseBlock,
        ToolResultBlock,
        ImageBlock,
        ThinkingBlock,
        RedactedThinkingBlock,
        AudioBlock,
        VideoBlock,
        DocumentBlock,
        OpaqueBlock,
    )
}


# Beside the fields that have no default: those of seed 003, and the media types, whose default may change one day.
_ALWAYS: dict[type, set[str]] = {
    ToolUseBlock: {"input"},
    ToolResultBlock: {"content", "is_error"},
    ImageBlock: {"media_type"},
    AudioBlock: {"media_type"},
    VideoBlock: {"media_type"},
    DocumentBlock: {"media_type"},
    ThinkingBlock: {"signature"},
    CacheHint: {"type"},
    MessageMetadata: {
        "model",
        "provider",
        "routing",
        "usage",
        "parent_tool_use_id",
        "status",
        "provider_raw",
        "user_id",
        "team_id",
    },
    RoutingDecisionRecord: {"rule_name", "confidence", "alternatives_considered"},
    Usage: {
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "cache_creation_input_tokens",
        "cost_usd",
        "pricing_version",
        "latency_ms",
    },
    Message: {"id", "session_id", "metadata", "created_at", "schema_version"},
    ToolDefinition: {"requires_workspace"},
}


# what is not a field of the stored form: derived, or laid out beside the known fields
_NOT_STORED: dict[type, set[str]] = {MessageMetadata: {"extra"}}


VALUES: frozenset[type] = frozenset(
    {*BLOCKS.values(), *_ALWAYS, ImageSource, CostParts, ErrorInfo},
)


def fields_of(cls: type) -> list[attrs.Attribute[Any]]:
    """Return the fields that are stored, in order, their types resolved."""
    attrs.resolve_types(cls, localns={"ContentBlock": ContentBlock})
    skipped = _NOT_STORED.get(cls, set())
    return [field for field in attrs.fields(cls) if field.init and field.name not in skipped]


def is_required(field: attrs.Attribute[Any]) -> bool:
    """Say whether a stored form without the field is refused."""
    return bool(field.default is attrs.NOTHING)


def is_always_written(cls: type, field: attrs.Attribute[Any]) -> bool:
    """Say whether the field is written even where it is its default."""
    return is_required(field) or field.name in _ALWAYS.get(cls, ())


def names_of(cls: type) -> frozenset[str]:
    """Return the keys of the stored form."""
    skipped = _NOT_STORED.get(cls, set())
    names = {field.name for field in attrs.fields(cls) if field.init and field.name not in skipped}
    return frozenset(names | {"type"} if cls in BLOCKS.values() else names)


def default_of(field: attrs.Attribute[Any]) -> Any:
    """Return a field's default value, made where it has to be made."""
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]

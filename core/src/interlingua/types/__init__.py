"""The canonical values: blocks, messages, events, usage, tools, options, capabilities."""
# ruff: noqa: F403  for type checkers alone

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua._lazy import lazy_names

# Module -> the names that are imported from it when first used.
_NAMES = {
    "_values": "replace",
    "_ids": "ModelId new_tool_use_id new_ulid ulid_before",
    "types.blocks": (
        "TextBlock ThinkingBlock RedactedThinkingBlock ToolUseBlock ToolResultBlock ImageBlock AudioBlock "
        "VideoBlock DocumentBlock OpaqueBlock UnknownBlock ContentBlock MediaBlock MediaSource "
        "CacheHint read_tool_input result_content"
    ),
    "types.messages": (
        "Message Role MessageMetadata MessageStatus Provenance StopReason Usage TokenBuckets "
        "CostParts RoutingDecision RoutingMode ErrorInfo Origin NO_METADATA "
        "DEFAULT_SESSION SCHEMA_VERSION TRACE_LIMIT"
    ),
    "types.events": (
        "StreamEvent TextDelta ThinkingDelta ToolUseStart ToolUseInputDelta ToolUseEnd BlockStart BlockEnd "
        "UsageUpdate RawUpdate MessageComplete ErrorEvent"
    ),
    "types.factories": (
        "user system assistant tool_result tool_results image_block audio_block video_block document_block "
        "media_bytes to_pil_image media_type_of split_tool_results"
    ),
    "types.options": (
        "ModelCapabilities RequestOptions RequestKwargs Effort ReplayScope ToolChoice ToolChoiceOption option_fields"
    ),
    "types.tools": (
        "ToolDefinition WireTool SideEffects ToolKind TOOL_NAME_MAX_LENGTH TOOL_NAME_PATTERN "
        "SCHEMA_MAX_DEPTH check_keyword check_schema json_pointer from_wire_tool "
        "to_wire_function_tool"
    ),
}

if TYPE_CHECKING:
    from interlingua._ids import *
    from interlingua._values import replace as replace
    from interlingua.types.blocks import *
    from interlingua.types.events import *
    from interlingua.types.factories import *
    from interlingua.types.messages import *
    from interlingua.types.options import *
    from interlingua.types.tools import *
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

"""The canonical values: blocks, messages, events, usage, tools, options, capabilities."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.ids import ModelId, new_tool_use_id, new_ulid
    from interlingua.types.blocks import (
        AudioBlock,
        CacheHint,
        ContentBlock,
        DocumentBlock,
        ImageBlock,
        ImageSource,
        MediaBlock,
        MediaSource,
        OpaqueBlock,
        RedactedThinkingBlock,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
        UnknownBlock,
        VideoBlock,
        read_tool_input,
        result_content,
    )
    from interlingua.types.events import (
        BlockEnd,
        BlockStart,
        ErrorEvent,
        MessageComplete,
        RawUpdate,
        StreamEvent,
        TextDelta,
        ThinkingDelta,
        ToolUseEnd,
        ToolUseInputDelta,
        ToolUseStart,
        UsageUpdate,
    )
    from interlingua.types.factories import (
        B,
        assistant,
        audio_block,
        audio_media_type,
        document_block,
        document_media_type,
        image_block,
        image_media_type,
        media_bytes,
        media_type_of,
        system,
        to_pil_image,
        tool_result,
        tool_results,
        user,
        video_block,
        video_media_type,
    )
    from interlingua.types.messages import (
        DEFAULT_SESSION,
        NO_METADATA,
        SCHEMA_VERSION,
        SILENTLY_ANSWERED,
        TRACE_LIMIT,
        ChatResponse,
        ChatStop,
        Conversation,
        CostParts,
        ErrorInfo,
        Message,
        MessageMetadata,
        MessageStatus,
        Origin,
        Provenance,
        Role,
        RoutingDecisionRecord,
        RoutingMode,
        StopReason,
        TokenBuckets,
        Usage,
        capped_trace,
        trim_trace,
    )
    from interlingua.types.options import (
        AdapterCapabilities,
        AdapterOptions,
        Effort,
        ReplayScope,
        ToolChoice,
        ToolChoiceOption,
        check_values,
        option_fields,
    )
    from interlingua.types.tool_schemas import (
        DESCRIBED,
        REFUSED,
        NormalisedSchema,
        SchemaAction,
        SchemaChange,
        as_words,
        conjunction,
        from_wire_tool,
        is_null,
        joined_enum,
        merge,
        normalise_schema,
        to_wire_flat_function_tool,
        to_wire_function_tool,
        to_wire_input_schema_tool,
        with_words,
        without_null,
    )
    from interlingua.types.tools import (
        MAX_DEPTH,
        TOOL_NAME_MAX_LENGTH,
        TOOL_NAME_PATTERN,
        TYPES,
        InputViolation,
        SideEffects,
        ToolDefinition,
        ToolKind,
        canonical_names,
        check_keyword,
        check_schema,
        children,
        follow,
        pointer,
        target_pointer,
        validate_input,
    )

# Where each name is defined: loaded when first used (PEP 562).
_MODULES = {
    "ids": "ModelId new_tool_use_id new_ulid",
    "types.blocks": (
        "AudioBlock CacheHint ContentBlock DocumentBlock ImageBlock ImageSource MediaBlock MediaSource "
        "OpaqueBlock RedactedThinkingBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock UnknownBlock "
        "VideoBlock read_tool_input result_content"
    ),
    "types.events": (
        "BlockEnd BlockStart ErrorEvent MessageComplete RawUpdate StreamEvent TextDelta ThinkingDelta ToolUseEnd "
        "ToolUseInputDelta ToolUseStart UsageUpdate"
    ),
    "types.factories": (
        "B assistant audio_block audio_media_type document_block document_media_type image_block image_media_type "
        "media_bytes media_type_of system to_pil_image tool_result tool_results user video_block video_media_type"
    ),
    "types.messages": (
        "ChatResponse ChatStop Conversation CostParts DEFAULT_SESSION ErrorInfo Message MessageMetadata "
        "MessageStatus NO_METADATA Origin Provenance Role RoutingDecisionRecord RoutingMode SCHEMA_VERSION "
        "SILENTLY_ANSWERED StopReason TRACE_LIMIT TokenBuckets Usage capped_trace trim_trace"
    ),
    "types.options": (
        "AdapterCapabilities AdapterOptions Effort ReplayScope ToolChoice ToolChoiceOption check_values "
        "option_fields"
    ),
    "types.tool_schemas": (
        "DESCRIBED NormalisedSchema REFUSED SchemaAction SchemaChange as_words conjunction from_wire_tool is_null "
        "joined_enum merge normalise_schema to_wire_flat_function_tool to_wire_function_tool "
        "to_wire_input_schema_tool with_words without_null"
    ),
    "types.tools": (
        "InputViolation MAX_DEPTH SideEffects TOOL_NAME_MAX_LENGTH TOOL_NAME_PATTERN TYPES ToolDefinition "
        "ToolKind canonical_names check_keyword check_schema children follow pointer target_pointer "
        "validate_input"
    ),
}
_MODULE_OF = {_name: _module for _module, _names in _MODULES.items() for _name in _names.split()}

__all__ = [
    "B",
    "DEFAULT_SESSION",
    "DESCRIBED",
    "MAX_DEPTH",
    "NO_METADATA",
    "REFUSED",
    "SCHEMA_VERSION",
    "SILENTLY_ANSWERED",
    "TOOL_NAME_MAX_LENGTH",
    "TOOL_NAME_PATTERN",
    "TRACE_LIMIT",
    "TYPES",
    "AdapterCapabilities",
    "AdapterOptions",
    "AudioBlock",
    "BlockEnd",
    "BlockStart",
    "CacheHint",
    "ChatResponse",
    "ChatStop",
    "ContentBlock",
    "Conversation",
    "CostParts",
    "DocumentBlock",
    "Effort",
    "ErrorEvent",
    "ErrorInfo",
    "ImageBlock",
    "ImageSource",
    "InputViolation",
    "MediaBlock",
    "MediaSource",
    "Message",
    "MessageComplete",
    "MessageMetadata",
    "MessageStatus",
    "ModelId",
    "NormalisedSchema",
    "OpaqueBlock",
    "Origin",
    "Provenance",
    "RawUpdate",
    "RedactedThinkingBlock",
    "ReplayScope",
    "Role",
    "RoutingDecisionRecord",
    "RoutingMode",
    "SchemaAction",
    "SchemaChange",
    "SideEffects",
    "StopReason",
    "StreamEvent",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "TokenBuckets",
    "ToolChoice",
    "ToolChoiceOption",
    "ToolDefinition",
    "ToolKind",
    "ToolResultBlock",
    "ToolUseBlock",
    "ToolUseEnd",
    "ToolUseInputDelta",
    "ToolUseStart",
    "UnknownBlock",
    "Usage",
    "UsageUpdate",
    "VideoBlock",
    "as_words",
    "assistant",
    "audio_block",
    "audio_media_type",
    "canonical_names",
    "capped_trace",
    "check_keyword",
    "check_schema",
    "check_values",
    "children",
    "conjunction",
    "document_block",
    "document_media_type",
    "follow",
    "from_wire_tool",
    "image_block",
    "image_media_type",
    "is_null",
    "joined_enum",
    "media_bytes",
    "media_type_of",
    "merge",
    "new_tool_use_id",
    "new_ulid",
    "normalise_schema",
    "option_fields",
    "pointer",
    "read_tool_input",
    "result_content",
    "system",
    "target_pointer",
    "to_pil_image",
    "to_wire_flat_function_tool",
    "to_wire_function_tool",
    "to_wire_input_schema_tool",
    "tool_result",
    "tool_results",
    "trim_trace",
    "user",
    "validate_input",
    "video_block",
    "video_media_type",
    "with_words",
    "without_null",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"interlingua.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

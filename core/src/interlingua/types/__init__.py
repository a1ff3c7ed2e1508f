"""The canonical values: blocks, messages, events, usage, tools, options, capabilities."""
# ruff: noqa: I001  a list of names for type checkers

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua._lazy import lazy_names

_NAMES = {
    "_values": "replace",
    "_ids": "ModelId new_tool_use_id new_ulid ulid_before",
    "types.blocks": (
        "TextBlock ThinkingBlock RedactedThinkingBlock ToolUseBlock ToolResultBlock ImageBlock AudioBlock "
        "VideoBlock DocumentBlock OpaqueBlock ChangeBlock UnknownBlock ContentBlock MediaBlock MediaSource "
        "read_tool_input result_content"
    ),
    "types.messages": (
        "Message Role MessageMetadata MessageStatus Provenance StopReason Usage TokenBuckets "
        "CostParts Loss Severity RoutingDecision RoutingMode ErrorInfo Origin NO_METADATA "
        "DEFAULT_SESSION SCHEMA_VERSION TRACE_LIMIT changes_in"
    ),
    "types.events": (
        "StreamEvent TextDelta ThinkingDelta ToolUseStart ToolUseInputDelta ToolUseEnd BlockStart BlockEnd "
        "UsageUpdate RawUpdate MessageComplete ErrorEvent"
    ),
    "types.factories": (
        "user system change assistant tool_result tool_results image_block audio_block video_block document_block "
        "media_bytes to_pil_image media_type_of split_tool_results tools_at"
    ),
    "types.options": "ModelCapabilities RequestOptions RequestKwargs Effort ReplayScope ToolChoice ToolChoiceOption",
    "types.tools": (
        "CacheHint ToolDefinition WireTool SideEffects ToolKind TOOL_NAME_MAX_LENGTH TOOL_NAME_PATTERN "
        "SCHEMA_MAX_DEPTH check_keyword check_schema follow_pointer json_pointer from_wire_tool "
        "to_wire_function_tool"
    ),
}

if TYPE_CHECKING:
    # fmt: off
    from interlingua._values import replace as replace
    from interlingua._ids import (
        ModelId as ModelId, new_tool_use_id as new_tool_use_id, new_ulid as new_ulid, ulid_before as ulid_before
    )
    from interlingua.types.blocks import (
        TextBlock as TextBlock, ThinkingBlock as ThinkingBlock, RedactedThinkingBlock as RedactedThinkingBlock,
        ToolUseBlock as ToolUseBlock, ToolResultBlock as ToolResultBlock, ImageBlock as ImageBlock,
        AudioBlock as AudioBlock, VideoBlock as VideoBlock, DocumentBlock as DocumentBlock, OpaqueBlock as OpaqueBlock,
        ChangeBlock as ChangeBlock, UnknownBlock as UnknownBlock, ContentBlock as ContentBlock,
        MediaBlock as MediaBlock, MediaSource as MediaSource, read_tool_input as read_tool_input,
        result_content as result_content
    )
    from interlingua.types.messages import (
        Message as Message, Role as Role, MessageMetadata as MessageMetadata, MessageStatus as MessageStatus,
        Provenance as Provenance, StopReason as StopReason, Usage as Usage, TokenBuckets as TokenBuckets,
        CostParts as CostParts, Loss as Loss, Severity as Severity, RoutingDecision as RoutingDecision,
        RoutingMode as RoutingMode, ErrorInfo as ErrorInfo,
        Origin as Origin, NO_METADATA as NO_METADATA, DEFAULT_SESSION as DEFAULT_SESSION,
        SCHEMA_VERSION as SCHEMA_VERSION, TRACE_LIMIT as TRACE_LIMIT, changes_in as changes_in
    )
    from interlingua.types.events import (
        StreamEvent as StreamEvent, TextDelta as TextDelta, ThinkingDelta as ThinkingDelta,
        ToolUseStart as ToolUseStart, ToolUseInputDelta as ToolUseInputDelta, ToolUseEnd as ToolUseEnd,
        BlockStart as BlockStart, BlockEnd as BlockEnd, UsageUpdate as UsageUpdate, RawUpdate as RawUpdate,
        MessageComplete as MessageComplete, ErrorEvent as ErrorEvent
    )
    from interlingua.types.factories import (
        user as user, system as system, change as change, assistant as assistant, tool_result as tool_result,
        tool_results as tool_results, image_block as image_block, audio_block as audio_block,
        video_block as video_block, document_block as document_block, media_bytes as media_bytes,
        to_pil_image as to_pil_image, media_type_of as media_type_of, split_tool_results as split_tool_results,
        tools_at as tools_at
    )
    from interlingua.types.options import (
        ModelCapabilities as ModelCapabilities, RequestOptions as RequestOptions, RequestKwargs as RequestKwargs,
        Effort as Effort, ReplayScope as ReplayScope, ToolChoice as ToolChoice, ToolChoiceOption as ToolChoiceOption
    )
    from interlingua.types.tools import (
        CacheHint as CacheHint, ToolDefinition as ToolDefinition, WireTool as WireTool,
        SideEffects as SideEffects, ToolKind as ToolKind,
        TOOL_NAME_MAX_LENGTH as TOOL_NAME_MAX_LENGTH, TOOL_NAME_PATTERN as TOOL_NAME_PATTERN,
        SCHEMA_MAX_DEPTH as SCHEMA_MAX_DEPTH, check_keyword as check_keyword, check_schema as check_schema,
        follow_pointer as follow_pointer, json_pointer as json_pointer, from_wire_tool as from_wire_tool,
        to_wire_function_tool as to_wire_function_tool
    )
    # fmt: on
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

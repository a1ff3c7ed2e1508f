"""interlingua: one canonical conversation, every provider's wire, each provider a plugin.

Nothing is defined here and nothing is loaded before it is touched (PEP 562), so importing this costs next to nothing.
Applications come in here; rooms and plugins import each other's modules directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua.assemble import Assembler
    from interlingua.blocks import (
        AudioBlock,
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
    )
    from interlingua.cache import CacheHint
    from interlingua.capabilities import AdapterCapabilities
    from interlingua.catalogue import ModelInfo
    from interlingua.client import AsyncClient, AsyncMessageStream, Client, MessageStream, Retry
    from interlingua.codec import (
        decode_message,
        decode_messages,
        decode_tool,
        dumps_message,
        encode_message,
        encode_messages,
        encode_tool,
        loads_message,
        read_jsonl,
    )
    from interlingua.context import RequestContext
    from interlingua.errors import (
        Authentication,
        CallerError,
        CapabilityError,
        ConnectTimeout,
        ContentRefused,
        ContextOverflow,
        DecodeError,
        InterlinguaError,
        InvalidRequest,
        InvariantViolation,
        MalformedResponse,
        ModelNotFound,
        Overloaded,
        PermissionDenied,
        PluginError,
        ProviderError,
        QuotaExhausted,
        RateLimited,
        ResponseTimeout,
        SchemaNotSupported,
        ServerFault,
        StreamInterrupted,
        TransportError,
        UnknownProvider,
        WireError,
    )
    from interlingua.events import (
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
    from interlingua.hookspecs import CONTRACT_VERSION, hookimpl
    from interlingua.ids import ModelId, new_tool_use_id, new_ulid
    from interlingua.invariants import check_conversation
    from interlingua.messages import (
        Buckets,
        ChatResponse,
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
        Usage,
        assistant,
        audio_block,
        bytes_of,
        document_block,
        image_block,
        image_of,
        system,
        tool_result,
        tool_results,
        trimmed,
        user,
        video_block,
    )
    from interlingua.options import AdapterOptions, ToolNamed
    from interlingua.pricing import cost_of
    from interlingua.pricing.reprice import reprice
    from interlingua.provider import Provider
    from interlingua.registry import Registry
    from interlingua.tools import SideEffects, ToolDefinition, ToolKind, normalise_schema, validate_input
    from interlingua.transport import Timeout
    from interlingua.wire import Connection, ConnectionSettings, Loss, WireChunk, WireRequest, WireResponse
    from interlingua.wrapping import wrap_stream

    __version__: str

_ROOMS = {
    "assemble": "Assembler",
    "blocks": (
        "AudioBlock ContentBlock DocumentBlock ImageBlock ImageSource MediaBlock MediaSource OpaqueBlock "
        "RedactedThinkingBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock UnknownBlock VideoBlock"
    ),
    "cache": "CacheHint",
    "capabilities": "AdapterCapabilities",
    "catalogue": "ModelInfo",
    "client": "AsyncClient AsyncMessageStream Client MessageStream Retry",
    "codec": (
        "decode_message decode_messages decode_tool dumps_message encode_message encode_messages encode_tool "
        "loads_message read_jsonl"
    ),
    "context": "RequestContext",
    "errors": (
        "Authentication CallerError CapabilityError ConnectTimeout ContentRefused ContextOverflow DecodeError "
        "InterlinguaError InvalidRequest InvariantViolation MalformedResponse ModelNotFound Overloaded "
        "PermissionDenied PluginError ProviderError QuotaExhausted RateLimited ResponseTimeout SchemaNotSupported "
        "ServerFault StreamInterrupted TransportError UnknownProvider WireError"
    ),
    "events": (
        "BlockEnd BlockStart ErrorEvent MessageComplete RawUpdate StreamEvent TextDelta ThinkingDelta ToolUseEnd "
        "ToolUseInputDelta ToolUseStart UsageUpdate"
    ),
    "hookspecs": "CONTRACT_VERSION hookimpl",
    "ids": "ModelId new_tool_use_id new_ulid",
    "invariants": "check_conversation",
    "messages": (
        "Buckets ChatResponse Conversation CostParts ErrorInfo Message MessageMetadata MessageStatus Origin "
        "Provenance Role RoutingDecisionRecord RoutingMode StopReason Usage assistant audio_block bytes_of "
        "document_block image_block image_of system tool_result tool_results trimmed user video_block"
    ),
    "options": "AdapterOptions ToolNamed",
    "pricing": "cost_of reprice",
    "provider": "Provider",
    "registry": "Registry",
    "tools": "SideEffects ToolDefinition ToolKind normalise_schema validate_input",
    "transport": "Timeout",
    "wire": "Connection ConnectionSettings Loss WireChunk WireRequest WireResponse",
    "wrapping": "wrap_stream",
}
_HOME = {_name: _room for _room, _names in _ROOMS.items() for _name in _names.split()}

__all__ = [
    "CONTRACT_VERSION",
    "AdapterCapabilities",
    "AdapterOptions",
    "Assembler",
    "AsyncClient",
    "AsyncMessageStream",
    "AudioBlock",
    "Authentication",
    "BlockEnd",
    "BlockStart",
    "Buckets",
    "CacheHint",
    "CallerError",
    "CapabilityError",
    "ChatResponse",
    "Client",
    "ConnectTimeout",
    "Connection",
    "ConnectionSettings",
    "ContentBlock",
    "ContentRefused",
    "ContextOverflow",
    "Conversation",
    "CostParts",
    "DecodeError",
    "DocumentBlock",
    "ErrorEvent",
    "ErrorInfo",
    "ImageBlock",
    "ImageSource",
    "InterlinguaError",
    "InvalidRequest",
    "InvariantViolation",
    "Loss",
    "MalformedResponse",
    "MediaBlock",
    "MediaSource",
    "Message",
    "MessageComplete",
    "MessageMetadata",
    "MessageStatus",
    "MessageStream",
    "ModelId",
    "ModelInfo",
    "ModelNotFound",
    "OpaqueBlock",
    "Origin",
    "Overloaded",
    "PermissionDenied",
    "PluginError",
    "Provenance",
    "Provider",
    "ProviderError",
    "QuotaExhausted",
    "RateLimited",
    "RawUpdate",
    "RedactedThinkingBlock",
    "Registry",
    "RequestContext",
    "ResponseTimeout",
    "Retry",
    "Role",
    "RoutingDecisionRecord",
    "RoutingMode",
    "SchemaNotSupported",
    "ServerFault",
    "SideEffects",
    "StopReason",
    "StreamEvent",
    "StreamInterrupted",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "Timeout",
    "ToolDefinition",
    "ToolKind",
    "ToolNamed",
    "ToolResultBlock",
    "ToolUseBlock",
    "ToolUseEnd",
    "ToolUseInputDelta",
    "ToolUseStart",
    "TransportError",
    "UnknownBlock",
    "UnknownProvider",
    "Usage",
    "UsageUpdate",
    "VideoBlock",
    "WireChunk",
    "WireError",
    "WireRequest",
    "WireResponse",
    "__version__",
    "assistant",
    "audio_block",
    "bytes_of",
    "check_conversation",
    "cost_of",
    "decode_message",
    "decode_messages",
    "decode_tool",
    "document_block",
    "dumps_message",
    "encode_message",
    "encode_messages",
    "encode_tool",
    "hookimpl",
    "image_block",
    "image_of",
    "loads_message",
    "new_tool_use_id",
    "new_ulid",
    "normalise_schema",
    "read_jsonl",
    "reprice",
    "system",
    "tool_result",
    "tool_results",
    "trimmed",
    "user",
    "validate_input",
    "video_block",
    "wrap_stream",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415  not before it is needed

    if name == "__version__":
        value: object = import_module("importlib.metadata").version("interlingua")
    elif name in _HOME:
        value = getattr(import_module(f"interlingua.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'interlingua' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

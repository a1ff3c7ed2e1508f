"""Messages, their metadata and their usage: the values a conversation is made of.

Never serialises and never talks to a provider; the factories make user, system, tool and assistant messages.
Every room above may come in.
"""

from __future__ import annotations

from interlingua.messages.chat_response import ChatResponse
from interlingua.messages.factories import assistant, system, tool_result, tool_results, user
from interlingua.messages.media import audio_block, bytes_of, document_block, image_block, image_of, video_block
from interlingua.messages.message import (
    DEFAULT_SESSION,
    SCHEMA_VERSION,
    SILENTLY_ANSWERED,
    Conversation,
    Message,
    Role,
)
from interlingua.messages.metadata import (
    NO_METADATA,
    ErrorInfo,
    MessageMetadata,
    MessageStatus,
    Origin,
    Provenance,
    RoutingDecisionRecord,
    RoutingMode,
    StopReason,
)
from interlingua.messages.plain import CALLS, RESULT, TEXT, Plain, plainness
from interlingua.messages.raw import TRACE_LIMIT, capped_trace, trimmed
from interlingua.messages.usage import Buckets, CostParts, Usage

__all__ = [
    "CALLS",
    "DEFAULT_SESSION",
    "NO_METADATA",
    "RESULT",
    "SCHEMA_VERSION",
    "SILENTLY_ANSWERED",
    "TEXT",
    "TRACE_LIMIT",
    "Buckets",
    "ChatResponse",
    "Conversation",
    "CostParts",
    "ErrorInfo",
    "Message",
    "MessageMetadata",
    "MessageStatus",
    "Origin",
    "Plain",
    "Provenance",
    "Role",
    "RoutingDecisionRecord",
    "RoutingMode",
    "StopReason",
    "Usage",
    "assistant",
    "audio_block",
    "bytes_of",
    "capped_trace",
    "document_block",
    "image_block",
    "image_of",
    "plainness",
    "system",
    "tool_result",
    "tool_results",
    "trimmed",
    "user",
    "video_block",
]

"""Messages, their metadata and their usage: the values a conversation is made of.

Never serialises and never talks to a provider; the factories make user, system, tool and assistant messages.
Every room above may come in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua.messages.factories import assistant, system, tool_result, tool_results, user
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

if TYPE_CHECKING:
    from interlingua.messages.chat_response import ChatResponse
    from interlingua.messages.media import audio_block, bytes_of, document_block, image_block, image_of, video_block

# Not every conversation needs these, nor what they load.
_LATER = {
    "ChatResponse": "chat_response",
    "audio_block": "media",
    "bytes_of": "media",
    "document_block": "media",
    "image_block": "media",
    "image_of": "media",
    "video_block": "media",
}

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


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value

"""interlingua: one canonical conversation, every provider's wire, each provider a plugin.

The names applications use; everything else is in `interlingua.types`, `interlingua.errors` and `interlingua.plugins`.
Nothing is loaded before it is used (PEP 562), so importing this costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlingua.codec.stored import dumps_message, loads_message, read_jsonl
    from interlingua.errors import CallerError, InterlinguaError, ProviderError, WireError
    from interlingua.http.async_client import AsyncClient, AsyncMessageStream
    from interlingua.http.client import Client, MessageStream
    from interlingua.http.limits import Retry, Timeout
    from interlingua.plugins.registry import Registry
    from interlingua.pricing import cost_of
    from interlingua.request.validate import validate_conversation
    from interlingua.types.blocks import (
        AudioBlock,
        CacheHint,
        DocumentBlock,
        ImageBlock,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
        VideoBlock,
    )
    from interlingua.types.events import ErrorEvent, MessageComplete, StreamEvent, TextDelta, ThinkingDelta, ToolUseEnd
    from interlingua.types.factories import (
        assistant,
        audio_block,
        document_block,
        image_block,
        system,
        tool_result,
        tool_results,
        user,
        video_block,
    )
    from interlingua.types.messages import Conversation, Message, MessageStatus, Role, StopReason, Usage
    from interlingua.types.options import ToolChoice
    from interlingua.types.tools import SideEffects, ToolDefinition

    __version__: str

# Where each name is defined: loaded when first used (PEP 562).
_MODULES = {
    "codec.stored": "dumps_message loads_message read_jsonl",
    "errors": "CallerError InterlinguaError ProviderError WireError",
    "http.async_client": "AsyncClient AsyncMessageStream",
    "http.client": "Client MessageStream",
    "http.limits": "Retry Timeout",
    "plugins.registry": "Registry",
    "pricing": "cost_of",
    "request.validate": "validate_conversation",
    "types.blocks": (
        "AudioBlock CacheHint DocumentBlock ImageBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock "
        "VideoBlock"
    ),
    "types.events": "ErrorEvent MessageComplete StreamEvent TextDelta ThinkingDelta ToolUseEnd",
    "types.factories": (
        "assistant audio_block document_block image_block system tool_result tool_results user video_block"
    ),
    "types.messages": "Conversation Message MessageStatus Role StopReason Usage",
    "types.options": "ToolChoice",
    "types.tools": "SideEffects ToolDefinition",
}
_MODULE_OF = {_name: _module for _module, _names in _MODULES.items() for _name in _names.split()}

__all__ = [
    "AsyncClient",
    "AsyncMessageStream",
    "AudioBlock",
    "CacheHint",
    "CallerError",
    "Client",
    "Conversation",
    "DocumentBlock",
    "ErrorEvent",
    "ImageBlock",
    "InterlinguaError",
    "Message",
    "MessageComplete",
    "MessageStatus",
    "MessageStream",
    "ProviderError",
    "Registry",
    "Retry",
    "Role",
    "SideEffects",
    "StopReason",
    "StreamEvent",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "Timeout",
    "ToolChoice",
    "ToolDefinition",
    "ToolResultBlock",
    "ToolUseBlock",
    "ToolUseEnd",
    "Usage",
    "VideoBlock",
    "WireError",
    "__version__",
    "assistant",
    "audio_block",
    "cost_of",
    "document_block",
    "dumps_message",
    "image_block",
    "loads_message",
    "read_jsonl",
    "system",
    "tool_result",
    "tool_results",
    "user",
    "validate_conversation",
    "video_block",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("interlingua")
    elif name in _MODULE_OF:
        value = getattr(import_module(f"interlingua.{_MODULE_OF[name]}"), name)
    elif name in ("codec", "errors", "plugins", "pricing", "types"):
        value = import_module(f"interlingua.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

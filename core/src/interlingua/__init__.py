"""interlingua: one canonical conversation, every provider's wire, each provider a plugin.

The names applications use; the others are in `interlingua.types`, `interlingua.errors`, `interlingua.codec` and
`interlingua.plugins`. A name is imported when it is first used (PEP 562), so importing this costs next to nothing.
"""
# ruff: noqa: F403, F405  for type checkers alone, which take the names in `__all__`

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua._lazy import lazy_names

if TYPE_CHECKING:
    from interlingua._http.client import AsyncClient, Client  # with * pyright takes what it imports for private here
    from interlingua._http.limits import *
    from interlingua._http.streams import *
    from interlingua._plugins.registry import *
    from interlingua._pricing import *
    from interlingua._request.rules import *
    from interlingua.codec import *
    from interlingua.errors import *
    from interlingua.output import Answer as Answer
    from interlingua.output import Partial as Partial
    from interlingua.types.blocks import *
    from interlingua.types.events import *
    from interlingua.types.factories import *
    from interlingua.types.messages import *
    from interlingua.types.options import *
    from interlingua.types.tools import *

    __version__: str


_get, __dir__, _ = lazy_names(
    __name__,
    {
        "codec": "dumps_message loads_message read_jsonl",
        "errors": "CallerError InterlinguaError ProviderError",
        "_http.client": "AsyncClient Client",
        "_http.limits": "Retry Timeout",
        "_http.streams": "AsyncMessageStream MessageStream",
        "output": "Answer Partial",
        "_plugins.registry": "Registry",
        "_pricing": "cost_of",
        "_request.rules": "validate_conversation",
        "types.blocks": (
            "AudioBlock CacheHint DocumentBlock ImageBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock"
        ),
        "types.events": "MessageComplete StreamEvent TextDelta ThinkingDelta ToolUseEnd",
        "types.factories": (
            "assistant audio_block document_block image_block system tool_result tool_results user video_block"
        ),
        "types.messages": "Conversation Message MessageStatus Role StopReason Usage",
        "types.options": "ToolChoice",
        "types.tools": "SideEffects ToolDefinition",
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("interlingua")
    elif name in ("codec", "errors", "plugins", "pricing", "types"):
        value = import_module(f"interlingua.{name}")
    else:
        return _get(name)
    globals()[name] = value
    return value


__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncMessageStream",
    "AudioBlock",
    "CacheHint",
    "CallerError",
    "Client",
    "Conversation",
    "DocumentBlock",
    "ImageBlock",
    "InterlinguaError",
    "Message",
    "MessageComplete",
    "MessageStatus",
    "MessageStream",
    "Partial",
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

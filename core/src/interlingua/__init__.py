"""interlingua: one canonical conversation, every provider's API, each provider a plugin.

The names that applications use; the others are in `interlingua.types`, `.errors`, `.output`, `.codec`, `.plugins`,
`.transport` and `.testing`. A name is imported when it is first used (PEP 562), so importing this costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlingua._lazy import lazy_names

if TYPE_CHECKING:
    from interlingua._http.client import AsyncClient as AsyncClient
    from interlingua._http.client import Client as Client
    from interlingua._http.exchange import Exchange as Exchange
    from interlingua._http.retry import Retry as Retry
    from interlingua._http.streams import AsyncMessageStream as AsyncMessageStream
    from interlingua._http.streams import MessageStream as MessageStream
    from interlingua._plugins.registry import Registry as Registry
    from interlingua._pricing import cost_of as cost_of
    from interlingua._request.rules import validate_conversation as validate_conversation
    from interlingua.codec import dumps_message as dumps_message
    from interlingua.codec import loads_message as loads_message
    from interlingua.codec import read_jsonl as read_jsonl
    from interlingua.errors import APIConnectionError as APIConnectionError
    from interlingua.errors import APITimeoutError as APITimeoutError
    from interlingua.errors import AuthenticationError as AuthenticationError
    from interlingua.errors import CallerError as CallerError
    from interlingua.errors import CapabilityError as CapabilityError
    from interlingua.errors import InterlinguaError as InterlinguaError
    from interlingua.errors import ProviderError as ProviderError
    from interlingua.errors import RateLimitError as RateLimitError
    from interlingua.errors import WireError as WireError
    from interlingua.output import Answer as Answer
    from interlingua.output import Partial as Partial
    from interlingua.transport import Timeout as Timeout
    from interlingua.types.blocks import AudioBlock as AudioBlock
    from interlingua.types.blocks import CacheHint as CacheHint
    from interlingua.types.blocks import DocumentBlock as DocumentBlock
    from interlingua.types.blocks import ImageBlock as ImageBlock
    from interlingua.types.blocks import TextBlock as TextBlock
    from interlingua.types.blocks import ThinkingBlock as ThinkingBlock
    from interlingua.types.blocks import ToolResultBlock as ToolResultBlock
    from interlingua.types.blocks import ToolUseBlock as ToolUseBlock
    from interlingua.types.blocks import VideoBlock as VideoBlock
    from interlingua.types.events import BlockEnd as BlockEnd
    from interlingua.types.events import BlockStart as BlockStart
    from interlingua.types.events import ErrorEvent as ErrorEvent
    from interlingua.types.events import MessageComplete as MessageComplete
    from interlingua.types.events import StreamEvent as StreamEvent
    from interlingua.types.events import TextDelta as TextDelta
    from interlingua.types.events import ThinkingDelta as ThinkingDelta
    from interlingua.types.events import ToolUseEnd as ToolUseEnd
    from interlingua.types.events import ToolUseInputDelta as ToolUseInputDelta
    from interlingua.types.events import ToolUseStart as ToolUseStart
    from interlingua.types.events import UsageUpdate as UsageUpdate
    from interlingua.types.factories import assistant as assistant
    from interlingua.types.factories import audio_block as audio_block
    from interlingua.types.factories import document_block as document_block
    from interlingua.types.factories import image_block as image_block
    from interlingua.types.factories import system as system
    from interlingua.types.factories import tool_result as tool_result
    from interlingua.types.factories import tool_results as tool_results
    from interlingua.types.factories import user as user
    from interlingua.types.factories import video_block as video_block
    from interlingua.types.messages import Conversation as Conversation
    from interlingua.types.messages import Message as Message
    from interlingua.types.messages import MessageStatus as MessageStatus
    from interlingua.types.messages import Role as Role
    from interlingua.types.messages import StopReason as StopReason
    from interlingua.types.messages import Usage as Usage
    from interlingua.types.options import ToolChoice as ToolChoice
    from interlingua.types.tools import SideEffects as SideEffects
    from interlingua.types.tools import ToolDefinition as ToolDefinition

    __version__: str


_get = lazy_names(
    __name__,
    {
        "_http.client": "AsyncClient Client",
        "_http.exchange": "Exchange",
        "_http.retry": "Retry",
        "_http.streams": "AsyncMessageStream MessageStream",
        "_plugins.registry": "Registry",
        "_pricing": "cost_of",
        "_request.rules": "validate_conversation",
        "codec": "dumps_message loads_message read_jsonl",
        "errors": (
            "APIConnectionError APITimeoutError AuthenticationError CallerError CapabilityError "
            "InterlinguaError ProviderError RateLimitError WireError"
        ),
        "output": "Answer Partial",
        "transport": "Timeout",
        "types.blocks": (
            "AudioBlock CacheHint DocumentBlock ImageBlock TextBlock ThinkingBlock ToolResultBlock "
            "ToolUseBlock VideoBlock"
        ),
        "types.events": (
            "BlockEnd BlockStart ErrorEvent MessageComplete StreamEvent TextDelta ThinkingDelta ToolUseEnd "
            "ToolUseInputDelta ToolUseStart UsageUpdate"
        ),
        "types.factories": (
            "assistant audio_block document_block image_block system tool_result tool_results user video_block"
        ),
        "types.messages": "Conversation Message MessageStatus Role StopReason Usage",
        "types.options": "ToolChoice",
        "types.tools": "SideEffects ToolDefinition",
    },
)[0]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("interlingua")
    elif name in ("codec", "errors", "output", "plugins", "testing", "transport", "types"):
        value = import_module(f"interlingua.{name}")
    else:
        return _get(name)
    globals()[name] = value
    return value


__all__ = [
    "APIConnectionError",
    "APITimeoutError",
    "Answer",
    "AsyncClient",
    "AsyncMessageStream",
    "AudioBlock",
    "AuthenticationError",
    "BlockEnd",
    "BlockStart",
    "CacheHint",
    "CallerError",
    "CapabilityError",
    "Client",
    "Conversation",
    "DocumentBlock",
    "ErrorEvent",
    "Exchange",
    "ImageBlock",
    "InterlinguaError",
    "Message",
    "MessageComplete",
    "MessageStatus",
    "MessageStream",
    "Partial",
    "ProviderError",
    "RateLimitError",
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
    "ToolUseInputDelta",
    "ToolUseStart",
    "Usage",
    "UsageUpdate",
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
